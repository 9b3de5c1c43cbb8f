"""This module is ``lnsim atlas``: checkpoints in, one line each; relatives, pairs and a page out."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnsim.cli_many import Complain, read_asked, told, write_csv, write_page
from lnsim.errors import LnsimError, SourceError
from lnsim.near_names import with_near_names
from lnsim.paths import atlas_dir
from lnsim.text import json_text

if TYPE_CHECKING:
    from lnsim.atlas.search import Search
    from lnsim.atlas.store import Atlas, Wanted

_TOLD = ("source", "roles", "commit", "hidden_size", "known")  # of what was added
_SHOWN = 40  # rows of a table; --json and --csv have them all
_ON_A_PAGE = 60  # models


def atlas(options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    """Do what the words say."""
    n_sources = {"relatives": 1, "pairs": 0, "report": 1}.get(options.what)
    if options.what == "add":
        if not options.sources and options.list is None:
            options.wrong("add takes sources, or --from FILE")
    elif options.list is not None or len(options.sources) != n_sources:
        options.wrong("relatives takes one source, report one folder, and pairs none; --from goes with add")
    from lnsim.atlas.store import Atlas

    one = Atlas(options.atlas or atlas_dir())
    return _add(one, options, complain) if options.what == "add" else _search(one, options, complain)


def _add(atlas: Atlas, options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    from lnsim.atlas.store import Wanted
    from lnsim.cli_text import bar

    wanted = [Wanted(source) for source in options.sources]
    wanted += [] if options.list is None else read_list(options.list)
    if not wanted:
        raise SourceError(f"Adding what '{options.list}' lists: it names no source.")
    with bar(f"{len(wanted)} sources") as progress:
        for one in atlas.add(wanted, options.in_flight, progress):
            if isinstance(one.result, LnsimError):
                complain(with_near_names(one.result, one.wanted.source))
            else:
                record = {name: getattr(one.result, name) for name in _TOLD}
                record |= {"new": one.new, "requests": one.requests, "bytes_received": one.bytes_received}
                yield json_text(record) if options.json else _text(record)


def read_list(path: Path) -> list[Wanted]:
    """The checkpoints that a file lists: a line is a source, then roles to read where not the usual ones, then ``#``
    and what is known; lines without a source are for readers. SourceError where the file or a line cannot be read.
    """
    from lnsim.atlas.store import Wanted

    found, number = [], 0
    try:
        for line in path.read_text("utf-8").splitlines():
            number += 1
            text, _, known = line.partition("#")
            if words := shlex.split(text):
                found.append(Wanted(words[0], tuple(words[1:]), known.strip()))
    except (OSError, ValueError) as error:  # also of bytes that are no text, and of a quote that does not end
        place = f", line {number}" if number else ""
        raise SourceError(f"Reading the list of sources '{path}'{place}: {error}.") from None
    return found


def _text(found: dict[str, Any]) -> str:
    at = f"@{found['commit'][:12]}" if found["commit"] else ""
    read = f"read, {found['requests']} requests, {found['bytes_received']:,} bytes"
    state = read if found["new"] else "known already"
    return f"{found['source']}{at}  {found['hidden_size']} channels, {state}"


def _search(atlas: Atlas, options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    from lnsim.atlas import search
    from lnsim.checkpoint.extract import extract

    if not atlas.entries:
        raise SourceError(f"Searching the atlas '{atlas.folder}': it has no model yet. `lnsim atlas add` reads some.")
    how, both = (options.permutations, options.seed, options.scheduler), options.what != "relatives"
    query = None if both else extract(options.sources[0])
    found = search.pairs(atlas, *how) if query is None else search.relatives(atlas, query, *how)
    if options.csv is not None:
        write_csv(options.csv, found.found)
    if options.json:
        of_one = ({"name": one["b"]} | one for one in found.found if not one["why_not"])
        yield json_text(found.found if both else list(of_one))
    else:
        what = "pairs" if both else f"models compared with {options.sources[0]}"
        apart = (comb(found.n_models, 2) if both else found.n_models) - found.n_tests
        yield (
            f"{found.n_models:,} models in the atlas; {found.n_tests:,} {what} by sketch, {len(found.found):,} of them "
            f"by the full test; p adjusted over all {found.n_tests:,}."
            + f" {apart:,} more have two hidden sizes, or no norm with a pattern in common."
            * bool(apart)
        )
        also = ["known"] if any(one["known"] for one in found.found) else []
        yield from told(found.found, options.all, ["a", "b"] if both else ["model"], also, _SHOWN)
    if options.what == "report":
        yield from _report(atlas, options, found, complain)


def _report(atlas: Atlas, options: argparse.Namespace, found: Search, complain: Complain) -> Iterator[str]:
    """The page on the models that stand out, the strongest first, as many as a page holds."""
    from lnsim.atlas.store import extract_path
    from lnsim.checkpoint.reading import Question
    from lnsim.measure.many import STANDS_OUT

    loud = [one for one in found.found if one["strength"] in STANDS_OUT]
    names = list(dict.fromkeys(name for one in loud for name in (one["a"], one["b"])))
    if not names:
        yield from [] if options.json else ["No page was written: no pair stands out."]
        return
    paths = {name: extract_path(atlas.folder, atlas.entries[name]) for name in names[:_ON_A_PAGE]}
    read = read_asked({name: Question.of(str(path)) for name, path in paths.items()}, complain)
    if len(read) < 2:  # the others were named as unreadable
        return
    options.report = Path(options.sources[0])
    page = write_page(options, read, [one for one in loud if {one["a"], one["b"]} <= read.keys()], found.n_tests)
    if not options.json:
        yield f"Report: {page}"
        if left := names[_ON_A_PAGE:]:
            yield f"{len(left)} models that stand out are not on it: {', '.join(left[:_SHOWN])}."

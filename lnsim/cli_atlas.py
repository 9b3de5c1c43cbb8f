"""This module is ``lnsim atlas``: checkpoints in, one line each; relatives and pairs out, as a table or as JSON."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnsim.errors import LnsimError, SourceError
from lnsim.near_names import with_near_names
from lnsim.paths import atlas_dir
from lnsim.tables import aligned
from lnsim.text import json_text, printable

if TYPE_CHECKING:
    from lnsim.atlas.search import Related, Search
    from lnsim.atlas.store import Added, Wanted

_SHOWN = 40  # rows of a table; JSON has them all
_TOLD = ("identical", "strong", "weak", "border")


def add_options(
    parser: argparse.ArgumentParser, source: str, whole: Callable[[int, int], Callable[[str], int]]
) -> None:
    """Give the parser of ``lnsim atlas`` its options; `source` says what one is, `whole` makes types of numbers."""
    parser.add_argument("what", choices=["add", "relatives", "pairs"], help="what to do")
    parser.add_argument("sources", metavar="SOURCE", nargs="*", help=f"of add and relatives: {source}")
    listed = (
        "add what a file lists: a source a line, then roles where not the usual ones, then # and what is known of it"
    )
    parser.add_argument("--from", dest="list", type=Path, metavar="FILE", help=listed)
    parser.add_argument("--atlas", type=Path, metavar="DIR", help="folder of the atlas (data/atlas/store)")
    parser.add_argument("--in-flight", type=whole(1, 256), default=16, metavar="N", help="requests at once (16)")
    cost = "permutations of the channels that a test may cost (99999), where few models are compared"
    parser.add_argument("--permutations", type=whole(1, 100_000), default=99_999, metavar="N", help=cost)
    parser.add_argument("--seed", type=whole(0, 2**32 - 1), default=0, metavar="S", help="of the permutations (0)")
    cluster = "search on the workers of this Dask scheduler; they must see the folder of the atlas under the same path"
    parser.add_argument("--scheduler", metavar="ADDRESS", help=cluster)
    parser.set_defaults(wrong=parser.error)


def run(options: argparse.Namespace, complain: Callable[[LnsimError, bool], None]) -> int:
    """Do what the words say; returns the exit code."""
    if options.what != "add" and options.list is not None:
        options.wrong("--from goes with add")
    if options.what == "add":
        return _add(options, complain)
    if len(options.sources) != (options.what == "relatives"):
        options.wrong("relatives takes one source, and pairs none")
    return _search(options)


def _add(options: argparse.Namespace, complain: Callable[[LnsimError, bool], None]) -> int:
    from lnsim.atlas.store import Atlas, Wanted
    from lnsim.cli_text import bar

    wanted = [Wanted(source) for source in options.sources]
    wanted += [] if options.list is None else read_list(options.list)
    if not wanted:
        options.wrong("add takes sources, or --from FILE")
    failed = 0
    with bar(f"{len(wanted)} sources") as progress:
        for one in _atlas(options, Atlas).add(wanted, options.in_flight, progress):
            if isinstance(one.result, LnsimError):
                complain(with_near_names(one.result, one.wanted.source), options.debug)
                failed += 1
            else:
                print(json_text(_added(one)) if options.json else printable(_added_text(one)), flush=True)
    return 1 if failed else 0


def _atlas(options: argparse.Namespace, kind: Callable[[Path], Any]) -> Any:
    return kind(options.atlas or atlas_dir())


def read_list(path: Path) -> list[Wanted]:
    """The checkpoints that a file lists: a line is a source, then roles to read where not the usual ones, then ``#``
    and what is known; lines without a source are for readers. SourceError where the file or a line cannot be read.
    """
    from lnsim.atlas.store import Wanted

    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"Reading the list of sources '{path}': {error}.") from None
    found = []
    for number, line in enumerate(lines, 1):
        text, _, known = line.partition("#")
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise SourceError(f"Reading the list of sources '{path}', line {number}: {error}.") from None
        if words:
            found.append(Wanted(words[0], tuple(words[1:]), known.strip()))
    return found


def _added(one: Added) -> dict[str, Any]:
    entry: Any = one.result
    what = {
        "source": entry.source,
        "roles": list(entry.roles),
        "commit": entry.commit,
        "hidden_size": entry.hidden_size,
    }
    return what | {"new": one.new, "requests": one.requests, "bytes_received": one.bytes_received, "known": entry.known}


def _added_text(one: Added) -> str:
    found = _added(one)
    at = f"@{found['commit'][:12]}" if found["commit"] else ""
    state = f"read, {found['requests']} requests, {found['bytes_received']:,} bytes" if one.new else "known already"
    return f"{found['source']}{at}  {found['hidden_size']} channels, {state}"


def _search(options: argparse.Namespace) -> int:
    from lnsim.atlas import search
    from lnsim.atlas.store import Atlas
    from lnsim.checkpoint.extract import extract

    atlas = _atlas(options, Atlas)
    if not atlas.entries:
        raise SourceError(f"Searching the atlas '{atlas.folder}': it has no model yet. `lnsim atlas add` reads some.")
    how = (options.permutations, options.seed, options.scheduler)
    if options.what == "pairs":
        found = search.pairs(atlas, *how)
    else:
        found = search.relatives(atlas, extract(options.sources[0]), *how)
    print(json_text(search_record(found)) if options.json else _search_text(found, options.what == "pairs"), flush=True)
    return 0


def search_record(found: Search) -> dict[str, Any]:
    """What ``relatives --json`` and ``pairs --json`` print."""
    counts = {name: getattr(found, name) for name in ("n_models", "n_comparable", "n_parts", "threshold")}
    return counts | {"found": [_record(one) for one in found.found]}


def _record(one: Related) -> dict[str, Any]:
    test, judgement = one.judgement.test, one.judgement
    return {
        "a": one.a,
        "name": one.b.source,
        "commit": one.b.commit,
        "similarity": round(one.similarity, 6),
        "r": None if test is None else test.r,
        "pvalue": None if test is None else test.pvalue,
        "p_adjusted": judgement.p_adjusted,
        "strength": judgement.strength,
        "sentence": judgement.sentence(),
        "known": one.b.known,
    }


def _search_text(found: Search, both: bool) -> str:
    told = [one for one in map(_record, found.found) if one["strength"] in _TOLD]
    head = ("r", "adjusted p", "strength", "known")
    rows = [(*_names(one, both), *_numbers(one), one["strength"], one["known"]) for one in told[:_SHOWN]]
    lines = [aligned((*(("a", "b") if both else ("model",)), *head), rows)] if rows else ["Nothing stands out."]
    lines += [f"and {len(told) - _SHOWN} more, with --json"] if len(told) > _SHOWN else []
    what = "pairs" if both else "models"
    lines.append(
        f"{found.n_models:,} models in the atlas; {found.n_comparable:,} {what} compared by sketch, "
        f"{len(found.found):,} of them by the full test; p adjusted over all {found.n_comparable:,}."
    )
    return printable("\n".join(lines), keep="\n")


def _names(one: dict[str, Any], both: bool) -> Iterable[str]:
    return (one["a"], one["name"]) if both else (one["name"],)


def _numbers(one: dict[str, Any]) -> tuple[str, str]:
    if one["r"] is None:
        return "", ""
    return f"{one['r']:.3f}", f"{one['p_adjusted']:.2g}"

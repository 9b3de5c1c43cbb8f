"""This module is the commands on many models: ``lnsim relatives`` and ``lnsim matrix``.

A model that cannot be read is named on stderr, and the others go on; the exit code is then 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from lnsim.errors import ComparisonError, LnsimError
from lnsim.near_names import with_near_names
from lnsim.tables import aligned
from lnsim.text import json_text

if TYPE_CHECKING:
    from lnsim.checkpoint.extract import Extracted
    from lnsim.checkpoint.reading import Question
    from lnsim.measure.many import Relation

Complain = Callable[[LnsimError], None]

_PLACES = {"same": "same number", "elsewhere": "elsewhere", "without": "none"}
_MOST_NAMED = 4  # pairs that are named beside the reason why they cannot be compared


def relatives(options: argparse.Namespace, complain: Complain) -> list[str]:
    """Which models are most like one."""
    from lnsim.measure import many
    from lnsim.paths import stored_models
    from lnsim.words import count

    (query,) = _read([options.model], complain).values() or (None,)
    if query is None:
        return []
    names = options.among or (_of_study(options.study) if options.study else stored_models())
    names, other_width = _of_width([name for name in dict.fromkeys(names) if name != options.model], query)
    others = _read(names, complain)
    vectors = {name: one.vectors for name, one in others.items()}
    found = many.relatives(query.vectors, vectors, options.permutations, options.seed)
    if options.json:
        return [json_text([{"name": one["b"]} | one for one in found if not one["why_not"]])]
    head = f"{options.model}: {count(len(others), 'model')} compared, {other_width} more are of another hidden size."
    return [head, *told(found, options.all, ["model"])]


def matrix(options: argparse.Namespace, complain: Complain) -> Iterator[str]:
    """What is found of every pair of models; the table and the page are written where they are asked for."""
    from lnsim.cli_text import bar
    from lnsim.measure import many
    from lnsim.words import count

    read = _read(list(dict.fromkeys(_named(options))), complain)
    vectors = {name: one.vectors for name, one in read.items()}
    with bar(f"pairs of {len(read)} models", unit="pair") as progress:
        found = many.matrix(vectors, options.permutations, options.seed, progress=progress)
    if options.csv is not None:
        write_csv(options.csv, found)
    lines = [f"{count(len(read), 'model')}, {count(len(found), 'pair')}.", *told(found, options.all, ["a", "b"])]
    yield from [json_text(found)] if options.json else lines
    if options.report is not None and found:
        page = write_page(options, read, found)
        yield from [] if options.json else [f"Report: {page}"]


def _named(options: argparse.Namespace) -> Sequence[str]:
    """The models that were asked for, in one of three ways."""
    from lnsim.paths import stored_models

    names: Sequence[str] = options.sources
    if options.study is not None:
        names = _of_study(options.study)
    elif options.stored is not None:
        places = {name: f"{path.parent.name}/{path.stem}" for name, path in stored_models().items()}
        pattern = f"*{options.stored.casefold()}*"
        names = [name for name, place in places.items() if fnmatch(f"{place} {name}".casefold(), pattern)]
    ways = bool(options.sources) + (options.study is not None) + (options.stored is not None)
    if ways != 1 or len(set(names)) < 2:
        raise ComparisonError(
            "Comparing every pair: expected two models or more, in one of three ways (by name, --study or --stored); "
            f"found {len(set(names))}, in {ways} of them."
        )
    return names


def _of_study(name: str) -> list[str]:
    from lnsim.study.catalog import load_study

    return [model.stored for model in load_study(name).models]


def _of_width(names: Iterable[str], query: Extracted) -> tuple[list[str], int]:
    """Those but the model itself that may have norms of its width, by their headers alone; how many have none."""
    from lnsim.checkpoint.store import kept_header
    from lnsim.paths import stored_models

    stored, widths, kept, left_out = stored_models(), {one.hidden_size for one in query.vectors.roles.values()}, [], 0
    for name in names:
        path, own = stored.get(name), query.vectors.path
        if path is not None and own is not None and path.samefile(own):
            continue
        header = None if path is None else kept_header(path)
        if header is not None and widths.isdisjoint(one.shape[-1] for one in header.tensors.values() if one.shape):
            left_out += 1
        else:
            kept.append(name)
    return kept, left_out


def _read(names: Sequence[str], complain: Complain) -> dict[str, Extracted]:
    """What could be read of stored models and sources, by name; the others are named on stderr."""
    from lnsim.checkpoint.reading import Question
    from lnsim.paths import stored_models

    stored = stored_models()
    return read_asked({name: Question.of(str(stored.get(name, name))) for name in names}, complain)


def read_asked(asked: Mapping[str, Question], complain: Complain) -> dict[str, Extracted]:
    """What could be read, by the name that readers see; the others are named on stderr."""
    from lnsim.checkpoint.extract import read_many
    from lnsim.cli_text import bar

    found = {}
    with bar(next(iter(asked)) if len(asked) == 1 else f"{len(asked)} models") as progress:
        for name, one in zip(asked, read_many(list(asked.values()), progress=progress), strict=True):
            if isinstance(one, LnsimError):
                complain(with_near_names(one, name))
            else:
                found[name] = one
    return found


def told(
    found: Sequence[Relation], every: bool, names: Sequence[str], also: Sequence[str] = (), most: int | None = None
) -> Iterator[str]:
    """The pairs that stand out as a table, each sentence once below it, then how many do not and why.

    `names` heads the columns of the two models, or of the second alone; `also` are columns of a search, `most` the rows
    shown.
    """
    from lnsim.measure.many import STANDS_OUT
    from lnsim.words import count

    loud = [one for one in found if one["strength"] in STANDS_OUT or (every and not one["why_not"])]
    shown = loud[:most]
    sentences = list(dict.fromkeys(one["sentence"] for one in shown))
    yield aligned(
        (*names, "r", "p, Holm", "partner layers", "strength", "says", *also),
        [(*(one[name] for name in ("a", "b")[-len(names) :]), *_numbers(one), one["strength"],
          f"[{1 + sentences.index(one['sentence'])}]", *(one[name] for name in also)) for one in shown],
    ) if shown else "None stands out."  # fmt: skip
    if len(loud) > len(shown):
        yield f"{len(loud) - len(shown):,} more: --json and --csv have them all."
    yield from (f"[{number}] {text}" for number, text in enumerate(sentences, 1))
    quiet: list[tuple[float, str]] = []
    apart: dict[str, list[str]] = {}
    for one in found:
        pair = " × ".join(one[name] for name in ("a", "b")[-len(names) :])
        if one["why_not"] or one["strength"] == "not_decided":
            why = f"not compared ({one['why_not']})" if one["why_not"] else one["sentence"].partition(",")[0].lower()
            apart.setdefault(why.rstrip("."), []).append(pair)
        elif one["strength"] not in STANDS_OUT and not every:
            quiet.append((one["r"] or 0.0, pair))
    if quiet:
        r, pair = max(quiet)
        yield f"{count(len(quiet), 'other')} without a signal; the largest r is {r:.3f} ({pair})."
    for why, pairs in apart.items():
        n_named = len(pairs) if every else _MOST_NAMED
        more = [f"{len(pairs) - n_named} more"] * (len(pairs) > n_named)
        yield f"{len(pairs)} {why}: {', '.join([*pairs[:n_named], *more])}."


def _numbers(one: Relation) -> tuple[str, str, str]:
    """r, p and the place where most layers have their best partner, in words; empty where nothing was tested."""
    from lnsim.words import p_value

    if one["r"] is None:
        return "", "", ""
    most = max(_PLACES, key=one.__getitem__)
    partners = f"{_PLACES[most]}, {one[most]} of {sum(one[place] for place in _PLACES)}"
    return f"{one['r']:.3f}", p_value(one["p_adjusted"]), partners


def write_csv(path: Path, found: Sequence[Relation]) -> None:
    """Write what was found of every pair; NotebookError where that cannot be done."""
    import pandas as pd

    from lnsim.report.saving import save_csv, writing

    with writing(f"the pairs into '{path}'"):
        save_csv(pd.DataFrame(found), path)


def write_page(
    options: argparse.Namespace, read: Mapping[str, Extracted], found: Sequence[Relation], n_tests: int = 0
) -> Path:
    """Write the page on these models that a command asked for; `n_tests` as the notebook has it."""
    # Imported here: the pairs alone need none of what a report needs.
    from lnsim.cli_text import bar
    from lnsim.report.two_models import write_page_of_many

    given = {"n_permutations": options.permutations or 0, "seed": options.seed, "n_tests": n_tests}
    given["command"] = options.typed
    with bar("report", unit="notebook") as progress:
        return write_page_of_many(options.report, read, found, given, progress)

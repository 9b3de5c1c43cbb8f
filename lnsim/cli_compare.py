"""This module is the command ``lnsim compare``: two sources in, their comparison out, and a report where asked for."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lnsim.checkpoint.extract import Extracted
from lnsim.checkpoint.extract_many import read_pair
from lnsim.checkpoint.reading import Question
from lnsim.cli_compare_text import compare_record, compare_text
from lnsim.cli_progress import bar
from lnsim.errors import LnsimError
from lnsim.measure.pair_summary import summarise_pair
from lnsim.near_names import with_near_names
from lnsim.text import json_text

__all__ = ["answers", "read_both"]


def read_both(options: argparse.Namespace) -> list[Extracted | LnsimError]:
    """Read both sources at once, and write nothing; an error stands in the place of what could not be read."""
    sources = [options.a, options.b]
    with bar(" and ".join(sources)) as progress:
        found = read_pair(*(Question.of(source, options.role) for source in sources), progress=progress)
    return [
        with_near_names(one, source) if isinstance(one, LnsimError) else one
        for one, source in zip(found, sources, strict=True)
    ]


def answers(options: argparse.Namespace, a: Extracted, b: Extracted) -> Iterator[str]:
    """Compare what was read, and say what was found; then make the report where one is asked for, and say where it is.

    JSON is one object and comes when all is done, also where the report fails.

    Raises:
        LnsimError: when nothing can be compared, or the report cannot be made.
    """
    with bar("permutations", unit="role") as progress:
        found = summarise_pair(a.vectors, b.vectors, options.permutations, options.seed, progress)
    names, models = {"a": options.a, "b": options.b}, {"a": a.vectors, "b": b.vectors}
    record = compare_record(names, models, found)
    if not options.json:
        yield compare_text(names, models, found)
        if options.report is not None:
            yield f"Report: {_report(options, a, b, record)}"
        return
    try:
        page = None if options.report is None else str(_report(options, a, b, record))
    except LnsimError:
        yield json_text(record)
        raise
    yield json_text(record | {"report": page})


def _report(options: argparse.Namespace, a: Extracted, b: Extracted, record: dict[str, Any]) -> Path:
    # Imported here: a comparison alone needs none of what a report needs.
    from lnsim.render.two_models import Asked, write_page_of_two

    roles = tuple(options.role or ())
    asked = Asked(a, b, roles, options.permutations, options.seed, _command(options), record)
    with bar("report", unit="notebook") as progress:
        return write_page_of_two(options.report, asked, progress)


def _command(options: argparse.Namespace) -> str:
    """The command as it would be typed again."""
    words = ["lnsim", "compare", options.a, options.b]
    words += [word for role in options.role or () for word in ("--role", role)]
    given = {"--permutations": options.permutations, "--seed": options.seed, "--report": options.report}
    return shlex.join([*words, *(str(word) for pair in given.items() for word in pair)])

"""This module is the command ``lnsim compare``: two sources in, a record, a table or a report of them out."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path

from lnsim.checkpoint.extract import Extracted
from lnsim.cli_text import bar
from lnsim.errors import LnsimError
from lnsim.measure.compare import summarise_pair
from lnsim.render.pair_view import Comparison, read_sources
from lnsim.text import json_text

__all__ = ["answers", "read_both"]


def read_both(options: argparse.Namespace) -> list[Extracted | LnsimError]:
    """Read both sources at once, and write nothing; an error stands in the place of what could not be read."""
    with bar(f"{options.a} and {options.b}") as progress:
        return read_sources([options.a, options.b], options.role, progress)


def answers(options: argparse.Namespace, a: Extracted, b: Extracted) -> Iterator[str]:
    """Compare what was read, and say what was found; then make the report where one is asked for, and say where it is.

    JSON is one object and comes when all is done, also where the report fails.

    Raises:
        LnsimError: when nothing can be compared, or the report cannot be made.
    """
    with bar("permutations", unit="role") as progress:
        summary = summarise_pair(a.vectors, b.vectors, options.permutations, options.seed, progress)
    found = Comparison((options.a, options.b), a.vectors, b.vectors, summary)
    if not options.json:
        yield found.text()
        if options.report is not None:
            yield f"Report: {_report(options, a, b, found)}"
        return
    try:
        page = None if options.report is None else str(_report(options, a, b, found))
    except LnsimError:
        yield json_text(found.record())
        raise
    yield json_text(found.record() | {"report": page})


def _report(options: argparse.Namespace, a: Extracted, b: Extracted, found: Comparison) -> Path:
    # Imported here: a comparison alone needs none of what a report needs.
    from lnsim.render.two_models import write_page_of_two

    given = {"n_permutations": options.permutations, "seed": options.seed, "roles": list(options.role or ())}
    with bar("report", unit="notebook") as progress:
        return write_page_of_two(options.report, a, b, found, given | {"command": _command(options)}, progress)


def _command(options: argparse.Namespace) -> str:
    """The command as it would be typed again."""
    words = ["lnsim", "compare", options.a, options.b]
    words += [word for role in options.role or () for word in ("--role", role)]
    given = {"--permutations": options.permutations, "--seed": options.seed, "--report": options.report}
    return shlex.join([*words, *(str(word) for pair in given.items() for word in pair)])

"""This module is the command ``lnsim compare``: two sources in, a record, a table or a report of them out."""

from __future__ import annotations

import argparse
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lnsim.checkpoint.extract import Extracted, read_pair
from lnsim.checkpoint.reading import Question
from lnsim.checkpoint.vectors import NormVectors
from lnsim.cli_text import bar
from lnsim.errors import LnsimError
from lnsim.measure.compare import PairSummary, RoleSummary, summarise_pair
from lnsim.near_names import with_near_names
from lnsim.render.pair_view import LLAMA_SPELLING, ROWS, pair_sentence, reading, remarks, shown
from lnsim.tables import aligned
from lnsim.text import json_text, printable

__all__ = ["answers", "compare_record", "compare_text", "read_both"]


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


_WIDTH = 100


def compare_record(names: Mapping[str, str], models: Mapping[str, NormVectors], found: PairSummary) -> dict[str, Any]:
    """What ``compare --json`` prints.

    Args:
        names: by ``a`` and ``b``, the source as it was typed.
        models: likewise, what was read.
        found: the comparison.
    """
    return {
        **names,
        "roles": {role: asdict(one) for role, one in found.roles.items()},
        "not_compared": dict(found.not_compared),
        "verdict": found.verdict,
        "sentence": pair_sentence(models, found),
        "models": {side: _model(vectors) for side, vectors in models.items()},
        "requests": sum(vectors.requests for vectors in models.values()),
        "bytes_received": sum(vectors.bytes_received for vectors in models.values()),
        "report": None,
    }


def compare_text(names: Mapping[str, str], models: Mapping[str, NormVectors], found: PairSummary) -> str:
    """What ``compare`` prints for a person; arguments as ``compare_record``."""
    first = next(iter(found.roles.values()))
    lines = [
        aligned(
            ("", "source", "family", "vectors", "channels", "commit"), [_row(side, names, models) for side in names]
        ),
        "",
        *_tables(found.roles),
        *_paragraph(f"Verdict: {pair_sentence(models, found)}"),
        *reading(first),
        *(line for text in remarks(models, found) for line in _paragraph(text)),
    ]
    return printable("\n".join(lines), keep="\n")


def _model(vectors: NormVectors) -> dict[str, Any]:
    return {
        "source": vectors.source,
        "repo_id": vectors.provenance.get("repo_id"),
        "commit": vectors.commit,
        "model_type": vectors.model_type,
        "norm_type": vectors.norm_type,
        "tower": vectors.main_tower,
        "hidden_size": vectors.hidden_size,
        "n_vectors": vectors.n_vectors,
        "notes": list(vectors.notes),
    }


def _row(side: str, names: Mapping[str, str], models: Mapping[str, NormVectors]) -> tuple[Any, ...]:
    vectors = models[side]
    commit = vectors.commit[:12] if vectors.commit else "none recorded"
    return side, names[side], vectors.model_type, vectors.n_vectors, vectors.hidden_size, commit


def _tables(roles: Mapping[str, RoleSummary]) -> Iterator[str]:
    """One column a role, as many beside each other as fit."""
    label = max(len(words) for words, _, _ in ROWS)
    part: dict[str, RoleSummary] = {}
    for role, one in roles.items():
        if part and label + sum(_column(name) + 2 for name in (*part, role)) > _WIDTH:
            yield from _table(part, label)
            part = {}
        part[role] = one
    yield from _table(part, label)


def _table(roles: Mapping[str, RoleSummary], label: int) -> Iterator[str]:
    widths = [_column(role) for role in roles]
    yield _line("", list(roles), label, widths)
    spellings = [LLAMA_SPELLING.get(role, "") for role in roles]
    if any(spellings):
        yield _line("  as Llama names it", spellings, label, widths)
    for words, name, form in ROWS:
        yield _line(words, [shown(one, name, form) for one in roles.values()], label, widths)
    yield ""


def _line(words: str, cells: Sequence[str], label: int, widths: Sequence[int]) -> str:
    shown = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{words:<{label}}{shown}".rstrip()


def _column(role: str) -> int:
    return max(len(role), len(LLAMA_SPELLING.get(role, "")), 8)


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ")

"""This module words what ``lnsim compare`` prints: a record for machines, a table and a sentence for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lnsim.checkpoint.vectors import LLAMA_NAMES, NormVectors
from lnsim.cli_text import aligned
from lnsim.measure.pair_summary import PairSummary
from lnsim.measure.role_summary import RoleSummary
from lnsim.render.verdict_words import sentence
from lnsim.text import printable

__all__ = ["compare_record", "compare_text"]

_WIDTH = 100
_LLAMA_SPELLING = {role: name for name, role in LLAMA_NAMES.items()}

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("layers compared", "n_layers_compared", "d"),
    ("mean cosine", "cosine_mean", ".4f"),
    ("mean Pearson r", "pearson_mean", ".4f"),
    ("  of permuted channels: mean", "null_mean", ".4f"),
    ("  their standard deviation", "null_std", ".4f"),
    ("p, one-sided", "pvalue", "p"),
    ("  after Holm", "p_holm", "p"),
    ("mean Spearman r", "spearman_mean", ".4f"),
    ("  p by ranks, after Holm", "p_ranks_holm", "p"),
    ("L2 of a - b over that of a", "rel_l2_mean", ".4f"),
    ("stored values changed", "changed_ratio", ".1%"),
    ("best offset of the layers", "best_offset", "+d"),
    ("alignment rate", "alignment_rate", ".2f"),
    ("margin", "margin", ".4f"),
)
"""Words, field and format of each line of the table; ``p`` has as many decimals as the permutations allow."""


def compare_record(
    names: Mapping[str, str], models: Mapping[str, NormVectors], found: PairSummary, report: str | None = None
) -> dict[str, Any]:
    """What ``compare --json`` prints.

    Args:
        names: by ``a`` and ``b``, the source as it was typed.
        models: likewise, what was read.
        found: the comparison.
        report: the index of the report, where one was written.
    """
    return {
        **names,
        "roles": {role: asdict(one) for role, one in found.roles.items()},
        "not_compared": dict(found.not_compared),
        "verdict": found.verdict,
        "sentence": _sentence(models, found),
        "models": {side: _model(vectors) for side, vectors in models.items()},
        "requests": sum(vectors.requests for vectors in models.values()),
        "bytes_received": sum(vectors.bytes_received for vectors in models.values()),
        "report": report,
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
        *_paragraph(f"Verdict: {_sentence(models, found)}"),
        *_reading(first),
        *_remarks(models, found),
    ]
    return printable("\n".join(lines), keep="\n")


def _sentence(models: Mapping[str, NormVectors], found: PairSummary) -> str:
    """The verdict's sentence; of a replica it begins by saying that the vectors are synthetic."""
    replica = any("replica" in vectors.provenance for vectors in models.values())
    return sentence(found.verdict, found.obstacle, replica)


def _model(vectors: NormVectors) -> dict[str, Any]:
    return {
        "source": vectors.source,
        "repo_id": vectors.provenance.get("repo_id"),
        "commit": vectors.commit,
        "model_type": vectors.model_type,
        "norm_type": vectors.norm_type,
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
    label = max(len(words) for words, _, _ in _ROWS)
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
    spellings = [_LLAMA_SPELLING.get(role, "") for role in roles]
    if any(spellings):
        yield _line("  as Llama names it", spellings, label, widths)
    for words, name, form in _ROWS:
        yield _line(words, [_shown(one, name, form) for one in roles.values()], label, widths)
    yield ""


def _line(words: str, cells: Sequence[str], label: int, widths: Sequence[int]) -> str:
    shown = "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
    return f"{words:<{label}}{shown}".rstrip()


def _column(role: str) -> int:
    return max(len(role), len(_LLAMA_SPELLING.get(role, "")), 8)


def _shown(one: RoleSummary, name: str, form: str) -> str:
    value = getattr(one, name)
    if value is None:
        return "-"
    text = format(value, f".{len(str(one.n_permutations))}f" if form == "p" else form)
    return text if any(digit in "123456789" for digit in text) else text.lstrip("+-")


def _reading(one: RoleSummary) -> Iterator[str]:
    """What the null is, in two lines."""
    orders = f"{one.n_permutations:,} permutation{'s' if one.n_permutations != 1 else ''}"
    yield f"p: the share of {orders} of b's channels (one for all layers of a role; seed {one.seed})"
    yield "with a mean r as high as this or higher. A cosine near 1 is the usual case, for strangers too."


def _remarks(models: Mapping[str, NormVectors], found: PairSummary) -> Iterator[str]:
    """What was not compared, and what a reader must know of the rest; roles with the same remark share a line."""
    remarks: dict[str, list[str]] = {}
    for role, reason in found.not_compared.items():
        remarks.setdefault(f"Not compared: {{}}: {reason}.", []).append(role)
    for role, one in found.roles.items():
        for note in one.notes:
            remarks.setdefault(f"Note: {{}}: {note}.", []).append(role)
    for side, vectors in models.items():
        for note in vectors.notes:
            remarks.setdefault(f"Note: {{}}: {note}", []).append(side)
    for text, places in remarks.items():
        yield from _paragraph(text.replace("{}", ", ".join(places), 1))


def _paragraph(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ")

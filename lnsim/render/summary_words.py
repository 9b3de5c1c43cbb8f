"""This module words the comparison of two models, for a terminal and a notebook alike: rows, a sentence, remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lnsim.checkpoint.vectors import LLAMA_NAMES, NormVectors
from lnsim.measure.pair_summary import PairSummary
from lnsim.measure.role_summary import RoleSummary
from lnsim.measure.verdict import sentence

__all__ = ["LLAMA_SPELLING", "ROWS", "pair_sentence", "reading", "remarks", "shown"]

LLAMA_SPELLING = {role: name for name, role in LLAMA_NAMES.items()}
"""What the Llama family calls a role, where it has a name for it."""

ROWS: tuple[tuple[str, str, str], ...] = (
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


def pair_sentence(models: Mapping[str, NormVectors], found: PairSummary) -> str:
    """The verdict's sentence; of a replica it begins by saying that the vectors are synthetic."""
    replica = any("replica" in vectors.provenance for vectors in models.values())
    return sentence(found.verdict, found.obstacle, replica)


def shown(one: RoleSummary, name: str, form: str) -> str:
    """One measure as text; ``-`` stands for what is not defined. Arguments as a line of ROWS."""
    value = getattr(one, name)
    if value is None:
        return "-"
    text = format(value, f".{len(str(one.n_permutations))}f" if form == "p" else form)
    return text if any(digit in "123456789" for digit in text) else text.lstrip("+-")


def reading(one: RoleSummary) -> Iterator[str]:
    """What the null is, in two lines."""
    orders = f"{one.n_permutations:,} permutation{'s' if one.n_permutations != 1 else ''}"
    yield f"p: the share of {orders} of b's channels (one for all layers of a role; seed {one.seed})"
    yield "with a mean r as high as this or higher. A cosine near 1 is the usual case, for strangers too."


def remarks(models: Mapping[str, NormVectors], found: PairSummary) -> Iterator[str]:
    """What was not compared, and what a reader must know of the rest; roles with the same remark share a line."""
    gathered: dict[str, list[str]] = {}
    for role, reason in found.not_compared.items():
        gathered.setdefault(f"Not compared: {{}}: {reason}.", []).append(role)
    for role, one in found.roles.items():
        for note in one.notes:
            gathered.setdefault(f"Note: {{}}: {note}.", []).append(role)
    for side, vectors in models.items():
        for note in vectors.notes:
            gathered.setdefault(f"Note: {{}}: {note}", []).append(side)
    for text, places in gathered.items():
        yield text.replace("{}", ", ".join(places), 1)

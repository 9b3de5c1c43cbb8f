"""This module takes apart a published "difference in sigma": a difference of two means over a standard deviation.

Divided by the spread of four chosen values, a difference says how far apart two small sets lie, in units of one that
hardly spreads. It is a size of effect, and no significance: with four values in each set, no reshuffling of the eight
can give a p-value below one in seventy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lnsim.errors import StudyError
from studies.claims.bounds import best
from studies.claims.cells import Cell, Vector, cells_of
from studies.claims.corpus import Corpus
from studies.claims.rows import Claim

__all__ = ["effect_claim", "effect_sizes", "least_pvalue"]


def effect_claim(corpus: Corpus) -> Claim:
    """The first claim that gives a difference of means in standard deviations; StudyError when there is none."""
    for claim in corpus.claims:
        if claim.statistic == "effect":
            return claim
    raise StudyError("Looking for a difference in standard deviations: no claim gives one.")


def effect_sizes(corpus: Corpus) -> pd.DataFrame:
    """The printed difference, divided in each of the ways that are open, and with the layer that was left out.

    Returns:
        Columns ``divided_by``, ``n_first``, ``n_second``, ``mean_first``, ``mean_second`` and ``effect``.
    """
    claim = effect_claim(corpus)
    first, second = (
        _values(corpus, cells_of(part, claim.roles, corpus.n_layers)) for part in claim.members.split(" - ")
    )
    whole = _values(corpus, _with_baseline(claim, corpus))
    rows = [
        _row("pooled std, ddof 0", first, second, _pooled(first, second, 0)),
        _row("pooled std, ddof 1", first, second, _pooled(first, second, 1)),
        _row("std of the second set, ddof 0", first, second, float(np.std(second))),
        _row("std of the first set, ddof 0", first, second, float(np.std(first))),
        _row(
            "pooled, baseline layer in both sets",
            whole,
            second,
            _pooled(whole, second, 0),
        ),
    ]
    return pd.DataFrame(rows)


def least_pvalue(corpus: Corpus) -> float:
    """The smallest p-value that any reshuffling of these values between the two sets can give."""
    claim = effect_claim(corpus)
    sizes = [len(cells_of(part, claim.roles, corpus.n_layers)) for part in claim.members.split(" - ")]
    return 1 / math.comb(sum(sizes), sizes[0])


def _with_baseline(claim: Claim, corpus: Corpus) -> list[Cell]:
    """The first set with the same pair at the layer that the second set takes as its baseline."""
    first, second = (cells_of(part, claim.roles, corpus.n_layers) for part in claim.members.split(" - "))
    layer, pair = second[0].a.layer, first[0]
    other = pair.b or pair.a
    return [Cell(pair.role, Vector(pair.a.model, layer), Vector(other.model, layer)), *first]


def _values(corpus: Corpus, cells: Sequence[Cell]) -> list[float]:
    found = [best(corpus.published.bounds("cosine", cell)) for cell in cells]
    if len(known := [bound.known.middle for bound in found if bound]) < len(cells):
        raise StudyError("Taking a difference in standard deviations apart: not all of its values were published.")
    return known


def _pooled(first: Sequence[float], second: Sequence[float], ddof: int) -> float:
    return math.sqrt((float(np.var(first, ddof=ddof)) + float(np.var(second, ddof=ddof))) / 2)


def _row(divided_by: str, first: Sequence[float], second: Sequence[float], std: float) -> dict[str, object]:
    means = {"mean_first": float(np.mean(first)), "mean_second": float(np.mean(second))}
    effect = (means["mean_first"] - means["mean_second"]) / std
    return {"divided_by": divided_by, "n_first": len(first), "n_second": len(second), **means, "effect": effect}

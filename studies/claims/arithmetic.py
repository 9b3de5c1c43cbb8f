"""This module computes the published numbers that follow from a definition alone, with no weights at all.

They are: random vectors of a stated mean and standard deviation, the length of a vector of ones, the two drawn vectors
of a figure, and r less centred cosine.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from studies.claims import closed_form
from studies.claims.bounds import Bound, Lookup
from studies.claims.evaluate import Finding, compared
from studies.claims.intervals import exactly
from studies.claims.rows import Claim

__all__ = ["ALONE", "alone"]

ALONE = ("random", "ones", "toy", "")
"""Members of a claim that needs no weights; the empty one is an identity between two measures."""

MEAN, STD = 1.0, 0.1
"""Of the random vectors, as the document states them."""

_SOURCE = ("closed form",)


def alone(claim: Claim, lookup: Lookup) -> list[Finding]:
    """A claim beside what its definition gives; empty for a measure that is not defined here."""
    if claim.members == "toy":
        return _drawn(claim, lookup)
    known = {"random": _random, "ones": _ones, "": _identity}[claim.members]()
    value = known.get((claim.metric, claim.statistic))
    return [] if value is None else [_finding(claim, value)]


def _random() -> dict[tuple[str, str], float]:
    """Mean and standard deviation of each measure over pairs of independent normal vectors, to the first order.

    With share c² = m² / (m² + s²), the cosine has mean c². Its deviations come from the covariance, of variance
    s⁴ / d over (m² + s²)², and to the same order from the two variances, which move c² itself.
    """
    d, square = closed_form.HIDDEN_SIZE, MEAN**2 + STD**2
    share = MEAN**2 / square
    ratio = (STD / MEAN) ** 2
    # Each vector's share moves with its variance (rel. sd sqrt(2/d)) and with its mean (sd s / sqrt(d)).
    of_one = share * math.sqrt((ratio * share) ** 2 * 2 / d + (2 * ratio * share) ** 2 * ratio / d) / 2
    spread = math.hypot(STD**2 / square / math.sqrt(d), math.sqrt(2) * of_one)
    l2_mean = STD * math.sqrt(2) * math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))
    l2_std = math.sqrt(2 * STD**2 * d - l2_mean**2)
    return {
        ("cosine", "mean of draws"): share,
        ("cosine", "std of draws"): spread,
        ("pearson", "mean of draws"): 0.0,
        ("pearson", "std of draws"): 1 / math.sqrt(d - 1),
        ("l2", "mean of draws"): l2_mean,
        ("l2", "std of draws"): l2_std,
    }


def _ones() -> dict[tuple[str, str], float]:
    return {("norm", ""): math.sqrt(closed_form.HIDDEN_SIZE)}


def _identity() -> dict[tuple[str, str], float]:
    """r is the cosine of the centred vectors: the same sums, so the difference is zero."""
    return {("identity", ""): 0.0}


def _drawn(claim: Claim, lookup: Lookup) -> list[Finding]:
    a, b = (_vector(lookup, side) for side in "ab")
    if not len(a) or len(a) != len(b):
        return []
    raw, centred = _cosine(a, b), _cosine(a - a.mean(), b - b.mean())
    values = {"cosine": raw, "pearson": centred}
    angles = {"angle": raw, "centred angle": centred}
    values |= {name: math.degrees(math.acos(cosine)) for name, cosine in angles.items()}
    return [_finding(claim, values[claim.metric])] if claim.metric in values else []


def _vector(lookup: Lookup, side: str) -> npt.NDArray[np.float64]:
    parts = [lookup.named("toy", "", f"{side}@{place}") for place in range(3)]
    return np.array([part[0].known.middle for part in parts if part])


def _cosine(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def _finding(claim: Claim, value: float) -> Finding:
    return compared(claim.allowed, Bound(exactly(value), "from its definition", _SOURCE, True))

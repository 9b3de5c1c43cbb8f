"""This module judges published numbers that need no weights: counts, sizes, and what a definition alone gives.

Each rule is arithmetic: n models make n (n - 1) / 2 pairs, two groups make the product of their sizes; vectors of
different hidden sizes have no cosine; a matrix of layers cannot have more rows than a model has norms; a checkpoint
has its parameters times the bytes of a value; a download has at least the parts that it is known to be made of. By
definition: random vectors of a stated mean and standard deviation, the length of a vector of ones, the two drawn
vectors of a figure, and r less centred cosine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from studies.claims.bounds import AGREES, CONTRADICTS, Bound, Finding, Lookup, best, compared, joined
from studies.claims.intervals import HIDDEN_SIZE, Interval, exactly, hull
from studies.claims.rows import Claim, cells_of, models_of

__all__ = ["ALONE", "COUNTS", "alone", "counts"]

_DEFINED = "by definition"


def counts(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    """Everything that arithmetic and configs say of a count; empty for one that nothing is known of.

    Args:
        claim: its metric must be one of COUNTS.
        lookup: where configs and other counts are known from.
        claims: all published numbers, for counts that must fit together.
        n_layers: decoder layers by model key.
    """
    return COUNTS[claim.metric](claim, lookup, claims, n_layers)


def _pairs(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    number = len(cells_of(claim.members, claim.roles, n_layers))
    return [compared(claim.allowed, Bound(exactly(number), "count of what is listed", (_DEFINED,), True))]


def _distances(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    cells = cells_of(claim.members, claim.roles, n_layers)
    apart = [exactly(abs(cell.a.layer - cell.b.layer)) for cell in cells if cell.b]
    return [compared(claim.allowed, Bound(hull(apart), "layers of what is listed", (_DEFINED,), True))]


def _models(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    listed = models_of(claim.members)
    sizes = {model: best(lookup.named("hidden_size", "", model)) for model in listed}
    known = [size for size in sizes.values() if size]
    found = []
    if known and (usual := known[0].known) and any(not size.known.meets(usual) for size in known):
        number = sum(size.known.meets(usual) for size in known)
        found.append(compared(claim.allowed, joined(exactly(number), "models of one hidden size", known)))
    implied = _from_pair_counts(listed, claims)
    return found + ([compared(claim.allowed, implied)] if implied else [])


def _from_pair_counts(listed: Sequence[str], claims: Sequence[Claim]) -> Bound | None:
    """How many models there were, from the printed number of their pairs, group by group."""
    left, number, names = set(listed), 0.0, []
    for claim in claims:
        group = set(models_of(claim.members))
        plain = claim.metric == "n_pairs" and claim.members.startswith("pairs(") and "," not in claim.members[-4:]
        if plain and group <= left:
            number += (1 + math.sqrt(1 + 8 * claim.allowed.middle)) / 2
            left -= group
            names.append(claim.name)
    if left or not names:
        return None
    return Bound(exactly(round(number, 9)), "solved from the number of pairs", tuple(names), False)


def _layers(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    if claim.statistic == "model":
        return _named(claim, lookup, claims, n_layers)
    wanted = [int(side) for side in claim.value.split("x")]
    found = []
    for term in claim.members.split(";"):
        models = term.split(":")
        stored = [_norms(model, lookup) for model in models]
        sides = wanted if len(wanted) == len(models) else wanted * len(models)
        for model, bound, side in zip(models, stored, sides, strict=True):
            if bound:
                outcome = AGREES if side <= bound.known.high else CONTRADICTS
                found.append(Finding(outcome, bound, f"at most the norms of {model}"))
    return found


def _norms(model: str, lookup: Lookup) -> Bound | None:
    """How many norms of one role a model has stored: its layers, and blocks that predict further tokens."""
    layers, further = (best(lookup.named(name, "", model)) for name in ("n_layers", "n_mtp"))
    if layers is None:
        return None
    number = layers.known.high + (further.known.high if further else 0.0)
    return joined(exactly(number), "norms of this role stored", [layers, *([further] if further else [])])


def _named(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    bounds = [(term, bound) for term in claim.members.split(";") for bound in lookup.named(claim.metric, "", term)]
    return [compared(claim.allowed, bound, term) for term, bound in bounds]


def _bytes(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    if claim.statistic == "download":
        return _download(claim, lookup, n_layers)
    found = []
    for model in claim.members.split(";"):
        value, whole = (best(lookup.named(name, "", model)) for name in ("bytes_per_value", "n_params"))
        number = whole.known if whole else None
        if claim.statistic == "vector":
            number = exactly(HIDDEN_SIZE)
        if value and number:
            bound = joined(
                _times(number, value.known), "values times bytes of a value", [value, *([whole] if whole else [])]
            )
            found.append(compared(claim.allowed, bound, model))
    return found


def _download(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Finding]:
    each = best(lookup.named("bytes_per_read", "", "script"))
    if each is None:
        return []
    number = len(cells_of(claim.members, claim.roles, n_layers))
    least = Interval(number * each.known.low, math.inf)
    return [compared(claim.allowed, joined(least, f"at least one read for each of {number} vectors", [each]))]


def _percent(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    if claim.statistic == "values of model":
        share = 100 * int(claim.members) * HIDDEN_SIZE / _HUNDRED_BILLION
        return [compared(claim.allowed, Bound(exactly(share), "values over parameters", (_DEFINED,), True))]
    found = []
    for model in claim.members.split(";"):
        if whole := best(lookup.named("n_params", "", model)):
            ends = [100 * HIDDEN_SIZE / end for end in (whole.known.high, whole.known.low)]
            found.append(compared(claim.allowed, joined(Interval(*ends), "channels over parameters", [whole]), model))
    return found


def _values(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    number = int(claim.members) * HIDDEN_SIZE
    return [compared(claim.allowed, Bound(exactly(number), "layers times channels", (_DEFINED,), True))]


def _times(a: Interval, b: Interval) -> Interval:
    return Interval(a.low * b.low, a.high * b.high)


_HUNDRED_BILLION = 1e11

Rule = Callable[[Claim, Lookup, Sequence[Claim], Mapping[str, int]], list[Finding]]

COUNTS: Mapping[str, Rule] = {
    "n_pairs": _pairs,
    "distance": _distances,
    "n_models": _models,
    "n_layers": _layers,
    "hidden_size": _named,
    "n_params": _named,
    "bytes": _bytes,
    "percent": _percent,
    "n_values": _values,
}
"""The rule of each metric that counts."""


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
    d, square = HIDDEN_SIZE, MEAN**2 + STD**2
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
    return {("norm", ""): math.sqrt(HIDDEN_SIZE)}


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

"""This module judges published counts and sizes: how many models, pairs, layers, parameters and bytes.

Each rule is arithmetic: n models make n (n - 1) / 2 pairs, two groups make the product of their sizes; vectors of
different hidden sizes have no cosine; a matrix of layers cannot have more rows than a model has norms; a checkpoint
has its parameters times the bytes of a value; a download has at least the parts that it is known to be made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from studies.claims import closed_form
from studies.claims.bounds import Bound, Lookup, best, joined
from studies.claims.cells import cells_of, models_of
from studies.claims.evaluate import AGREES, CONTRADICTS, Finding, compared
from studies.claims.intervals import Interval, exactly, hull
from studies.claims.rows import Claim

__all__ = ["COUNTS", "counts"]

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
            number = exactly(closed_form.HIDDEN_SIZE)
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
        share = 100 * int(claim.members) * closed_form.HIDDEN_SIZE / _HUNDRED_BILLION
        return [compared(claim.allowed, Bound(exactly(share), "values over parameters", (_DEFINED,), True))]
    found = []
    for model in claim.members.split(";"):
        if whole := best(lookup.named("n_params", "", model)):
            ends = [100 * closed_form.HIDDEN_SIZE / end for end in (whole.known.high, whole.known.low)]
            found.append(compared(claim.allowed, joined(Interval(*ends), "channels over parameters", [whole]), model))
    return found


def _values(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    number = int(claim.members) * closed_form.HIDDEN_SIZE
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

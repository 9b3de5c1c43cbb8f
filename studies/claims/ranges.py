"""This module judges statements on the values of γ themselves: ranges that must hold all of them, and extremes.

A range of values must hold the mean of every vector, and both ends that were read off a figure. Where vectors are at
hand, their least and largest values are known outright.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from studies.claims.bounds import Bound, Lookup, best, joined
from studies.claims.cells import Cell, cells_of
from studies.claims.evaluate import AGREES, CONTRADICTS, Finding, compared
from studies.claims.intervals import Interval, exactly, hull
from studies.claims.rows import Claim

__all__ = ["ranges"]


def ranges(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Finding]:
    """Everything that a lookup says of a range of γ; the metric of the claim is ``gamma``."""
    if claim.statistic == "extremes":
        return _extremes(claim, lookup, n_layers)
    cells = cells_of(claim.members, claim.roles, n_layers)
    if measured := [bound for cell in cells for bound in lookup.bounds("gamma", cell)]:
        return [_holds(claim.allowed, joined(hull(b.known for b in measured), "values", measured))]
    means = {cell: best(lookup.bounds("mean", cell)) for cell in cells}
    found = [compared(claim.allowed, bound, f"mean, {cell.layers}") for cell, bound in means.items() if bound]
    ends = [
        bound for term in claim.members.split(";") for end in ("least", "most") for bound in _end(lookup, end, term)
    ]
    return found + [compared(claim.allowed, bound, "end of the range") for bound in ends]


def _extremes(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Finding]:
    low = Interval(claim.allowed.low, claim.allowed.low + 2 * claim.half)
    high = Interval(claim.allowed.high - 2 * claim.half, claim.allowed.high)
    if measured := _measured(claim, lookup, n_layers):
        whole = hull(bound.known for bound in measured)
        ends = [joined(exactly(end), "measured", measured) for end in (whole.low, whole.high)]
        return [compared(low, ends[0], "least value"), compared(high, ends[1], "largest value")]
    least = [compared(low, bound, "least value") for bound in _end(lookup, "least", claim.members)]
    return least + [compared(high, bound, "largest value") for bound in _end(lookup, "most", claim.members)]


def _measured(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Bound]:
    """The range of each vector; of a sample of channels nothing can be measured, as it was not published which."""
    cells: Sequence[Cell] = [] if " " in claim.members else cells_of(claim.members, claim.roles, n_layers)
    return [bound for cell in cells for bound in lookup.bounds("gamma", cell)]


def _end(lookup: Lookup, end: str, members: str) -> list[Bound]:
    return lookup.named("gamma", end, members)


def _holds(allowed: Interval, values: Bound) -> Finding:
    return Finding(AGREES if values.known.within(allowed) else CONTRADICTS, values)

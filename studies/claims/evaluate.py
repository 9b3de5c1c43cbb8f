"""This module holds a published number against what is known of it, each by the rule that fits its kind.

What is known was printed elsewhere, or measured. A range of γ must hold the mean of every vector, and both ends that
were read off a figure; where vectors are at hand, their least and largest values are known outright.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from studies.claims.bounds import (
    AGREES,
    CONTRADICTS,
    OPEN,
    Bound,
    Finding,
    Lookup,
    best,
    compared,
    joined,
    of_each,
    over,
    within_groups,
    without,
)
from studies.claims.counting import ALONE, COUNTS, alone, counts
from studies.claims.intervals import Interval, exactly, hull, spread_of
from studies.claims.published import PAIRWISE, SINGLE
from studies.claims.rows import Cell, Claim, cells_of

__all__ = ["NOTHING", "Beside", "beside", "evaluate", "findings_of", "ranges"]

NOTHING = "nothing to compare"
"""What the other published numbers say of a claim where they say nothing, or nothing sharp enough."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A claim beside what is known of it from one side: the other published numbers, or vectors.

    Args:
        outcome: AGREES, CONTRADICTS or NOTHING.
        findings: those that the outcome rests on.
        n_compared: how many cells or statistics could be compared at all.
    """

    outcome: str
    findings: tuple[Finding, ...]
    n_compared: int


def findings_of(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    """Everything that a lookup says of a claim, by the rule of its metric.

    Args:
        claim: any row.
        lookup: where numbers are known from.
        claims: all rows, for counts that must fit together.
        n_layers: decoder layers by model key.
    """
    if claim.members in ALONE and claim.metric != "words":
        return alone(claim, lookup)
    if claim.metric in COUNTS:
        return counts(claim, lookup, claims, n_layers)
    if claim.metric == "gamma":
        return ranges(claim, lookup, n_layers)
    if claim.metric in (*PAIRWISE, *SINGLE):
        return evaluate(claim, lookup, n_layers)
    return []


def beside(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> Beside:
    """What a lookup says of a claim, taken together.

    Stored outputs, configs, figures and arithmetic come first: where any of them contradicts a claim, it is
    contradicted, and where any agrees, no other claim can take that back. Only where they are silent does a claim
    stand against the other claims. A number that is merely printed twice is not confirmed by that.
    """
    found = findings_of(claim, lookup, claims, n_layers)
    for firm in (True, False):
        for outcome in (CONTRADICTS, AGREES):
            of_this_kind = [one for one in found if one.bound.firm == firm and one.outcome == outcome]
            decisive = tuple(one for one in of_this_kind if outcome == CONTRADICTS or not _is_repeat(one))
            if decisive:
                return Beside(outcome, decisive, len(found))
    return Beside(NOTHING, (), len(found))


def _is_repeat(finding: Finding) -> bool:
    return not finding.bound.firm and finding.bound.how == "printed" and not finding.where


def evaluate(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Finding]:
    """Everything that this lookup says of a claim on vectors; empty where it knows nothing.

    Args:
        claim: its metric must be one of ``printed.PAIRWISE`` or ``printed.SINGLE``, ``gamma`` apart.
        lookup: where numbers are known from.
        n_layers: decoder layers by model key.
    """
    if claim.meaning == "ordering":
        return list(_ordering(claim, lookup, n_layers))
    if " - " in claim.members:
        return _difference(claim, lookup, n_layers)
    sets = [cells_of(part, claim.roles, n_layers) for part in claim.members.split(" & ")]
    return [finding for cells in sets for finding in _over(claim, lookup, cells)]


def _over(claim: Claim, lookup: Lookup, cells: Sequence[Cell]) -> list[Finding]:
    if claim.statistic in ("", "each"):
        return [*_each(claim, lookup, cells), *_ends(claim, lookup, cells)]
    if claim.statistic == "layer of most":
        return _layer_of_most(claim, lookup, cells)
    if claim.statistic == "mean or most":
        return _either(claim, lookup, cells)
    bounds = over(lookup, claim.metric, claim.statistic, cells, claim.name)
    return [compared(claim.allowed, bound) for bound in bounds]


def _each(claim: Claim, lookup: Lookup, cells: Sequence[Cell]) -> list[Finding]:
    """One finding a cell of many, from the best of what is known; every piece of evidence on a single one."""
    if len(cells) == 1:
        of_groups = within_groups(lookup, claim.metric, cells[0])
        bounds = without([*lookup.bounds(claim.metric, cells[0]), *of_groups], claim.name)
        return [compared(claim.allowed, bound) for bound in bounds]
    known = of_each(lookup, claim.metric, cells, claim.name)
    return [compared(claim.allowed, bound, cell.layers) for cell, bound in known.items()]


def _ends(claim: Claim, lookup: Lookup, cells: Sequence[Cell]) -> list[Finding]:
    """A statement on each holds for the least and for the largest, where only these are known."""
    sets = [cells] if cells[0].b is not None else [[c for c in cells if c.a.model == m] for m in _models(cells)]
    ends = ("least", "most")
    known = [(end, bound) for one in sets for end in ends for bound in lookup.together(claim.metric, end, one)]
    return [compared(claim.allowed, bound, f"{end} of all") for end, bound in known]


def _models(cells: Sequence[Cell]) -> list[str]:
    return list(dict.fromkeys(cell.a.model for cell in cells))


def _layer_of_most(claim: Claim, lookup: Lookup, cells: Sequence[Cell]) -> list[Finding]:
    printed = [compared(claim.allowed, one) for one in lookup.together(claim.metric, claim.statistic, cells)]
    known = of_each(lookup, claim.metric, cells, claim.name)
    if len(known) < len(cells) - 1:  # one unknown layer is the block beyond the last; more leave the question open
        return without_own(printed, claim.name)
    top = max(known, key=lambda cell: known[cell].known.low)
    found = joined(exactly(top.a.layer), "layer of the largest known value", list(known.values()))
    return [*without_own(printed, claim.name), compared(claim.allowed, found)]


def without_own(findings: Sequence[Finding], name: str) -> list[Finding]:
    """The findings that do not rest on the claim itself."""
    return [finding for finding in findings if name not in finding.bound.sources]


def _either(claim: Claim, lookup: Lookup, cells: Sequence[Cell]) -> list[Finding]:
    """A mean or a maximum, the text does not say which: contradicted only where neither fits."""
    means, mosts = (over(lookup, claim.metric, name, cells, claim.name) for name in ("mean", "most"))
    mean, most = best(means), best(mosts)
    if mean is None and most is None:
        return []
    parts = [part for part in (mean, most) if part]
    fits = [part for part in parts if compared(claim.allowed, part).outcome == AGREES]
    if fits:
        return [Finding(AGREES, fits[0])]
    # A maximum is at least the mean, so it lies between the mean's lower end and one.
    ends = [part.known for part in parts] + ([Interval(mean.known.low, 1.0)] if mean and not most else [])
    return [compared(claim.allowed, joined(hull(ends), "mean and maximum", parts))]


def _difference(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Finding]:
    sides = [cells_of(part, claim.roles, n_layers) for part in claim.members.split(" - ")]
    means = [best(over(lookup, claim.metric, "mean", cells, claim.name)) for cells in sides]
    if claim.statistic == "effect":
        return _effect(claim, [of_each(lookup, claim.metric, cells, claim.name) for cells in sides], sides)
    known = [mean for mean in means if mean]
    if len(known) < len(sides):
        return []
    found = known[0].known.minus(known[1].known)
    return [compared(claim.allowed, joined(found, "difference of the two means", known))]


def _effect(claim: Claim, known: Sequence[Mapping[Cell, Bound]], sides: Sequence[Sequence[Cell]]) -> list[Finding]:
    """Difference of two means over the pooled standard deviation, ddof 0."""
    if any(len(found) < len(cells) for found, cells in zip(known, sides, strict=True)):
        return []
    bounds = [list(found.values()) for found in known]
    means = [math.fsum(one.known.middle for one in found) / len(found) for found in bounds]
    stds = [spread_of([exactly(one.known.middle) for one in found], len(found)).middle for found in bounds]
    pooled = math.sqrt(math.fsum(std**2 for std in stds) / len(stds))
    value = (means[0] - means[1]) / pooled
    return [compared(claim.allowed, joined(exactly(value), "difference over pooled std", [*bounds[0], *bounds[1]]))]


def _ordering(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> Iterator[Finding]:
    for statement in claim.members.split(" & "):
        left, right = (cells_of(side, claim.roles, n_layers) for side in statement.split(" > "))
        by_layer = {(cell.role, cell.a.layer): cell for cell in right} if len(left) > 1 else {}
        for cell in left:
            other = by_layer.get((cell.role, cell.a.layer)) if by_layer else right[0]
            above = best(lookup.bounds(claim.metric, cell))
            below = best(lookup.bounds(claim.metric, other)) if other else None
            if above and below:
                yield _in_order(above, below, cell)


def _in_order(above: Bound, below: Bound, cell: Cell) -> Finding:
    bound = joined(above.known.minus(below.known), "first less second", [above, below])
    if bound.known.high < 0:
        return Finding(CONTRADICTS, bound, cell.layers)
    return Finding(AGREES if bound.known.low > 0 else OPEN, bound, cell.layers)


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
        bound
        for term in claim.members.split(";")
        for end in ("least", "most")
        for bound in lookup.named("gamma", end, term)
    ]
    return found + [compared(claim.allowed, bound, "end of the range") for bound in ends]


def _extremes(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Finding]:
    low = Interval(claim.allowed.low, claim.allowed.low + 2 * claim.half)
    high = Interval(claim.allowed.high - 2 * claim.half, claim.allowed.high)
    if measured := _measured(claim, lookup, n_layers):
        whole = hull(bound.known for bound in measured)
        ends = [joined(exactly(end), "measured", measured) for end in (whole.low, whole.high)]
        return [compared(low, ends[0], "least value"), compared(high, ends[1], "largest value")]
    least = [compared(low, bound, "least value") for bound in lookup.named("gamma", "least", claim.members)]
    return least + [compared(high, bound, "largest value") for bound in lookup.named("gamma", "most", claim.members)]


def _measured(claim: Claim, lookup: Lookup, n_layers: Mapping[str, int]) -> list[Bound]:
    """The range of each vector; of a sample of channels nothing can be measured, as it was not published which."""
    cells: Sequence[Cell] = [] if " " in claim.members else cells_of(claim.members, claim.roles, n_layers)
    return [bound for cell in cells for bound in lookup.bounds("gamma", cell)]


def _holds(allowed: Interval, values: Bound) -> Finding:
    return Finding(AGREES if values.known.within(allowed) else CONTRADICTS, values)

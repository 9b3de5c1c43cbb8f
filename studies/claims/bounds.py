"""This module holds what is known of a quantity and where it is known from, and what follows for many together.

A cell of which nothing is known may have any value that its measure can have. So a mean over layers of which one is
unknown is known to an interval, and where a printed mean lies outside of it, no value of the unknown one can save it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from studies.claims import intervals
from studies.claims.intervals import ANY_COSINE, Interval, mean_of, spread_of
from studies.claims.rows import Cell, Vector

__all__ = [
    "AGREES",
    "CONTRADICTS",
    "COSINES",
    "OPEN",
    "Bound",
    "Finding",
    "Lookup",
    "best",
    "compared",
    "joined",
    "of_each",
    "over",
    "within_groups",
    "without",
]

_MUCH_WIDER, _ROUNDED = 10.0, 1e-3
"""A firm bound ten times as wide as another, and by more than a thousandth, says less than that one."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a quantity can be.

    Args:
        known: every value that it can have.
        how: in words, how that is known: "printed", "closed form from two shares and r", ...
        sources: repos and files, or names of claims.
        firm: True where it rests on stored outputs, configs and figures, or on arithmetic alone; False where it rests
            on another claim of the five documents, which may itself be wrong.
    """

    known: Interval
    how: str
    sources: tuple[str, ...]
    firm: bool


class Lookup(Protocol):
    """Where quantities are known from: other published numbers, or measured vectors."""

    def bounds(self, metric: str, cell: Cell) -> list[Bound]:
        """Everything that is known of a measure of one cell; empty where nothing is."""

    def named(self, metric: str, statistic: str, members: str) -> list[Bound]:
        """Everything that is known of a thing that is no set of vectors; empty where nothing is."""

    def groups(self, metric: str, statistic: str) -> list[tuple[frozenset[Cell], Bound]]:
        """Sets of cells of which this statistic is known as a whole."""

    def together(self, metric: str, statistic: str, cells: Sequence[Cell]) -> list[Bound]:
        """Everything that is known of a statistic over these cells as a whole, without a look at each."""


def best(bounds: Sequence[Bound]) -> Bound | None:
    """The closest of the firm ones; of all, where even that is much wider than the closest."""
    closest = min(bounds, key=lambda bound: bound.known.half, default=None)
    firm = min((bound for bound in bounds if bound.firm), key=lambda bound: bound.known.half, default=None)
    if firm is None or closest is None or firm.known.half > _MUCH_WIDER * closest.known.half + _ROUNDED:
        return closest
    return firm


def joined(known: Interval, how: str, parts: Sequence[Bound]) -> Bound:
    """A bound that follows from others: firm where all of them are."""
    sources = tuple(dict.fromkeys(source for part in parts for source in part.sources))
    return Bound(known, how, sources, all(part.firm for part in parts))


AGREES, CONTRADICTS, OPEN = "agrees", "contradicts", "open"

_TOO_WIDE = 3.0
"""A bound more than this many times as wide as the printed number agrees with too much to count as an agreement."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one piece of evidence says of a claim.

    Args:
        outcome: AGREES, CONTRADICTS, or OPEN where the evidence is too coarse to say.
        bound: the evidence.
        where: which part of the claim it is about, empty for the whole.
    """

    outcome: str
    bound: Bound
    where: str = ""


def compared(allowed: Interval, bound: Bound, where: str = "") -> Finding:
    """A printed number beside what it can be."""
    if not bound.known.meets(allowed):
        return Finding(CONTRADICTS, bound, where)
    inside = bound.known.within(allowed) or bound.known.half <= _TOO_WIDE * allowed.half < math.inf
    return Finding(AGREES if inside else OPEN, bound, where)


COSINES = ("cosine", "pearson")
"""Measures that lie between -1 and 1 and obey the triangle inequality of angles."""

_LARGEST_STD = 1.0
"""No standard deviation of numbers between -1 and 1 is larger."""


def of_each(lookup: Lookup, metric: str, cells: Sequence[Cell], apart_from: str) -> dict[Cell, Bound]:
    """The best bound of each cell of which anything is known, none that rests on the claim itself."""
    found = {cell: best(without(lookup.bounds(metric, cell), apart_from)) for cell in cells}
    return {cell: bound for cell, bound in found.items() if bound is not None}


def over(lookup: Lookup, metric: str, statistic: str, cells: Sequence[Cell], apart_from: str) -> list[Bound]:
    """Everything that follows for a statistic over these cells.

    Args:
        lookup: where numbers are known from.
        metric: the measure.
        statistic: ``mean``, ``std``, ``most`` or ``std of layer means``.
        cells: what it is taken over.
        apart_from: the claim in question, on which no bound may rest.
    """
    whole = list(lookup.together(metric, statistic, cells))
    if statistic == "std of layer means":
        return without([*whole, *_layer_means(lookup, metric, cells, apart_from)], apart_from)
    known = of_each(lookup, metric, cells, apart_from)
    firm = {cell: bound for cell, bound in known.items() if bound.firm}
    whole += _from_cells(metric, statistic, firm, len(cells)) if firm else []
    whole += _from_cells(metric, statistic, known, len(cells)) if len(known) > len(firm) else []
    if statistic in ("mean", "std"):
        whole += _from_parts(lookup, metric, statistic, cells, apart_from)
    if statistic == "mean" and metric in COSINES:
        whole += _by_third_model(lookup, metric, cells, apart_from)
    return without(whole, apart_from)


def within_groups(lookup: Lookup, metric: str, cell: Cell) -> list[Bound]:
    """Of n numbers with a mean and a standard deviation, none lies further off than sqrt(n - 1) of the latter."""
    found = []
    for cells, mean in lookup.groups(metric, "mean"):
        inside = cell in cells or (cell.b is not None and Cell(cell.role, cell.b, cell.a) in cells)
        for std in lookup.together(metric, "std", list(cells)) if inside else ():
            reach = math.sqrt(len(cells) - 1) * std.known.high
            known = Interval(mean.known.low - reach, mean.known.high + reach)
            found.append(joined(known, f"mean and std of {len(cells)}, of which it is one", [mean, std]))
    return found


def without(bounds: Iterable[Bound], name: str) -> list[Bound]:
    """The bounds that do not rest on one claim: no number is held against itself."""
    return [bound for bound in bounds if name not in bound.sources]


def _from_cells(metric: str, statistic: str, known: dict[Cell, Bound], n: int) -> list[Bound]:
    intervals, missing = [bound.known for bound in known.values()], n - len(known)
    if missing and metric not in COSINES:
        return []
    how = f"{'mean' if statistic == 'mean' else statistic} of the {n} values"
    how += f", of which {missing} may have any value" if missing else ""
    if statistic == "mean":
        return [joined(mean_of([*intervals, *[ANY_COSINE] * missing]), how, list(known.values()))]
    if statistic == "std":
        return [joined(spread_of(intervals, n, _LARGEST_STD), how, list(known.values()))]
    most = Interval(max(one.low for one in intervals), 1.0 if missing else max(one.high for one in intervals))
    return [joined(most, "largest of the values", list(known.values()))]


def _from_parts(lookup: Lookup, metric: str, statistic: str, cells: Sequence[Cell], apart_from: str) -> list[Bound]:
    """From means of disjoint parts that cover all cells; for a standard deviation the parts must be of one size."""
    left, parts = set(cells), []
    for group, mean in sorted(lookup.groups(metric, "mean"), key=lambda one: (-len(one[0]), one[1].known.half)):
        if len(group) < len(cells) and group <= left and apart_from not in mean.sources:
            parts.append((group, mean))
            left -= group
    if left or not parts:
        return []
    means, n = [mean for _, mean in parts], len(cells)
    if statistic == "mean":
        low, high = (math.fsum(len(g) * getattr(m.known, end) for g, m in parts) / n for end in ("low", "high"))
        return [joined(Interval(low, high), f"weighted mean of {len(parts)} printed means", means)]
    stds = [best(without(lookup.together(metric, "std", list(group)), apart_from)) for group, _ in parts]
    inside = [std for std in stds if std]
    if len(inside) < len(parts) or len({len(group) for group, _ in parts}) > 1:
        return []
    between = spread_of([mean.known for mean in means], len(means))
    low, high = (
        math.sqrt(
            math.fsum(max(0.0, getattr(s.known, end)) ** 2 for s in inside) / len(parts) + getattr(between, end) ** 2
        )
        for end in ("low", "high")
    )
    return [joined(Interval(low, high), f"from {len(parts)} printed means and stds", [*means, *inside])]


def _layer_means(lookup: Lookup, metric: str, cells: Sequence[Cell], apart_from: str) -> list[Bound]:
    layers = sorted({cell.a.layer for cell in cells})
    means = [
        best(over(lookup, metric, "mean", [cell for cell in cells if cell.a.layer == layer], apart_from))
        for layer in layers
    ]
    known = [mean for mean in means if mean]
    close = [mean for mean in known if mean.known.half < ANY_COSINE.half / 10]
    if len(close) < len(layers):
        close = [mean for mean in (_printed_mean(lookup, metric, cells, layer, apart_from) for layer in layers) if mean]
    if len(close) < len(layers):
        return []
    return [joined(spread_of([mean.known for mean in close], len(close)), f"std of {len(close)} layer means", close)]


def _printed_mean(lookup: Lookup, metric: str, cells: Sequence[Cell], layer: int, apart_from: str) -> Bound | None:
    return best(without(lookup.together(metric, "mean", [c for c in cells if c.a.layer == layer]), apart_from))


def _by_third_model(lookup: Lookup, metric: str, cells: Sequence[Cell], apart_from: str) -> list[Bound]:
    """Through every model that was compared, at the same layers, with both."""
    sides = {(cell.a.model, cell.b.model) for cell in cells if cell.b and cell.a.layer == cell.b.layer}
    if len(sides) != 1 or any(cell.b is None or cell.a.layer != cell.b.layer for cell in cells):
        return []
    ((first, second),) = sides
    found = []
    for third in sorted(_compared(lookup, metric) - {first, second}):
        legs = [_leg(lookup, metric, cells, side, third, apart_from) for side in (first, second)]
        known = [leg for leg in legs if leg]
        if len(known) == len(legs):
            bound = intervals.third_side(known[0].known.cut(ANY_COSINE), known[1].known.cut(ANY_COSINE))
            found.append(joined(bound, "triangle inequality through a third model", known))
    return found


def _compared(lookup: Lookup, metric: str) -> set[str]:
    groups = lookup.groups(metric, "mean")
    return {side.model for cells, _ in groups for cell in cells for side in (cell.a, cell.b) if side is not None}


def _leg(lookup: Lookup, metric: str, cells: Sequence[Cell], model: str, third: str, apart_from: str) -> Bound | None:
    """The mean over the same layers of one model with the third; only printed or from cells, so nothing recurs."""
    wanted = [Cell(cell.role, Vector(model, cell.a.layer), Vector(third, cell.a.layer)) for cell in cells]
    known = of_each(lookup, metric, wanted, apart_from)
    complete = _from_cells(metric, "mean", known, len(wanted)) if len(known) == len(wanted) else []
    return best(without([*lookup.together(metric, "mean", wanted), *complete], apart_from))

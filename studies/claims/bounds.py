"""This module holds what is known of one quantity, and where it is known from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from studies.claims.cells import Cell
from studies.claims.intervals import Interval

__all__ = ["Bound", "Lookup", "best", "joined"]


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

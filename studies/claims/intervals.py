"""This module does arithmetic with numbers that are known only to lie between two ends, as a printed number does.

A number printed as 0.95 stands for everything from 0.945 to 0.955. Two printed values of one quantity contradict each
other when their intervals do not meet, and never for less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from lnsim.errors import ComparisonError

__all__ = ["ANY_COSINE", "Interval", "corners", "exactly", "hull", "mean_of", "spread_of"]

_ROUND_OFF = 1e-12
"""Relative; what two ways of adding up the same numbers may differ by."""


@dataclass(frozen=True, slots=True)
class Interval:
    """All numbers from `low` to `high`; either may be infinite.

    Raises:
        ComparisonError: when the ends are in the wrong order or undefined.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ComparisonError(f"An interval needs its ends in order, found {self.low} and {self.high}.")

    @property
    def middle(self) -> float:
        """Half way between the ends."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Half of the width."""
        return (self.high - self.low) / 2

    def meets(self, other: Interval) -> bool:
        """Whether any number lies in both, ends included."""
        slack = _ROUND_OFF * max(abs(end) for end in (self.low, self.high, other.low, other.high, 1.0) if _finite(end))
        return self.low <= other.high + slack and other.low <= self.high + slack

    def within(self, other: Interval) -> bool:
        """Whether all of this lies in the other."""
        return other.low <= self.low and self.high <= other.high

    def minus(self, other: Interval) -> Interval:
        """Every difference of a number here and one there."""
        return Interval(self.low - other.high, self.high - other.low)

    def cut(self, other: Interval) -> Interval:
        """What lies in both; this interval as it is where they do not meet."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Interval(low, high) if low <= high else self


ANY_COSINE = Interval(-1.0, 1.0)
"""What is known of a cosine or a correlation of which nothing is known."""


def exactly(value: float) -> Interval:
    """One number."""
    return Interval(value, value)


def hull(parts: Iterable[Interval]) -> Interval:
    """The smallest interval that holds all of these."""
    known = list(parts)
    return Interval(min(part.low for part in known), max(part.high for part in known))


def corners(function: Callable[..., float], *parts: Interval) -> Interval:
    """What a function can give that is monotone in each argument by itself: its extremes lie at the ends."""
    values = [function(*ends) for ends in product(*((part.low, part.high) for part in parts))]
    return Interval(min(values), max(values))


def mean_of(parts: Sequence[Interval]) -> Interval:
    """The mean of numbers known to these intervals."""
    return Interval(math.fsum(p.low for p in parts) / len(parts), math.fsum(p.high for p in parts) / len(parts))


def spread_of(known: Sequence[Interval], n: int, bound: float = math.inf) -> Interval:
    """The standard deviation (ddof 0) of `n` numbers of which only some are known.

    The standard deviation is a length, so it moves by no more than the rms of what its numbers move by. Numbers that
    are not known at all can lower the sum of squares around the mean by nothing, so the known ones give a lower end.

    Args:
        known: intervals of the known numbers.
        n: how many numbers there are.
        bound: the largest that it can be when some are unknown.
    """
    middles = [part.middle for part in known]
    centre = math.fsum(middles) / len(middles)
    spread = math.sqrt(math.fsum((value - centre) ** 2 for value in middles) / len(middles))
    moved = math.sqrt(math.fsum(part.half**2 for part in known) / len(known))
    low = max(0.0, spread - moved) * math.sqrt(len(known) / n)
    return Interval(low, spread + moved if len(known) == n else max(low, bound))


def _finite(value: float) -> bool:
    return math.isfinite(value)

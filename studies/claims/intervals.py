"""This module does arithmetic with numbers that are known only to lie between two ends, as a printed number does.

A number printed as 0.95 stands for everything from 0.945 to 0.955. Two printed values of one quantity contradict each
other when their intervals do not meet, and never for less.

The closed forms are of two vectors of d channels. One with mean m and standard deviation s (ddof 0) has the length
sqrt(d (m² + s²)) and the share c = m / sqrt(m² + s²), the part of its length that lies along the vector of ones. So

    cosine = c_a c_b + r sqrt(1 - c_a²) sqrt(1 - c_b²),    L2² = |a|² + |b|² - 2 |a| |b| cosine,

and any printed set of means, spreads, r, cosine and L2 can be tested without weights. On the layer table in
``data/claims`` the first formula gives the stored cosine to 1.4e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from lnsim.errors import ComparisonError

__all__ = [
    "ANY_COSINE",
    "HIDDEN_SIZE",
    "Interval",
    "corners",
    "cosine",
    "exactly",
    "hull",
    "length",
    "length_from_l2",
    "mean_of",
    "pearson",
    "ratio_of_cvs",
    "relative_l2",
    "share",
    "spread_of",
    "third_side",
]

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
        slack = _ROUND_OFF * max(
            abs(end) for end in (self.low, self.high, other.low, other.high, 1.0) if math.isfinite(end)
        )
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


HIDDEN_SIZE = 4096
"""Channels of every model that the published numbers compare with another."""


def share(mean: Interval, std: Interval) -> Interval:
    """Mean over root mean square."""
    return corners(lambda m, s: m / math.hypot(m, s), mean, std)


def length(mean: Interval, std: Interval) -> Interval:
    """Length of a vector; `mean` must not reach from below zero to above it."""
    return corners(lambda m, s: math.sqrt(HIDDEN_SIZE) * math.hypot(m, s), mean, std)


def cosine(share_a: Interval, share_b: Interval, r: Interval = ANY_COSINE) -> Interval:
    """What the cosine can be, given two shares and r; at most one of the shares may be wide."""
    values = []
    for end_a, end_b, end_r in product(_ends(share_a), _ends(share_b), _ends(r)):
        values += [_cosine(a, end_b, end_r) for a in (end_a, *_turning(share_a, end_b, end_r))]
        values += [_cosine(end_a, b, end_r) for b in _turning(share_b, end_a, end_r)]
    return Interval(min(values), max(values)).cut(ANY_COSINE)


def pearson(cosine: Interval, share_a: Interval, share_b: Interval) -> Interval:
    """r, given a cosine and two shares."""
    return corners(lambda c, a, b: (c - a * b) / math.sqrt((1 - a * a) * (1 - b * b)), cosine, share_a, share_b).cut(
        ANY_COSINE
    )


def relative_l2(length_a: Interval, length_b: Interval, cosine: Interval) -> Interval:
    """Length of a - b over that of a, given both lengths and the cosine."""
    ratio = corners(lambda a, b: b / a, length_a, length_b)
    ends = [_distance(q, c) for q, c in product(_ends(ratio), _ends(cosine))]
    ends += [math.sqrt(max(0.0, 1 - c * c)) for c in _ends(cosine) if ratio.low <= c <= ratio.high]
    return Interval(min(ends), max(ends))


def length_from_l2(length_a: Interval, l2: Interval, cosine: Interval) -> Interval:
    """The length of b, given that of a, the L2 distance and the cosine: the quadratic's roots, and all between them."""
    found = []
    for a, distance, c in product(_ends(length_a), _ends(l2), _ends(cosine)):
        root = math.sqrt(max(0.0, distance**2 - a * a * (1 - c * c)))
        found += [value for value in (a * c + root, a * c - root) if value > 0]
    return Interval(min(found), max(found))


def ratio_of_cvs(mean_a: Interval, std_a: Interval, mean_b: Interval, std_b: Interval) -> Interval:
    """The larger coefficient of variation over the smaller one."""
    a, b = (corners(lambda m, s: s / abs(m), mean, std) for mean, std in ((mean_a, std_a), (mean_b, std_b)))
    ratio = corners(lambda x, y: x / y, a, b)
    parts = [Interval(max(1.0, ratio.low), ratio.high)] if ratio.high >= 1 else []
    return hull([*parts, *_flipped(ratio)])


def third_side(first: Interval, second: Interval) -> Interval:
    """What the cosine of a and b can be, given those of a and c and of c and b: angles obey the triangle inequality.

    It holds for r as well, and for means over layers: a mean of cosines is the cosine of the vectors set end to end,
    each layer brought to length one.
    """
    angles = [[math.acos(max(-1.0, min(1.0, end))) for end in _ends(side)] for side in (first, second)]
    (least_a, most_a), (least_b, most_b) = sorted(angles[0]), sorted(angles[1])
    widest = min(most_a + most_b, math.pi)
    narrowest = max(0.0, least_a - most_b, least_b - most_a)
    return Interval(math.cos(widest), math.cos(narrowest))


def _cosine(a: float, b: float, r: float) -> float:
    return a * b + r * math.sqrt(max(0.0, 1 - a * a)) * math.sqrt(max(0.0, 1 - b * b))


def _turning(free: Interval, other: float, r: float) -> list[float]:
    """Shares inside the interval at which the cosine turns."""
    across = r * math.sqrt(max(0.0, 1 - other * other))
    radius = math.hypot(other, across)
    if radius == 0:
        return []
    return [value for value in (other / radius, -other / radius) if free.low <= value <= free.high]


def _distance(ratio: float, cosine: float) -> float:
    return math.sqrt(max(0.0, 1 + ratio**2 - 2 * ratio * cosine))


def _flipped(ratio: Interval) -> list[Interval]:
    return [Interval(max(1.0, 1 / ratio.high), 1 / ratio.low)] if ratio.low < 1 else []


def _ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high

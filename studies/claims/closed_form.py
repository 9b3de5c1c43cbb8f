"""This module computes one number of two vectors from others, in closed form, with intervals in and out.

A vector of d channels with mean m and standard deviation s (ddof 0) has the length sqrt(d (m² + s²)) and the share
c = m / sqrt(m² + s²), the part of its length that lies along the vector of ones. For two of them

    cosine = c_a c_b + r sqrt(1 - c_a²) sqrt(1 - c_b²),    L2² = |a|² + |b|² - 2 |a| |b| cosine,

so a cosine is two shares and one r, and any printed set of means, spreads, r, cosine and L2 can be tested without
weights. On the layer table in ``data/claims`` the first formula gives the stored cosine to 1.4e-6.
"""

from __future__ import annotations

import math
from itertools import product

from studies.claims.intervals import ANY_COSINE, Interval, corners, hull

__all__ = [
    "HIDDEN_SIZE",
    "cosine",
    "length",
    "length_from_l2",
    "pearson",
    "ratio_of_cvs",
    "relative_l2",
    "share",
    "third_side",
]

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

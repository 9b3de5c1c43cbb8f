"""This module asks which channels carry a correlation: what is left of it when a channel is taken out.

For rows without their mean, x and y, of n channels, the correlation without channel i needs no second pass over the
others. With ``c = n / (n - 1)`` it is

    (x.y - c x_i y_i) / sqrt((x.x - c x_i^2) (y.y - c y_i^2)),

since taking one value out moves the mean by the rest of the others. So all channels cost as much as one.

Taking out the channels with the largest influence always lowers a correlation: they were chosen for that. To say what
a correlation is without *extreme* channels, ``without_extremes`` chooses them in each stack by their distance from the
middle of their own rows, which knows nothing of the other model; the permutation test of what is left is then as good a
test as that of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import Floats
from lnsim.measure.rows import centre, check_pair

__all__ = [
    "EXTREME",
    "Carried",
    "carrying_channels",
    "channel_influence",
    "extreme_channels",
    "r_without_each",
    "without_extremes",
]

EXTREME = 0.01
"""Share of a stack's channels that count as its extreme ones."""


def r_without_each(a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
    """Pearson r of matched rows without each channel in turn.

    Args:
        a: shape ``(n_layers, hidden_size)``, at least 3 channels.
        b: the same shape; row i of `a` is compared with row i of `b`.

    Returns:
        Shape ``(n_layers, hidden_size)``: entry (i, j) is r of the rows i without channel j; NaN where a row is
        constant without it.

    Raises:
        ComparisonError: for shapes that do not match, or fewer than 3 channels.
    """
    x, y = _centred(a, b)
    factor = x.shape[1] / (x.shape[1] - 1)
    products, squares_x, squares_y = (_without(one * other, factor) for one, other in ((x, y), (x, x), (y, y)))
    # A row whose only spread is one channel keeps a rounding error without it, and has no r
    defined = (squares_x > 1e-12 * _sums(x * x)) & (squares_y > 1e-12 * _sums(y * y))
    lengths = np.sqrt(np.where(defined, squares_x * squares_y, 1.0))
    return np.where(defined, products / lengths, np.nan)


def channel_influence(a: npt.ArrayLike, b: npt.ArrayLike) -> pd.DataFrame:
    """What every channel does to the mean r of matched rows, the most influential first.

    Args:
        a: shape ``(n_layers, hidden_size)``; b the same.

    Returns:
        Index ``channel``; columns ``r_without`` (the mean r without this channel), ``influence`` (the mean r less
        that) and ``share``, the channel's part of the mean r as a sum over channels.

    Raises:
        ComparisonError: as ``r_without_each``, or when a row is constant.
    """
    x, y = _centred(a, b)
    lengths = np.sqrt(_sums(x * x) * _sums(y * y))
    if (constant := np.flatnonzero(lengths[:, 0] == 0)).size:
        raise ComparisonError(f"Taking channels out: row {constant[0]} is constant, so no correlation is defined.")
    parts = (x * y / lengths).mean(axis=0)
    without = r_without_each(a, b).mean(axis=0)
    frame = pd.DataFrame({"r_without": without, "influence": parts.sum() - without, "part": parts})
    frame = frame.rename_axis("channel").rename(columns={"part": "share"})
    return frame.reindex(frame["influence"].abs().sort_values(ascending=False, kind="stable").index)


@dataclass(frozen=True, slots=True)
class Carried:
    """A mean r, and the fewest channels, one after the other, without which it is near 0.

    Args:
        r: with all channels.
        channels: those taken out, the most influential first.
        r_without: without them.
        hidden_size: how many channels there are in all.
    """

    r: float
    channels: tuple[int, ...]
    r_without: float
    hidden_size: int


def carrying_channels(a: npt.ArrayLike, b: npt.ArrayLike, below: float, most: int = 10) -> Carried:
    """Take out the most influential channel, then the most influential of those left, until the mean r is small.

    Args:
        a: shape ``(n_layers, hidden_size)``; b the same.
        below: stop as soon as the absolute mean r is at most this.
        most: stop after so many channels, whatever is left.

    Where the pattern is shared by all channels, `most` of them leave nearly the whole r: that is what a few channels
    that carry it have to be told from. The choice is made by looking at the result, so `r_without` has no p-value.

    Raises:
        ComparisonError: as ``channel_influence``.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    left = np.arange(x.shape[-1])
    taken: list[int] = []
    whole = r = _mean_r(x, y)
    while abs(r) > below and len(taken) < min(most, x.shape[1] - 3):
        influence = channel_influence(x[:, left], y[:, left])
        # Only a channel that pulls r away from 0 is a carrier
        place = int((influence["influence"] * np.sign(r)).idxmax())
        r = float(influence["r_without"][place])
        taken.append(int(left[place]))
        left = np.delete(left, place)
    return Carried(whole, tuple(taken), r, x.shape[1])


def extreme_channels(rows: npt.ArrayLike, share: float = EXTREME) -> tuple[int, ...]:
    """The channels of a stack that lie farthest from the middle.

    Args:
        rows: shape ``(n_layers, hidden_size)``.
        share: of the channels, at least one.

    Returns:
        Channel numbers, the farthest first. Distance is the root mean square, over layers, of the distance from the
        row's median in units of its median absolute deviation, so that a few far values do not hide one another.
    """
    wide = np.asarray(rows, dtype=np.float64)
    off = np.abs(wide - np.median(wide, axis=1, keepdims=True))
    middle = np.median(off, axis=1, keepdims=True)
    usual = np.where(middle > 0, middle, off.mean(axis=1, keepdims=True))
    distance = (np.divide(off, usual, out=np.zeros_like(off), where=usual > 0) ** 2).mean(axis=0)
    n = max(1, round(share * wide.shape[1]))
    return tuple(int(channel) for channel in np.argsort(-distance, kind="stable")[:n])


def without_extremes(rows: npt.ArrayLike, share: float = EXTREME) -> Floats:
    """The stack with its extreme channels at the mean of the others in each row, so that they bear no witness.

    Args:
        rows: shape ``(n_layers, hidden_size)``; `share` as in ``extreme_channels``.
    """
    found = np.array(rows, dtype=np.float64)
    extreme = list(extreme_channels(found, share))
    found[:, extreme] = np.delete(found, extreme, axis=1).mean(axis=1, keepdims=True)
    return found


def _centred(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Floats]:
    rows_a, rows_b = check_pair(a, b)
    if rows_a.shape != rows_b.shape or rows_a.shape[1] < 3:
        raise ComparisonError(
            f"Taking channels out of matched rows: expected two arrays of one shape (n_layers, hidden_size) with at "
            f"least 3 channels, got {rows_a.shape} and {rows_b.shape}."
        )
    return tuple(centre(rows.astype(np.float64))[1] for rows in (rows_a, rows_b))  # type: ignore[return-value]


def _sums(values: Floats) -> Floats:
    return np.asarray(values.sum(axis=1, keepdims=True))


def _without(terms: Floats, factor: float) -> Floats:
    """Sums over the channels without each of them, the mean taken anew."""
    return np.asarray(_sums(terms) - factor * terms)


def _mean_r(x: Floats, y: Floats) -> float:
    first, second = _centred(x, y)
    lengths = np.sqrt(_sums(first * first) * _sums(second * second))
    return float((_sums(first * second) / lengths).mean())

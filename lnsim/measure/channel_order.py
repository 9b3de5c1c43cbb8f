"""This module asks of one model whether its channels stand in an order of their own.

The test of two models needs that channels of one number have nothing in common in strangers. That fails where the
design treats certain channels alike in every model: fixed sines and cosines added to the tokens give each channel a
frequency, the same one in all models, and γ learns to follow it. It shows in one model alone: γ as a function of the
channel's number is smooth, or its halves resemble each other, where channels in random order would be noise.

The statistic is the energy of γ (each norm without its mean and of length 1, mean over the norms) in the first four
cosines over the channels, in four layouts: all channels in a row; the two halves added; the two halves apart; even and
odd channels apart. From each its expectation under permuted channels is taken, in units of the square root of the
number of cosines, and the largest counts; its null are permutations of the channels, one for all norms at a time. Of
models in random order four in five are left after 49 of them; one near the level gets 3,999.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import Floats, centred_unit
from lnsim.measure.permutation import Orders, channel_orders

_Singles = npt.NDArray[np.float32]

FIRES = 0.01  # p up to which the channels of a model are said to have an order of their own
_COSINES = 4
# Permutations after which p is looked at, and the p up to which, and above which, the drawing ends.
LOOKS = {
    49: (0.0, 20 * FIRES), 199: (0.0, 5 * FIRES), 599: (0.0, 3 * FIRES), 1_999: (FIRES / 5, 2 * FIRES),
    3_999: (1.0, 1.0),
}  # fmt: skip

_VALUES = 2**20  # values gathered at a time, 4 MB: they stay in the cache


def channel_order(rows: npt.ArrayLike, seed: int = 0) -> float:
    """p of the question whether the channels of one model stand in an order of their own.

    Rows are γ of the norms of one residual stream, shape ``(n_rows, hidden_size)``. ComparisonError when there are
    fewer than 16 channels, no row, or a constant one.
    """
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim != 2 or not len(values) or values.shape[1] < 4 * _COSINES:
        raise ComparisonError(
            f"Looking for an order of channels: expected rows of {4 * _COSINES} channels or more, found {values.shape}."
        )
    units = (centred_unit(values) * np.sqrt(values.shape[1] - 1)).astype(np.float32)
    columns, widths = _patterns(values.shape[1])
    # Float32 is off by less; a permutation that comes so near counts as a hit, so that p is none too small for it.
    observed = float(_largest((units @ columns)[None], widths)[0]) - 1e-4
    hits, drawn, p = 0, 0, 1.0
    for until, (low, high) in LOOKS.items():
        orders = _orders(values.shape[1], until - drawn, seed, drawn)
        step = max(1, _VALUES // (values.shape[1] * min(len(units), columns.shape[1])))
        for start in range(0, until - drawn, step):
            projected = _projected(units, columns, orders[:, start : start + step])
            hits += int(np.count_nonzero(_largest(projected, widths) >= observed))
        drawn, p = until, (1 + hits) / (1 + until)
        if p <= low or p > high:
            break
    return p


@lru_cache(4)
def _patterns(size: int) -> tuple[_Singles, list[int]]:
    """The cosines of all layouts as columns, and how many each has."""
    patterns = [layout(size).astype(np.float32) for layout in LAYOUTS.values()]
    return np.concatenate(patterns, axis=1), [pattern.shape[1] for pattern in patterns]


@lru_cache(len(LOOKS))  # whoever looks among many models asks this of each
def _orders(size: int, n_permutations: int, seed: int, drawn: int) -> Orders:
    return channel_orders(size, n_permutations, seed if not drawn else [seed, drawn])


def _projected(units: _Singles, columns: _Singles, orders: Orders) -> _Singles:
    """Rows of γ on the columns under each permutation, shape ``(n_permutations, n_rows, n_columns)``.

    What there is less of is moved, the rows or the columns.
    """
    moved = orders.astype(np.intp)  # take is faster by indices of its own kind
    if len(units) < columns.shape[1]:
        rows = np.ascontiguousarray(units.T).take(moved, axis=0).reshape(len(columns), -1)
        return np.asarray((columns.T @ rows).reshape(columns.shape[1], -1, len(units)).transpose(1, 2, 0))
    cosines = columns.take(moved, axis=0).reshape(len(columns), -1)
    return np.asarray((units @ cosines).reshape(len(units), -1, columns.shape[1]).swapaxes(0, 1))


def _largest(projected: _Singles, widths: list[int]) -> Floats:
    """The statistic of each arrangement, from its rows' projections on the cosines of all layouts."""
    energy = (projected**2).mean(axis=1, dtype=np.float64)
    parts = np.split(energy, np.cumsum(widths)[:-1], axis=1)
    # Under permuted channels each cosine has an energy of 1 in the mean.
    each = [(part.sum(axis=1) - part.shape[1]) / part.shape[1] ** 0.5 for part in parts]
    return np.asarray(np.max(each, axis=0))


def _cosines(size: int) -> Floats:
    """The first cosines over so many channels, as columns of length 1."""
    angles = np.pi * (np.arange(size)[:, None] + 0.5) * np.arange(1, 1 + _COSINES) / size
    return np.asarray(np.cos(angles) * np.sqrt(2 / size))


def _folded(size: int) -> Floats:
    half = size // 2
    added = np.concatenate([_cosines(half)] * 2) / np.sqrt(2)
    return np.pad(added, ((0, size - 2 * half), (0, 0)))


def _halves(size: int) -> Floats:
    half = size // 2
    found = np.zeros((size, 2 * _COSINES))
    found[:half, :_COSINES], found[half:, _COSINES:] = _cosines(half), _cosines(size - half)
    return found


def _every_second(size: int) -> Floats:
    found = np.zeros((size, 2 * _COSINES))
    found[::2, :_COSINES], found[1::2, _COSINES:] = _cosines(size - size // 2), _cosines(size // 2)
    return found


LAYOUTS: Mapping[str, Callable[[int], Floats]] = {
    "all channels in a row": _cosines,
    "the two halves added": _folded,
    "the two halves apart": _halves,
    "even and odd channels apart": _every_second,
}
"""Patterns over the channels by the layout they belong to: columns, shape ``(hidden_size, n)``."""

"""This module gives each measure of an alignment two nulls: the layers in any order, and the channels in any order.

``layer_nulls`` breaks which layer number belongs to which layer of b. Every value stays, so it speaks of *order* alone.
Neighbouring layers of a model resemble each other, which makes the matrix of two strangers smooth as well, and a smooth
matrix is not like its shuffled self: among drawn strangers whose neighbours have r = 0.9, a third of the best offsets
fall below 0.05. A small p there is no sign of a common origin by itself. With few layers it cannot even be small: 3
layers have 6 orders.

``pattern_nulls`` breaks which channel of a stands beside which of b, by one permutation shared by all layers, and makes
the whole matrix anew. It keeps how the layers of each model resemble each other, so it is the one to ask whether two
models align better than strangers do. It rests on the assumptions of ``lnsim.measure.permutation``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix, Places, margins, rates
from lnsim.measure.nulls import Floats, NullResult, centred_unit, pvalue
from lnsim.measure.permutation import Orders

__all__ = ["MEASURES", "layer_nulls", "layer_orders", "longest_ascents", "match_in_order", "pattern_nulls"]

MEASURES: Mapping[str, str] = {
    "offset": "mean of the cells at the best offset, which is chosen anew each time",
    "rate": "share of the matched layers whose best partner has the same number",
    "margin": "matched value less the largest other one in its row, on average",
    "match": "share of the best one-to-one match that keeps the order of the layers",
}
"""What both nulls judge, with the statistic of each. Large values are the evidence, so every p is one-sided."""

_BATCH = 256
"""Matrices at a time: 256 of 46 x 48 cells take 4.5 MB."""


def layer_orders(n_layers: int, n_permutations: int, seed: int) -> Places:
    """Orders of the layers, one a row, shape ``(n_permutations, n_layers)``; one layer has a single order."""
    if n_layers < 2 or n_permutations < 1:
        raise ComparisonError(
            f"Permuting {n_layers} layers {n_permutations} times: expected at least 2 layers and 1 permutation."
        )
    rows = np.broadcast_to(np.arange(n_layers, dtype=np.intp), (n_permutations, n_layers))
    return np.random.default_rng(seed).permuted(rows, axis=1)


def layer_nulls(matrix: pd.DataFrame, n_permutations: int, seed: int, min_share: float = 0.5) -> dict[str, NullResult]:
    """The measures of an alignment beside their nulls over orders of b's layers.

    Args:
        matrix: likeness by layer, its labels are the layer numbers.
        n_permutations: orders of the layers of b, the same ones for all measures.
        seed: of the orders.
        min_share: which offsets count, as in ``LayerMatrix.offsets``.

    Returns:
        By the name in MEASURES. The best one-to-one match pairs the same vectors whatever their order; what is judged
        is whether the pairs *keep* the order.

    Raises:
        ComparisonError: for undefined values, fewer than 2 layers of b, or no layer number in common.
    """
    cells = _Cells.of(matrix, min_share)
    values = cells.matrix.values
    orders = layer_orders(matrix.shape[1], n_permutations, seed)
    parts = [
        _measures(cells, values[:, orders[start : start + _BATCH]].swapaxes(0, 1))
        for start in range(0, len(orders), _BATCH)
    ]
    found, _, places = match_in_order(values)
    nulls = _judged(_measures(cells, values[np.newaxis]), parts)
    ascents = longest_ascents(np.argsort(orders, axis=1)[:, places]) / len(places)
    return nulls | {"match": pvalue(found, ascents, "greater")}


def pattern_nulls(
    a: npt.ArrayLike, b: npt.ArrayLike, matrix: pd.DataFrame, orders: Orders, min_share: float = 0.5
) -> dict[str, NullResult]:
    """The measures of an alignment beside their nulls over permutations of the channels.

    Args:
        a: rows of one model, shape ``(n_layers_a, hidden_size)``; b those of the other.
        matrix: their Pearson correlations; its labels are the layer numbers.
        orders: as ``permutation.channel_orders`` makes them; 999 of 46 x 46 x 4096 take some seconds.
        min_share: which offsets count, as in ``LayerMatrix.offsets``.

    Returns:
        By the name in MEASURES, and ``match_mean``: the mean value of the best one-to-one match.

    Raises:
        ComparisonError: for a constant row, undefined values, or permutations of another number of channels.
    """
    unit_a, unit_b = (centred_unit(np.asarray(rows, dtype=np.float64)) for rows in (a, b))
    if len(orders) != unit_a.shape[1] or matrix.shape != (len(unit_a), len(unit_b)):
        raise ComparisonError(
            f"Permuting the channels of {unit_a.shape} and {unit_b.shape}: the matrix given is {matrix.shape}, the "
            f"permutations are of {len(orders)} channels."
        )
    cells = _Cells.of(matrix, min_share)
    measured = _all_measures(cells, (unit_a @ unit_b.T)[np.newaxis])
    return _judged(measured, [_all_measures(cells, part) for part in _permuted(unit_a, unit_b, orders)])


def match_in_order(values: Floats) -> tuple[float, Places, Places]:
    """Of the best one-to-one match: the share that keeps the order, and its cells, rows ascending and columns."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = (np.asarray(side) for side in linear_sum_assignment(values, maximize=True))
    return float(longest_ascents(columns[np.newaxis])[0]) / len(columns), rows, columns


def longest_ascents(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Length of the longest ascending part of each row, entries between its members being left out.

    >>> longest_ascents(np.array([[0, 1, 5, 2, 3], [4, 3, 2, 1, 0]])).tolist()
    [4, 1]
    """
    lengths = np.ones(rows.shape, dtype=np.int64)
    for place in range(1, rows.shape[1]):
        before = np.where(rows[:, :place] < rows[:, place : place + 1], lengths[:, :place], 0)
        lengths[:, place] += before.max(axis=1)
    return np.asarray(lengths.max(axis=1))


def _permuted(unit_a: Floats, unit_b: Floats, orders: Orders) -> Iterator[Floats]:
    """Matrices of the correlations with b's channels permuted, some at a time."""
    for start in range(0, orders.shape[1], _BATCH):
        some = np.asarray(orders[:, start : start + _BATCH].T, dtype=np.intp)
        yield np.stack([unit_a @ unit_b[:, order].T for order in some])


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """A matrix, its cells at equal layer numbers, and the flat places of those of each offset that counts."""

    matrix: LayerMatrix
    matched: tuple[Places, Places]
    offsets: tuple[Places, ...]

    @classmethod
    def of(cls, matrix: pd.DataFrame, min_share: float) -> _Cells:
        found = LayerMatrix.of(matrix)
        return cls(found, found.partners(0), tuple(found.offsets(min_share).values()))


def _measures(cells: _Cells, values: Floats) -> dict[str, Floats]:
    """The measures that need no match, of many matrices, shape ``(n, n_layers_a, n_layers_b)``."""
    flat = values.reshape(len(values), -1)
    return {
        "offset": np.max([flat[:, places].mean(axis=1) for places in cells.offsets], axis=0),
        "rate": rates(values, *cells.matched),
        "margin": margins(values, *cells.matched),
    }


def _all_measures(cells: _Cells, values: Floats) -> dict[str, Floats]:
    matches = [match_in_order(one) for one in values]
    return _measures(cells, values) | {
        "match": np.array([share for share, _, _ in matches]),
        "match_mean": np.array([one[match[1:]].mean() for one, match in zip(values, matches, strict=True)]),
    }


def _judged(measured: Mapping[str, Floats], parts: Sequence[Mapping[str, Floats]]) -> dict[str, NullResult]:
    return {
        name: pvalue(float(one[0]), np.concatenate([part[name] for part in parts]), "greater")
        for name, one in measured.items()
    }

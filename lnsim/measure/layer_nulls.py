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

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure import alignment
from lnsim.measure.alignment_many import Cells, Places, gaps, longest_ascents
from lnsim.measure.nulls import Floats, NullResult, centred_unit, pvalue
from lnsim.measure.permutation import Orders

__all__ = ["MEASURES", "layer_nulls", "layer_orders", "match_in_order", "pattern_nulls"]

MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "offset": "mean of the cells at the best offset, which is chosen anew each time",
        "rate": "share of the matched layers whose best partner has the same number",
        "margin": "matched value less the largest other one in its row, on average",
        "match": "share of the best one-to-one match that keeps the order of the layers",
    }
)
"""What both nulls judge, with the statistic of each. Large values are the evidence, so every p is one-sided."""

_BATCH = 256
"""Matrices at a time: 256 of 46 x 48 cells take 4.5 MB."""


def layer_orders(n_layers: int, n_permutations: int, seed: int) -> Places:
    """Orders of the layers, one a row, shape ``(n_permutations, n_layers)``.

    Raises:
        ComparisonError: for fewer than 2 layers, which have one order only, or no permutation.
    """
    if n_layers < 2 or n_permutations < 1:
        raise ComparisonError(
            f"Permuting {n_layers} layers {n_permutations} times: expected at least 2 layers and 1 permutation."
        )
    rows = np.broadcast_to(np.arange(n_layers, dtype=np.intp), (n_permutations, n_layers))
    return np.random.default_rng(seed).permuted(rows, axis=1)


def layer_nulls(matrix: pd.DataFrame, n_permutations: int, seed: int, min_share: float = 0.5) -> dict[str, NullResult]:
    """The measures of an alignment beside their nulls over orders of b's layers.

    Args:
        matrix: likeness by layer, as ``lnsim.measure.alignment`` takes it.
        n_permutations: orders of the layers of b, the same ones for all measures.
        seed: of the orders.
        min_share: which offsets count, as in ``alignment.by_offset``.

    Returns:
        By the name in MEASURES. The best one-to-one match pairs the same vectors whatever their order; what is judged
        is whether the pairs *keep* the order.

    Raises:
        ComparisonError: for undefined values, fewer than 2 layers of b, or no layer number in common.
    """
    cells, values = Cells.of(matrix, min_share), matrix.to_numpy(dtype=np.float64)
    orders = layer_orders(matrix.shape[1], n_permutations, seed)
    partners = orders[:, cells.columns]
    largest = values >= values.max(axis=1, keepdims=True) - 1e-12
    shuffled = (values[:, orders[start : start + _BATCH]].swapaxes(0, 1) for start in range(0, len(orders), _BATCH))
    found, _, places = match_in_order(values)
    return {
        "offset": _judged(cells.best_means(values[np.newaxis]), [cells.best_means(part) for part in shuffled]),
        "rate": pvalue(alignment.alignment_rate(matrix), largest[cells.rows, partners].mean(axis=1), "greater"),
        "margin": pvalue(alignment.margin(matrix), gaps(values)[cells.rows, partners].mean(axis=1), "greater"),
        "match": _judged([found], [longest_ascents(np.argsort(orders, axis=1)[:, places]) / len(places)]),
    }


def pattern_nulls(
    a: npt.ArrayLike, b: npt.ArrayLike, matrix: pd.DataFrame, orders: Orders, min_share: float = 0.5
) -> dict[str, NullResult]:
    """The measures of an alignment beside their nulls over permutations of the channels.

    Args:
        a: rows of one model, shape ``(n_layers_a, hidden_size)``; b those of the other.
        matrix: their Pearson correlations; its labels are the layer numbers.
        orders: as ``permutation.channel_orders`` makes them; 999 of 46 x 46 x 4096 take some seconds.
        min_share: which offsets count, as in ``alignment.by_offset``.

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
    cells = Cells.of(matrix, min_share)
    measured = _all_measures(cells, (unit_a @ unit_b.T)[np.newaxis])
    parts = [_all_measures(cells, part) for part in _permuted(unit_a, unit_b, orders)]
    return {name: _judged(measured[name], [part[name] for part in parts]) for name in measured}


def match_in_order(values: Floats) -> tuple[float, Places, Places]:
    """Of the best one-to-one match: the share that keeps the order, and its cells, rows ascending and columns."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = (np.asarray(side) for side in linear_sum_assignment(values, maximize=True))
    return float(longest_ascents(columns[np.newaxis])[0]) / len(columns), rows, columns


def _permuted(unit_a: Floats, unit_b: Floats, orders: Orders) -> Iterator[Floats]:
    """Matrices of the correlations with b's channels permuted, some at a time."""
    for start in range(0, orders.shape[1], _BATCH):
        some = np.asarray(orders[:, start : start + _BATCH].T, dtype=np.intp)
        yield np.stack([unit_a @ unit_b[:, order].T for order in some])


def _all_measures(cells: Cells, values: Floats) -> dict[str, Floats]:
    matches = [match_in_order(one) for one in values]
    return {
        "offset": cells.best_means(values),
        "rate": cells.rates(values),
        "margin": cells.margins(values),
        "match": np.array([share for share, _, _ in matches]),
        "match_mean": np.array([one[match[1:]].mean() for one, match in zip(values, matches, strict=True)]),
    }


def _judged(statistic: npt.ArrayLike, parts: list[Floats]) -> NullResult:
    return pvalue(float(np.asarray(statistic)[0]), np.concatenate(parts), "greater")

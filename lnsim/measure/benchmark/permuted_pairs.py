"""This module runs the permutation test on every pair of many models at once.

The permutations are those of ``lnsim.measure.permutation``, shared by all levels and all pairs, so each pair gets the p
that ``permutation_test`` would give it. Taken together the pairs cost one matrix product a level and permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.measure.benchmark.level_rows import Floats, Level
from lnsim.measure.permutation import Orders
from lnsim.measure.robust import prepared

__all__ = ["PairTest", "matched_tests", "partner_test"]

_CONSTANT = 1e-12
"""A row whose spread is this share of its length or less is constant."""

Measured = tuple[Floats, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PairTest:
    """One test on every pair.

    Args:
        statistic: shape ``(n_models, n_models)``; NaN where undefined.
        pvalue: (1 + hits) / (1 + n_permutations), one-sided, same shape; NaN where undefined.
    """

    statistic: Floats
    pvalue: Floats


def matched_tests(
    levels: Sequence[Level], n_models: int, orders: Orders, correlation: str = "pearson"
) -> Mapping[str, PairTest]:
    """The tests of equal layer numbers on every pair: by the ``mean`` r over the levels, and by the ``max``.

    Args:
        levels: as ``level_rows.levels_of`` gives them.
        n_models: how many models there are.
        orders: as ``permutation.channel_orders`` makes them.
        correlation: one of ``robust.CORRELATIONS``.

    Returns:
        By the name of the statistic. Row i, column j is ``permutation_test`` of i and j, with the channels of j
        permuted. A pair with a constant row on any common level, or without a common level, is undefined.
    """
    units = [_units(level.rows, correlation) for level in levels]
    members = [level.members for level in levels]
    found = _tested(partial(_over_levels, units, members, n_models), orders)
    return dict(zip(("mean", "max"), found, strict=True))


def partner_test(levels: Sequence[Level], n_models: int, orders: Orders) -> PairTest:
    """The test of layers in any order on every pair: by the mean, over the layers of the shallower model, of the
    largest r with any layer of the other in the same role.

    It sees layers that were moved, doubled or dropped, which the tests of equal numbers may miss. Arguments as
    ``matched_tests``; of two models of the same depth the one that stands first gives the layers.
    """
    stacks = [_Stack.of([level for level in levels if level.role == role], n_models) for role in _roles(levels)]
    return _tested(partial(_over_partners, stacks), orders)[0]


def _tested(measure: Callable[[npt.NDArray[np.intp]], Measured], orders: Orders) -> list[PairTest]:
    """Statistics in the true order, and the share of permutations that reach them."""
    observed = measure(np.arange(len(orders), dtype=np.intp))
    slack = [1e-12 * np.maximum(1.0, np.abs(one)) for one in observed]
    hits = [np.zeros(one.shape) for one in observed]
    for order in orders.T:
        for place, null in enumerate(measure(order.astype(np.intp))):
            hits[place] += null >= observed[place] - slack[place]
    total = 1 + orders.shape[1]
    return [
        PairTest(one, np.where(np.isnan(one), np.nan, (1 + hit) / total))
        for one, hit in zip(observed, hits, strict=True)
    ]


def _units(rows: npt.NDArray[np.float32], correlation: str) -> Floats:
    """Rows without their mean, of length 1; a constant row is NaN, and with it every value it enters."""
    values = prepared(rows, correlation)
    centred = values - values.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    lengths[lengths <= _CONSTANT * np.linalg.norm(values, axis=1, keepdims=True)] = np.nan
    return np.asarray(centred / lengths)


def _over_levels(
    units: Sequence[Floats], members: Sequence[npt.NDArray[np.intp]], n_models: int, order: npt.NDArray[np.intp]
) -> Measured:
    """Mean and largest r over the levels of every pair, the channels of the second model permuted."""
    total, count = np.zeros((n_models, n_models)), np.zeros((n_models, n_models))
    largest = np.full((n_models, n_models), -np.inf)
    for unit, here in zip(units, members, strict=True):
        block = unit @ unit[:, order].T
        cells: Any = ... if len(here) == n_models else np.ix_(here, here)  # a view, where every model has the level
        total[cells] += block
        count[cells] += 1
        largest[cells] = np.maximum(largest[cells], block)
    mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    return mean, np.where(np.isnan(mean), np.nan, largest)


@dataclass(frozen=True, slots=True, eq=False)
class _Stack:
    """All rows of one role, model by model.

    Args:
        units: shape ``(n_rows, hidden_size)``.
        starts: first row of each model that has any.
        depths: rows of each model.
    """

    units: Floats
    starts: npt.NDArray[np.intp]
    depths: npt.NDArray[np.intp]

    @classmethod
    def of(cls, levels: Sequence[Level], n_models: int) -> _Stack:
        owners = np.concatenate([level.members for level in levels])
        units = np.concatenate([_units(level.rows, "pearson") for level in levels])
        by_model = np.argsort(owners, kind="stable")
        depths = np.bincount(owners, minlength=n_models)
        return cls(units[by_model], np.concatenate(([0], np.cumsum(depths)[:-1])).astype(np.intp), depths)


def _roles(levels: Sequence[Level]) -> list[str]:
    return list(dict.fromkeys(level.role for level in levels))


def _over_partners(stacks: Sequence[_Stack], order: npt.NDArray[np.intp]) -> Measured:
    total = sum((_best_partners(stack, order) for stack in stacks), np.zeros(()))
    return (np.asarray(total / len(stacks)),)


def _best_partners(stack: _Stack, order: npt.NDArray[np.intp]) -> Floats:
    """For every pair, the mean over the shallower model's layers of the largest r; shape ``(n_models, n_models)``."""
    values = stack.units @ stack.units[:, order].T
    across = np.maximum.reduceat(values, stack.starts, axis=1)
    of_first = np.add.reduceat(across, stack.starts, axis=0) / stack.depths[:, None]
    down = np.maximum.reduceat(values, stack.starts, axis=0)
    of_second = np.add.reduceat(down, stack.starts, axis=1) / stack.depths[None, :]
    return np.where(stack.depths[:, None] <= stack.depths[None, :], of_first, of_second)

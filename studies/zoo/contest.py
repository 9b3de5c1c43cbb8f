"""This module measures and tests all pairs of many models at once, layer by layer.

A *level* is one layer of one role: those models that have it, one row each. Models of different depth share the levels
of the shallower one. The permutations are those of ``lnsim.measure.permutation``, shared by all levels and all pairs,
so each pair gets the p that ``permutation_test`` would give it; together they cost one matrix product a level and
permutation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise
from lnsim.measure.permutation import Orders
from lnsim.measure.rows import prepared

__all__ = ["Level", "by_level", "levels_of", "matched_pvalues", "partner_pvalues"]

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

_CONSTANT = 1e-12
"""A row whose spread is this share of its length or less is constant."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One layer of one role in many models.

    Args:
        role: which norm.
        layer: its layer number.
        members: positions of the models that have it, ascending.
        rows: their vectors, shape ``(n_members, hidden_size)``, float32.
        stored: the same as they lie in the files, one array a model, for the comparison of bits.
    """

    role: str
    layer: int
    members: Places
    rows: npt.NDArray[np.float32]
    stored: tuple[npt.NDArray[Any], ...]


def levels_of(models: Mapping[str, NormVectors], roles: Sequence[str], *, bias: bool = False) -> list[Level]:
    """Every level of these models.

    Args:
        models: vectors by key, all of one hidden size; a model's position is its place here.
        roles: which norms; each model must have them.
        bias: take β instead of γ; a model that has none is no member of any level.

    Raises:
        ComparisonError: for different hidden sizes, or where no model has a level.
        RoleError: when a model lacks a role.
    """
    sizes = {vectors.hidden_size for vectors in models.values()}
    if len(sizes) != 1:
        raise ComparisonError(f"Measuring {len(models)} models against each other: their hidden sizes are {sizes}.")
    found: dict[tuple[str, int], list[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]] = {}
    for place, vectors in enumerate(models.values()):
        for role in roles:
            one = vectors[role]
            rows, stored = (one.bias, one.stored_bias) if bias else (one.scale, one.as_stored)
            if rows is None or stored is None:
                continue
            for layer, row, bits in zip(one.layers.tolist(), rows, stored, strict=True):
                found.setdefault((role, layer), []).append((place, row, bits))
    if not found:
        raise ComparisonError(f"Measuring {len(models)} models: none has a {'bias' if bias else 'weight'} to compare.")
    return [_level(role, layer, members) for (role, layer), members in found.items()]


def _level(role: str, layer: int, members: list[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]) -> Level:
    places, rows, stored = zip(*members, strict=True)
    return Level(role, layer, np.array(places, dtype=np.intp), np.stack(rows), stored)


def by_level(levels: Sequence[Level], n_models: int, metric: str) -> np.ma.MaskedArray[Any, Any]:
    """A metric of every two models on every level: what is taken over the levels then is one more call.

    Args:
        levels: as ``levels_of`` gives them.
        n_models: how many models there are.
        metric: a name in ``METRICS``; ``changed_ratio`` compares stored bits, and is NaN for two dtypes.

    Returns:
        Shape ``(n_levels, n_models, n_models)``, masked where one of the two lacks the level. An undefined value is
        NaN and not masked: ``by_level(...).mean(axis=0).filled(np.nan)`` is undefined with it.
    """
    values = np.zeros((len(levels), n_models, n_models))
    absent = np.ones(values.shape, dtype=bool)
    for level, value, lacking in zip(levels, values, absent, strict=True):
        here = np.ix_(level.members, level.members)
        value[here] = _changed(level) if metric == "changed_ratio" else pairwise(level.rows, level.rows, metric)
        lacking[here] = False
    return np.ma.MaskedArray(values, absent)


def _changed(level: Level) -> Floats:
    """Only models of one dtype have bits to compare."""
    dtypes = [bits.dtype for bits in level.stored]
    found = np.full((len(dtypes), len(dtypes)), np.nan)
    for dtype in set(dtypes):
        here = np.flatnonzero([one == dtype for one in dtypes])
        rows = np.stack([level.stored[place] for place in here])
        found[np.ix_(here, here)] = pairwise(rows, rows, "changed_ratio")
    return found


def matched_pvalues(
    levels: Sequence[Level], n_models: int, orders: Orders, correlation: str = "pearson", *, largest: bool = False
) -> Mapping[str, Floats]:
    """p of the tests of equal layer numbers on every pair: by the ``mean`` r over the levels, and by the ``max`` too.

    Args:
        levels: as ``levels_of`` gives them.
        n_models: how many models there are.
        orders: as ``permutation.channel_orders`` makes them.
        correlation: one of ``rows.CORRELATIONS``.
        largest: True for the test by the largest r, which needs a product of matrices for each level.

    Returns:
        By the name of the statistic, shape ``(n_models, n_models)``: row i, column j is ``permutation_test`` of i and
        j, with the channels of j permuted. A pair with a constant row on any common level, or without a common level,
        is NaN.
    """
    units = [_units(level.rows, correlation) for level in levels]
    members = [level.members for level in levels]
    if largest:
        found = _tested(partial(_over_levels, units, members, n_models), orders)
        return dict(zip(("mean", "max"), found, strict=True))
    return {"mean": _tested(_MeanOverLevels.of(units, members, n_models), orders)[0]}


def partner_pvalues(levels: Sequence[Level], n_models: int, orders: Orders) -> Floats:
    """p of the test of layers in any order on every pair: by the mean, over the layers of the shallower model, of the
    largest r with any layer of the other in the same role.

    It sees layers that were moved, doubled or dropped, which the tests of equal numbers may miss. Arguments as
    ``matched_pvalues``; of two models of the same depth the one that stands first gives the layers.
    """
    roles = dict.fromkeys(level.role for level in levels)
    stacks = [_Stack.of([level for level in levels if level.role == role], n_models) for role in roles]
    return _tested(partial(_over_partners, stacks), orders)[0]


def _tested(measure: Callable[[Places], tuple[Floats, ...]], orders: Orders) -> list[Floats]:
    """The share of permutations that reach what is measured in the true order."""
    observed = measure(np.arange(len(orders), dtype=np.intp))
    least = [one - 1e-12 * np.maximum(1.0, np.abs(one)) for one in observed]
    hits = [np.zeros(one.shape) for one in observed]
    for order in orders.T:
        for place, null in enumerate(measure(order.astype(np.intp))):
            hits[place] += null >= least[place]
    total = 1 + orders.shape[1]
    return [np.where(np.isnan(one), np.nan, (1 + hit) / total) for one, hit in zip(observed, hits, strict=True)]


def _units(rows: npt.NDArray[np.float32], correlation: str) -> Floats:
    """Rows without their mean, of length 1; a constant row is NaN, and with it every value it enters."""
    values = prepared(rows, correlation)
    centred = values - values.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    lengths[lengths <= _CONSTANT * np.linalg.norm(values, axis=1, keepdims=True)] = np.nan
    return np.asarray(centred / lengths)


@dataclass(frozen=True, slots=True, eq=False)
class _MeanOverLevels:
    """The mean r over the levels of every pair, in one product of matrices: a level that a model lacks is zeros there.

    Args:
        rows: shape ``(n_models, n_levels, hidden_size)``.
        count: levels that a pair has in common, NaN where a row of them is constant.
    """

    rows: Floats
    count: Floats

    @classmethod
    def of(cls, units: Sequence[Floats], members: Sequence[Places], n_models: int) -> _MeanOverLevels:
        rows = np.zeros((n_models, len(units), units[0].shape[1]))
        there, constant = np.zeros((2, n_models, len(units)))
        for place, (unit, here) in enumerate(zip(units, members, strict=True)):
            rows[here, place], there[here, place] = np.nan_to_num(unit), 1
            constant[here, place] = np.isnan(unit).any(axis=1)
        undefined = (constant @ there.T + there @ constant.T > 0) | (there @ there.T == 0)
        return cls(rows, np.where(undefined, np.nan, there @ there.T))

    def __call__(self, order: Places) -> tuple[Floats]:
        n = len(self.rows)
        return (self.rows.reshape(n, -1) @ np.take(self.rows, order, axis=2).reshape(n, -1).T / self.count,)


def _over_levels(
    units: Sequence[Floats], members: Sequence[Places], n_models: int, order: Places
) -> tuple[Floats, Floats]:
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
    starts: Places
    depths: Places

    @classmethod
    def of(cls, levels: Sequence[Level], n_models: int) -> _Stack:
        owners = np.concatenate([level.members for level in levels])
        units = np.concatenate([_units(level.rows, "pearson") for level in levels])
        by_model = np.argsort(owners, kind="stable")
        depths = np.bincount(owners, minlength=n_models)
        return cls(units[by_model], np.concatenate(([0], np.cumsum(depths)[:-1])).astype(np.intp), depths)


def _over_partners(stacks: Sequence[_Stack], order: Places) -> tuple[Floats]:
    return (np.mean([_best_partners(stack, order) for stack in stacks], axis=0),)


def _best_partners(stack: _Stack, order: Places) -> Floats:
    """For every pair, the mean over the shallower model's layers of the largest r; shape ``(n_models, n_models)``."""
    values = stack.units @ stack.units[:, order].T
    across = np.maximum.reduceat(values, stack.starts, axis=1)
    of_first = np.add.reduceat(across, stack.starts, axis=0) / stack.depths[:, None]
    down = np.maximum.reduceat(values, stack.starts, axis=0)
    of_second = np.add.reduceat(down, stack.starts, axis=1) / stack.depths[None, :]
    return np.where(stack.depths[:, None] <= stack.depths[None, :], of_first, of_second)

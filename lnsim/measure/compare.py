"""This module compares two models as ``lnsim compare`` does: the measures of each role they share, and one verdict.

Only roles of the same name are compared, and in them only layers of the same number. Everything else is named with the
reason why it was not. A measure that is not defined is None and never NaN, and a note says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix
from lnsim.measure.comparable import (
    Rows,
    check_offsets,
    common_roles,
    lone_layers,
    matched_layers,
    not_comparable_roles,
    why_not_bits,
)
from lnsim.measure.metrics import pairwise, undefined_rows
from lnsim.measure.nulls import Floats
from lnsim.measure.pair_test import MOST
from lnsim.measure.permutation import Orders, channel_orders, matched_null
from lnsim.measure.verdict import Judgement, judge, why_apart

_MOST_A_ROLE = 9_999  # permutations that one role costs at most; the verdict rests on a test of its own
_MEANS = ("cosine", "pearson", "spearman", "rel_l2")
_MOST_NAMED = 8  # values that differ; where there are more, their share is all that is told
_OF_ALIGNMENT = ("best_offset", "alignment_rate", "margin")
ONE_LAYER = f"{', '.join(_OF_ALIGNMENT)} are not defined: there is one layer, and no other to choose"
_OF_NULL = ("pvalue", "null_mean", "null_std")

Matched = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
"""Rows of both models at the layer numbers that both have."""


@dataclass(frozen=True, slots=True)
class RoleSummary:
    """What was measured in one role; None stands for a measure that is not defined, and ``notes`` say why."""

    n_layers_compared: int
    # mean over layer numbers that both have; pearson_mean, spearman_mean and rel_l2_mean likewise. The last is
    # the length of the difference over that of a's vector.
    cosine_mean: float | None
    pearson_mean: float | None
    spearman_mean: float | None
    rel_l2_mean: float | None
    changed_ratio: float | None  # share of the values whose stored bits differ
    best_offset: int | None  # layer of b minus layer of a where the mean r is largest; a selection
    alignment_rate: float | None  # share of a's matched layers whose largest r is with b's layer of the same number
    margin: float | None  # r of matched layers less the largest other r of the same layer of a, on average
    pvalue: float | None  # one-sided, of the mean r of matched layers under permutations of the channels
    null_mean: float | None  # mean of the r of these permutations; null_std is their standard deviation
    null_std: float | None
    n_permutations: int
    seed: int
    layers: tuple[int, ...]  # the layer numbers compared; -1 stands for a norm outside the blocks
    # one record a layer compared: ``layer_a``, ``layer_b``, ``cosine`` and ``r``
    by_layer: tuple[Mapping[str, float | None], ...]
    in_verdict: bool  # whether the role takes part in the verdict
    notes: tuple[str, ...]  # why a measure is None, and what else a reader must know

    def __post_init__(self) -> None:
        values = (getattr(self, name) for name in self.__slots__)
        undefined = any(isinstance(value, float) and not math.isfinite(value) for value in values)
        if undefined or not self.layers or self.n_layers_compared != len(self.layers):
            raise ComparisonError(f"Summing up a role: expected layers, and None for what is undefined; found {self}.")


@dataclass(frozen=True, slots=True)
class PairSummary:
    """Two models compared."""

    roles: Mapping[str, RoleSummary]  # what was measured, by role; none where nothing can be compared
    not_compared: Mapping[str, str]  # by role, why it, or which of its layers, had no counterpart
    judgement: Judgement  # the verdict, and the test that it rests on


def summarise_pair(
    a: NormVectors, b: NormVectors, n_permutations: int = MOST, seed: int = 0, progress: Progress = no_progress
) -> PairSummary:
    """Compare every role that both models have, and judge the pair; lengths of differences are over those of a.

    A test may cost `n_permutations` of the channels, that of a role 9,999 at most; they are the same ones for all roles
    of one width. ComparisonError when what is added to the stored γ is not known says why.
    """
    judgement = judge([(a, b)], n_permutations, seed)[0]
    refused = not_comparable_roles(a, b)
    if not judgement.rows.roles and not judgement.rows.apart:
        return PairSummary({}, refused, judgement)
    roles = common_roles(a, b)
    check_offsets(a, b)
    n_drawn = min(n_permutations, _MOST_A_ROLE)
    orders = {size: channel_orders(size, n_drawn, seed) for size in {a[role].hidden_size for role in roles}}
    found: dict[str, RoleSummary] = {}
    for role in roles:
        progress(1 + len(found), 1 + len(roles))
        found[role] = summarise_role(a[role], b[role], orders[a[role].hidden_size], seed)
    progress(1 + len(found), 1 + len(roles))
    return PairSummary(found, {**refused, **lone_layers(a, b, roles)}, judgement)


def summarise_role(a: RoleVectors, b: RoleVectors, orders: Orders, seed: int) -> RoleSummary:
    """Measure one role of two models, of one hidden size and with a layer number in common, under permutations."""
    layers, rows_a, rows_b = matched_layers(a, b)
    matched = a.scale[rows_a], b.scale[rows_b]
    notes = _few_differences(matched, layers.tolist())
    values = {metric: np.diag(pairwise(*matched, metric)) for metric in _MEANS}
    means: dict[str, Any] = {f"{name}_mean": _mean(name, values[name], matched, layers, notes) for name in _MEANS}
    cosines, rs = ([one if math.isfinite(one) else None for one in values[name].tolist()] for name in _MEANS[:2])
    by_layer = zip(layers.tolist(), cosines, rs, strict=True)
    return RoleSummary(
        n_layers_compared=len(layers),
        **means,
        changed_ratio=_changed(a, b, (rows_a, rows_b), notes),
        **_aligned(a, b, notes),
        **_tested(matched, orders, notes, means["pearson_mean"]),
        n_permutations=int(orders.shape[1]),
        seed=seed,
        layers=tuple(layers.tolist()),
        by_layer=tuple({"layer_a": layer, "layer_b": layer, "cosine": one, "r": r} for layer, one, r in by_layer),
        in_verdict=not why_apart(a.role),
        notes=tuple(notes),
    )


def _few_differences(matched: Matched, layers: Sequence[int]) -> list[str]:
    """A note that names the values that differ, where they are few enough to be named."""
    a, b = matched
    places = np.argwhere((a != b) & ~(np.isnan(a) & np.isnan(b))).tolist()
    if not 0 < len(places) <= _MOST_NAMED:
        return []
    told = (f"layer {layers[row]}, channel {c} ({a[row, c]:.6g} and {b[row, c]:.6g})" for row, c in places)
    return [f"{len(places)} of {a.size:,} values of γ differ: {'; '.join(told)}"]


def _mean(metric: str, values: Floats, matched: Matched, layers: Iterable[int], notes: list[str]) -> float | None:
    """The mean over matched layers, or None with a note."""
    if np.isfinite(values).all():
        return float(values.mean())
    reasons = [
        f"layer {layer} of {side} {reason}"
        for side, rows in zip("ab", matched, strict=True)
        for reason, mask in undefined_rows(rows, metric, side)[1].items()
        for layer, undefined in zip(layers, mask, strict=True)
        if undefined
    ]
    notes.append(f"{metric}_mean is not defined: {'; '.join(reasons)}")
    return None


def _changed(a: RoleVectors, b: RoleVectors, rows: tuple[Rows, Rows], notes: list[str]) -> float | None:
    if reason := why_not_bits(a, b):
        notes.append(f"changed_ratio is not defined: {reason}")
        return None
    return float(np.diag(pairwise(a.stored[rows[0]], b.stored[rows[1]], "changed_ratio")).mean())


def _aligned(a: RoleVectors, b: RoleVectors, notes: list[str]) -> dict[str, Any]:
    """Where each layer has its best partner."""
    values = pairwise(a.scale, b.scale, "pearson")
    defined = np.isfinite(values).all()
    if not defined or min(values.shape) < 2:
        notes.append(ONE_LAYER if defined else f"{', '.join(_OF_ALIGNMENT)} are not defined: a layer has no r")
        return dict.fromkeys(_OF_ALIGNMENT)
    matrix = LayerMatrix(values, a.layers, b.layers)
    return dict(zip(_OF_ALIGNMENT, (matrix.best_offset(), matrix.alignment_rate(), matrix.margin()), strict=True))


def _tested(matched: Matched, orders: Orders, notes: list[str], pearson: float | None) -> dict[str, Any]:
    """The mean r of matched layers against permuted channels."""
    if pearson is None:
        notes.append("pvalue, null_mean, null_std are not defined: the mean r is not")
        return dict.fromkeys(_OF_NULL)
    null = matched_null(*matched, orders)
    return dict(zip(_OF_NULL, (null.pvalue, null.null_mean, null.null_std), strict=True))

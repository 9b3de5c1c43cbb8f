"""This module measures one role of two models, at the layer numbers that both have.

Each measure is that of the module that owns it, so the numbers are those of the reports. One that is not defined is
None and never NaN, and a note says why.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.layer_matrix import LayerMatrix
from lnsim.measure.metrics import pairwise, undefined_rows
from lnsim.measure.permutation import Orders, matched_null
from lnsim.measure.stored_bits import same_bits, why_not_bits

__all__ = ["RoleSummary", "summarise_role", "why_apart"]

_PER_HEAD = frozenset({"q_norm", "k_norm"})
"""Their channels are those of a head, and rotary positions turn channels of the same number at the same speed in every
model; so strangers may agree in them, and the permutation test is not exact."""

_MEANS = {"cosine_mean": "cosine", "pearson_mean": "pearson", "spearman_mean": "spearman", "rel_l2_mean": "rel_l2"}
_OF_ALIGNMENT = ("best_offset", "alignment_rate", "margin")
_OF_PARTNERS = ("same", "elsewhere", "without")
_OF_NULL = ("pvalue", "null_mean", "null_std", "p_ranks")


Rows = npt.NDArray[np.intp]
Matched = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
"""Rows of both models at the layer numbers that both have."""


@dataclass(frozen=True, slots=True)
class RoleSummary:
    """What was measured in one role; None stands for a measure that is not defined.

    Args:
        n_layers_compared: layer numbers that both have.
        cosine_mean: mean over them; pearson_mean, spearman_mean and rel_l2_mean likewise. The last is the length of the
            difference over that of a's vector.
        changed_ratio: share of the values whose stored bits differ.
        best_offset: layer of b minus layer of a where the mean r is largest; a selection.
        alignment_rate: share of a's matched layers whose largest r is with b's layer of the same number.
        margin: r of matched layers less the largest other r of the same layer of a, on average.
        pvalue: one-sided, of the mean r of matched layers under permutations of the channels.
        null_mean: mean of the r of these permutations; null_std is their standard deviation.
        n_permutations: how many.
        seed: of the permutations.
        layers: the layer numbers compared; -1 stands for a norm outside the blocks.
        p_ranks: pvalue of the same test by ranks.
        same: layers of the shorter stack whose best partner has the same number; elsewhere and without likewise.
        one_length: whether both have the same layer numbers.
        identical: whether these and all stored bits, biases too, are the same.
        in_verdict: whether the role takes part in the verdict.
        notes: why a measure is None, and what else a reader must know.
        p_holm: pvalue adjusted over all roles of the verdict, once they are known; p_ranks_holm likewise.
    """

    n_layers_compared: int
    cosine_mean: float | None
    pearson_mean: float | None
    spearman_mean: float | None
    rel_l2_mean: float | None
    changed_ratio: float | None
    best_offset: int | None
    alignment_rate: float | None
    margin: float | None
    pvalue: float | None
    null_mean: float | None
    null_std: float | None
    n_permutations: int
    seed: int
    layers: tuple[int, ...]
    p_ranks: float | None
    same: int | None
    elsewhere: int | None
    without: int | None
    one_length: bool
    identical: bool
    in_verdict: bool
    notes: tuple[str, ...]
    p_holm: float | None = None
    p_ranks_holm: float | None = None

    def __post_init__(self) -> None:
        values = (getattr(self, name) for name in self.__slots__)
        undefined = any(isinstance(value, float) and not math.isfinite(value) for value in values)
        if undefined or not self.layers or self.n_layers_compared != len(self.layers):
            raise ComparisonError(f"Summing up a role: expected layers, and None for what is undefined; found {self}.")

    @property
    def tested(self) -> bool:
        """Whether there is evidence for a verdict."""
        return self.in_verdict and self.pvalue is not None and self.same is not None


def why_apart(role: str) -> str:
    """Why a role takes no part in a verdict; an empty text for the norms of the residual stream, which do."""
    if role.rpartition("/")[2] in _PER_HEAD:
        return "rotary positions treat a head's channels alike in all models"
    return "what it acts on is not known" if role.startswith("other") else ""


def summarise_role(a: RoleVectors, b: RoleVectors, orders: Orders, seed: int) -> RoleSummary:
    """Measure one role.

    Args:
        a: the vectors of one model.
        b: those of the other, of the same hidden size and with at least one layer number of a.
        orders: permutations of the channels, as ``permutation.channel_orders`` makes them.
        seed: of these permutations.

    Raises:
        ComparisonError: when the two do not fit together.
    """
    layers, rows_a, rows_b = np.intersect1d(a.layers, b.layers, assume_unique=True, return_indices=True)
    notes: list[str] = []
    matched = a.scale[rows_a], b.scale[rows_b]
    means = {name: _mean(name, metric, matched, layers.tolist(), notes) for name, metric in _MEANS.items()}
    apart = why_apart(a.role)
    measured: dict[str, Any] = {
        **means,
        "changed_ratio": _changed(a, b, (rows_a, rows_b), notes),
        **_aligned(a, b, notes),
        **_tested(matched, orders, notes, means["pearson_mean"]),
    }
    if apart:
        notes.append(f"no part of the verdict: {apart}")
    return RoleSummary(
        **measured,
        layers=tuple(layers.tolist()),
        n_layers_compared=len(layers),
        n_permutations=int(orders.shape[1]),
        seed=seed,
        one_length=np.array_equal(a.layers, b.layers),
        identical=same_bits(a, b),
        in_verdict=not apart,
        notes=tuple(notes),
    )


def _mean(name: str, metric: str, matched: Matched, layers: Sequence[int], notes: list[str]) -> float | None:
    """The mean over matched layers, or None with a note."""
    values = np.diag(pairwise(*matched, metric))
    if np.isfinite(values).all():
        return float(values.mean())
    reasons = [
        f"layer {layers[row]} of {side} {reason}"
        for side, rows in zip("ab", matched, strict=True)
        for reason, mask in undefined_rows(rows, metric, side)[1].items()
        for row in np.flatnonzero(mask).tolist()
    ]
    notes.append(f"{name} is not defined: {'; '.join(reasons)}")
    return None


def _changed(a: RoleVectors, b: RoleVectors, rows: tuple[Rows, Rows], notes: list[str]) -> float | None:
    if reason := why_not_bits(a, b):
        notes.append(f"changed_ratio is not defined: {reason}")
        return None
    return float(np.diag(pairwise(a.stored[rows[0]], b.stored[rows[1]], "changed_ratio")).mean())


def _aligned(a: RoleVectors, b: RoleVectors, notes: list[str]) -> dict[str, Any]:
    """Where each layer has its best partner."""
    values = pairwise(a.scale, b.scale, "pearson")
    if not np.isfinite(values).all():
        notes.append(f"{', '.join(_OF_ALIGNMENT)} are not defined: a layer has no r")
        return dict.fromkeys((*_OF_ALIGNMENT, *_OF_PARTNERS))
    matrix = LayerMatrix(values, a.layers, b.layers)
    counts = matrix.partner_counts()
    found: dict[str, Any] = {name: counts[name] for name in _OF_PARTNERS}
    if min(values.shape) < 2:
        notes.append(f"{', '.join(_OF_ALIGNMENT)} are not defined: there is one layer, and no other to choose")
        return found | dict.fromkeys(_OF_ALIGNMENT)
    found["alignment_rate"], found["margin"] = matrix.alignment_rate(), matrix.margin()
    return found | {"best_offset": matrix.best_offset()}


def _tested(matched: Matched, orders: Orders, notes: list[str], pearson: float | None) -> dict[str, float | None]:
    """The mean r of matched layers against permuted channels, and the same by ranks."""
    if pearson is None:
        notes.append("pvalue, null_mean, null_std are not defined: the mean r is not")
        return dict.fromkeys(_OF_NULL)
    a, b = matched
    null, ranks = (matched_null(a, b, orders, correlation=kind) for kind in ("pearson", "spearman"))
    return dict(zip(_OF_NULL, (null.pvalue, null.null_mean, null.null_std, ranks.pvalue), strict=True))

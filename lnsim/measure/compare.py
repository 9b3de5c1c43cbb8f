"""This module compares two models as ``lnsim compare`` does: the measures of each role they share, and one verdict.

Only roles of the same name are compared, and in them only layers of the same number. Everything else is named with the
reason why it was not. A measure that is not defined is None and never NaN, and a note says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix
from lnsim.measure.comparable import (
    check_offsets,
    common_roles,
    lone_layers,
    matched_layers,
    not_comparable_roles,
    same_bits,
    why_not_bits,
)
from lnsim.measure.metrics import pairwise, undefined_rows
from lnsim.measure.nulls import holm
from lnsim.measure.permutation import Orders, channel_orders, matched_null
from lnsim.measure.verdict import Evidence, NormTest, verdict

__all__ = ["PairSummary", "RoleSummary", "summarise_pair", "summarise_role", "why_apart"]

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
    """What was measured in one role; None stands for a measure that is not defined, and ``notes`` say why.

    Args:
        cosine_mean: mean over layer numbers that both have; pearson_mean, spearman_mean and rel_l2_mean likewise. The
            last is the length of the difference over that of a's vector.
        changed_ratio: share of the values whose stored bits differ.
        best_offset: layer of b minus layer of a where the mean r is largest; a selection.
        alignment_rate: share of a's matched layers whose largest r is with b's layer of the same number.
        margin: r of matched layers less the largest other r of the same layer of a, on average.
        pvalue: one-sided, of the mean r of matched layers under permutations of the channels; p_ranks by ranks, p_holm
            and p_ranks_holm adjusted over all roles of the verdict.
        null_mean: mean of the r of these permutations; null_std is their standard deviation.
        layers: the layer numbers compared; -1 stands for a norm outside the blocks.
        same: layers of the shorter stack whose best partner has the same number; elsewhere and without likewise.
        one_length: whether both have the same layer numbers.
        identical: whether these and all stored bits, biases too, are the same.
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


@dataclass(frozen=True, slots=True)
class PairSummary:
    """Two models compared.

    Args:
        roles: what was measured, by role; at least one.
        not_compared: by role, why it, or which of its layers, had no counterpart.
        verdict: a key of ``verdict.RULES``.
        obstacle: what stands in the way of a verdict, where it is ``not_comparable``; else empty.
    """

    roles: Mapping[str, RoleSummary]
    not_compared: Mapping[str, str]
    verdict: str
    obstacle: str = ""

    def __post_init__(self) -> None:
        if not self.roles or (self.verdict == "not_comparable") != bool(self.obstacle):
            raise ComparisonError(f"Summing up a pair: expected roles, and an obstacle or a verdict; found {self}.")


def summarise_pair(
    a: NormVectors,
    b: NormVectors,
    n_permutations: int = 9999,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> PairSummary:
    """Compare every role that both models have.

    Args:
        a: one model; lengths of differences are over those of its vectors.
        b: the other.
        n_permutations: of the channels, one permutation shared by all layers of a role.
        seed: of the permutations; they are the same ones for all roles of one width.
        progress: told how many roles are done of how many.

    Raises:
        ComparisonError: when no role can be compared, or what is added to the stored γ is not known; the message says
            why.
    """
    roles = common_roles(a, b)
    check_offsets(a, b)
    orders: dict[int, Orders] = {}
    found: dict[str, RoleSummary] = {}
    for role in roles:
        progress(len(found), len(roles))
        size = a[role].hidden_size
        if size not in orders:
            orders[size] = channel_orders(size, n_permutations, seed)
        found[role] = summarise_role(a[role], b[role], orders[size], seed)
    progress(len(found), len(roles))
    found = _adjusted(found)
    tests = _tests(found)
    key = verdict(Evidence(tests, min(1.0, len(tests) / (1 + n_permutations))))
    obstacle = "" if tests else "no norm of the residual stream has a defined r in all layers"
    return PairSummary(found, {**not_comparable_roles(a, b), **lone_layers(a, b, roles)}, key, obstacle)


def _adjusted(found: Mapping[str, RoleSummary]) -> dict[str, RoleSummary]:
    """The same roles with p adjusted over those that the verdict rests on."""
    tested = [role for role, one in found.items() if one.tested]
    p_holm, p_ranks_holm = (
        dict(zip(tested, holm([getattr(found[role], name) for role in tested]), strict=True))
        for name in ("pvalue", "p_ranks")
    )
    return {
        role: replace(one, p_holm=p_holm.get(role), p_ranks_holm=p_ranks_holm.get(role)) for role, one in found.items()
    }


def _tests(found: Mapping[str, RoleSummary]) -> tuple[NormTest, ...]:
    """What the verdict rests on."""
    # "Identical" speaks of every vector compared, so also of those in roles that are not tested.
    identical = all(one.identical for one in found.values())
    names = ("p_holm", "p_ranks_holm", "same", "elsewhere", "without", "one_length")
    tested = [{name: getattr(one, name) for name in names} for one in found.values() if one.tested]
    return tuple(NormTest(**values, identical=identical) for values in tested)


def why_apart(role: str) -> str:
    """Why a role takes no part in a verdict; an empty text for the norms of the residual stream, which do."""
    if role.rpartition("/")[2] in _PER_HEAD:
        return "rotary positions treat a head's channels alike in all models"
    return "what it acts on is not known" if role.startswith("other") else ""


def summarise_role(a: RoleVectors, b: RoleVectors, orders: Orders, seed: int) -> RoleSummary:
    """Measure one role of two models, of one hidden size and with a layer number in common, under permutations."""
    layers, rows_a, rows_b = matched_layers(a, b)
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

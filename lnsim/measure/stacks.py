"""This module sets the stacks of two models against each other: every layer of one with every layer of the other.

A stack holds the layers of one role in the main tower. The block that predicts further tokens (MTP) is a tower of its
own and never one more layer of the stack; ``with_mtp`` puts it beside the matrix, behind a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.metrics import pairwise

__all__ = ["MTP", "StackPair", "mtp_table", "overview", "stack_pairs", "with_mtp"]

MTP = "MTP"
"""How a matrix names the block that predicts further tokens."""


@dataclass(frozen=True, slots=True, eq=False)
class StackPair:
    """Two models' stacks of one role.

    Args:
        keys: the two models.
        label: how readers see the pair.
        group: ``related``, ``independent`` or ``disputed``.
        role: which norm.
        a: vectors of one model, b those of the other.
        matrices: by measure (``cosine`` and ``r``), a frame with the layer numbers of a down and of b across.
        mtp_a: vectors of a's MTP block in this role, or None; mtp_b likewise.
    """

    keys: tuple[str, str]
    label: str
    group: str
    role: str
    a: RoleVectors
    b: RoleVectors
    matrices: Mapping[str, pd.DataFrame]
    mtp_a: RoleVectors | None
    mtp_b: RoleVectors | None

    @property
    def name(self) -> dict[str, str]:
        """First columns of every table."""
        return {"pair": self.label, "group": self.group, "role": self.role}

    @property
    def matched(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Rows of equal layer number, both of shape ``(n_matched, hidden_size)``."""
        _, rows_a, rows_b = np.intersect1d(self.a.layers, self.b.layers, assume_unique=True, return_indices=True)
        return self.a.scale[rows_a], self.b.scale[rows_b]


def stack_pairs(
    pairs: Iterable[Sequence[str]],
    models: Mapping[str, NormVectors],
    roles: Sequence[str],
    labels: Mapping[str, str],
    groups: Mapping[tuple[str, str], str],
) -> list[StackPair]:
    """The stacks of these pairs, role by role; pairs with a model that is not in `models` are left out.

    Raises:
        ComparisonError: for different hidden sizes.
        RoleError: when a model has no norms of a role.
    """
    there = [(a, b) for a, b in pairs if a in models and b in models]
    return [_stack_pair(a, b, models, role, labels, groups) for role in roles for a, b in there]


def overview(stacks: Sequence[StackPair]) -> pd.DataFrame:
    """What is compared, one row a pair and role.

    Returns:
        Columns ``pair``, ``group``, ``role``; ``layers_a``, ``layers_b``, ``matched`` and ``unmatched`` (layer numbers
        that both and that only one has), ``mtp_blocks`` of the two, and ``norm_types``, which differ where a LayerNorm
        meets an RMSNorm: gamma has not quite the same part in the two.
    """
    rows = []
    for stack in stacks:
        matched, every = (len(join(stack.a.layers, stack.b.layers)) for join in (np.intersect1d, np.union1d))
        counts = {"layers_a": len(stack.a.layers), "layers_b": len(stack.b.layers)}
        found = {"matched": matched, "unmatched": every - matched}
        blocks = {"mtp_blocks": sum(block is not None for block in (stack.mtp_a, stack.mtp_b))}
        types = {"norm_types": " and ".join(dict.fromkeys((stack.a.norm_type, stack.b.norm_type)))}
        rows.append({**stack.name, **counts, **found, **blocks, **types})
    return pd.DataFrame(rows)


def with_mtp(stack: StackPair, measure: str) -> pd.DataFrame:
    """The matrix with a's MTP block as a last row and b's as a last column, each behind an empty (NaN) line."""
    matrix = stack.matrices[measure]
    framed = matrix.copy()
    framed.index, framed.columns = _names(matrix.index), _names(matrix.columns)
    if stack.mtp_b is not None:
        framed[""], framed[MTP] = np.nan, pairwise(stack.a.scale, stack.mtp_b.scale, _METRICS[measure])[:, 0]
    if stack.mtp_a is not None:
        framed.loc[""], framed.loc[MTP] = np.nan, np.nan
        values = pairwise(stack.mtp_a.scale, stack.b.scale, _METRICS[measure])[0]
        framed.loc[MTP, list(_names(matrix.columns))] = values
    return framed.rename_axis(index=matrix.index.name, columns=matrix.columns.name)


def mtp_table(models: Mapping[str, NormVectors], roles: Sequence[str], labels: Mapping[str, str]) -> pd.DataFrame:
    """Every MTP block against every stack, its own model's included; one row a block, role and stack.

    Returns:
        Columns ``model``, ``role``, ``against``, ``n``, ``cosine_min``, ``cosine_max``, ``r_mean``, ``r_largest`` and
        ``at_layer``. A model without such a block has one row that says so, with nothing measured.
    """
    rows: list[dict[str, Any]] = []
    for key, vectors in models.items():
        blocks = {role: vectors.roles[f"mtp/{role}"] for role in roles if f"mtp/{role}" in vectors.roles}
        if not blocks:
            rows.append({"model": labels[key], "role": "none", "against": "no MTP block", "n": 0})
        for role, block in blocks.items():
            first = {"model": labels[key], "role": role}
            rows += [{**first, "against": labels[other], **_against(block, models[other][role])} for other in models]
    columns = ["model", "role", "against", "n", "cosine_min", "cosine_max", "r_mean", "r_largest", "at_layer"]
    return pd.DataFrame(rows).reindex(columns=columns)


_METRICS = {"cosine": "cosine", "r": "pearson"}


def _stack_pair(
    a: str,
    b: str,
    models: Mapping[str, NormVectors],
    role: str,
    labels: Mapping[str, str],
    groups: Mapping[tuple[str, str], str],
) -> StackPair:
    of_a, of_b = models[a][role], models[b][role]
    index, columns = pd.Index(of_a.layers, name=labels[a]), pd.Index(of_b.layers, name=labels[b])
    matrices = {
        name: pd.DataFrame(pairwise(of_a.scale, of_b.scale, metric), index=index, columns=columns)
        for name, metric in _METRICS.items()
    }
    mtp_a, mtp_b = (models[key].roles.get(f"mtp/{role}") for key in (a, b))
    group = groups[(a, b) if (a, b) in groups else (b, a)]
    return StackPair((a, b), f"{labels[a]} × {labels[b]}", group, role, of_a, of_b, matrices, mtp_a, mtp_b)


def _names(layers: pd.Index) -> list[str]:
    return [str(layer) for layer in layers]


def _against(block: RoleVectors, stack: RoleVectors) -> dict[str, float]:
    cosine, r = (pairwise(block.scale, stack.scale, metric)[0] for metric in ("cosine", "pearson"))
    largest = int(np.abs(r).argmax())
    ends = {"cosine_min": float(cosine.min()), "cosine_max": float(cosine.max()), "r_mean": float(r.mean())}
    return {"n": len(r), **ends, "r_largest": float(r[largest]), "at_layer": int(stack.layers[largest])}

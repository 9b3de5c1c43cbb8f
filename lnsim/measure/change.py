"""This module measures what changed between two checkpoints, layer by layer: in stored bits, in value, in pattern.

Layers are matched by number; a layer that only one of the two has is left out and named. "a" is the older checkpoint
where one comes from the other, and the measures that have a direction divide by its length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.grid import expected_change, spacing, ulp_distance, update_size
from lnsim.measure.metrics import pairwise
from lnsim.measure.stored_bits import why_not_bits

__all__ = [
    "changes",
    "dtypes",
    "joined",
    "layer_maps",
    "layer_matrix",
    "map_statistics",
    "matched_rows",
    "members",
    "pair_changes",
    "pair_label",
    "summary",
    "unmatched_layers",
]

COLUMNS = (
    *("role", "layer", "changed_ratio", "expected_ratio", "pearson", "cosine", "rel_l2"),
    *("mean_abs_diff", "max_abs_diff", "ulp", "ulp_median"),
)
"""Columns of ``pair_changes``."""

_BY_LAYER = ("pearson", "cosine", "rel_l2", "mean_abs_diff", "max_abs_diff")


def matched_rows(a: RoleVectors, b: RoleVectors) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any]]:
    """Layer numbers that both have, and the rows of each, all of shape ``(n_matched,)``.

    Raises:
        ComparisonError: when they share no layer.
    """
    layers, rows_a, rows_b = np.intersect1d(a.layers, b.layers, assume_unique=True, return_indices=True)
    if not len(layers):
        raise ComparisonError(
            f"Matching layers of role '{a.role}': one has layers {a.layers.tolist()}, the other {b.layers.tolist()}."
        )
    return layers, rows_a, rows_b


def unmatched_layers(a: NormVectors, b: NormVectors, roles: Sequence[str]) -> dict[str, list[int]]:
    """By role, the layers that only one of the two has; roles where all match are left out."""
    found = {role: np.setxor1d(a[role].layers, b[role].layers).tolist() for role in roles}
    return {role: layers for role, layers in found.items() if layers}


def pair_changes(a: NormVectors, b: NormVectors, roles: Sequence[str]) -> pd.DataFrame:
    """Every matched layer of two checkpoints.

    Returns:
        Columns ``role``, ``layer``, ``changed_ratio`` (share of values whose stored bits differ; NaN where the stored
        dtypes differ), ``expected_ratio`` (the share that a normal update of one size in every layer would change; its
        size is fitted where the grid is finest), ``pearson``, ``cosine``, ``rel_l2`` (divided by the length of ``a``),
        ``mean_abs_diff``, ``max_abs_diff``, ``ulp`` (mean size of one unit in the last place of ``a``'s stored dtype)
        and ``ulp_median`` (median number of such units between the two, NaN where the dtypes differ).
    """
    return pd.concat([_role_changes(role, a[role], b[role]) for role in roles], ignore_index=True)


def changes(
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    roles: Sequence[str],
    labels: Mapping[str, str],
    related: bool,
) -> pd.DataFrame:
    """``pair_changes`` of several pairs, with ``pair`` (its label) and ``related`` before the columns.

    Args:
        pairs: model keys.
        models: vectors by key.
        roles: roles compared.
        labels: what readers see of each key.
        related: whether these pairs are known to be related.
    """
    frames = []
    for a, b in pairs:
        frame = pair_changes(models[a], models[b], roles)
        frame.insert(0, "pair", pair_label(a, b, labels))
        frame.insert(1, "related", related)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=["pair", "related", *COLUMNS])


def joined(*frames: pd.DataFrame) -> pd.DataFrame:
    """Several results of ``changes`` as one; empty ones, of a study without such pairs, are left out.

    Raises:
        ComparisonError: when all are empty.
    """
    full = [frame for frame in frames if len(frame)]
    if not full:
        raise ComparisonError("Measuring what changed: the study names no pair at all.")
    return pd.concat(full, ignore_index=True)


def dtypes(models: Mapping[str, NormVectors]) -> list[str]:
    """The formats in which these models' norms are stored, each once."""
    return sorted({source.dtype for vectors in models.values() for source in vectors.tensors.values()})


def members(*groups: Sequence[Sequence[str]]) -> list[str]:
    """Every model key in these lists of pairs, once, in order."""
    return list(dict.fromkeys(key for pairs in groups for pair in pairs for key in pair))


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One row a pair and role, over its layers: how much changed, and the least r and cosine.

    Args:
        frame: as ``changes`` gives it.

    Returns:
        Index ``pair``; columns ``role``, ``layers``, ``changed_mean``, ``expected_mean``, ``rel_l2_mean``,
        ``ulp_median``, ``pearson_min`` and ``cosine_min``.
    """
    found = frame.groupby(["pair", "role"], sort=False).agg(
        layers=("layer", "size"),
        changed_mean=("changed_ratio", "mean"),
        expected_mean=("expected_ratio", "mean"),
        rel_l2_mean=("rel_l2", "mean"),
        ulp_median=("ulp_median", "median"),
        pearson_min=("pearson", "min"),
        cosine_min=("cosine", "min"),
    )
    return found.reset_index("role")


def layer_matrix(a: NormVectors, b: NormVectors, role: str, metric: str, labels: tuple[str, str]) -> pd.DataFrame:
    """Every layer of one model against every layer of another; index and columns are layer numbers, named by models."""
    values = pairwise(a[role].scale, b[role].scale, metric)
    index = pd.Index(a[role].layers, name=labels[0])
    return pd.DataFrame(values, index=index, columns=pd.Index(b[role].layers, name=labels[1]))


def layer_maps(
    pairs: Sequence[Sequence[str]], models: Mapping[str, NormVectors], role: str, labels: Mapping[str, str]
) -> dict[str, pd.DataFrame]:
    """Pearson r of every layer with every layer, one matrix a pair, by the pair's label."""
    return {
        pair_label(a, b, labels): layer_matrix(models[a], models[b], role, "pearson", (labels[a], labels[b]))
        for a, b in pairs
    }


def map_statistics(
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    roles: Sequence[str],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """What the maps hold on their diagonal (equal layer numbers) and off it.

    Returns:
        One row a pair and role, index ``pair``; columns ``role``, ``diagonal_min``, ``diagonal_max``, ``other_max``
        (largest r of two different layers) and ``all_mean``.
    """
    rows = []
    for role in roles:
        for label, frame in layer_maps(pairs, models, role, labels).items():
            same = frame.index.to_numpy()[:, None] == frame.columns.to_numpy()[None, :]
            values = frame.to_numpy()
            rows.append(
                {
                    "pair": label,
                    "role": role,
                    "diagonal_min": values[same].min(),
                    "diagonal_max": values[same].max(),
                    "other_max": values[~same].max(),
                    "all_mean": values.mean(),
                }
            )
    return pd.DataFrame(rows).set_index("pair")


def pair_label(a: str, b: str, labels: Mapping[str, str]) -> str:
    """How readers see a pair of model keys."""
    return f"{labels[a]} × {labels[b]}"


def _role_changes(role: str, a: RoleVectors, b: RoleVectors) -> pd.DataFrame:
    layers, rows_a, rows_b = matched_rows(a, b)
    scale_a, scale_b = a.scale[rows_a], b.scale[rows_b]
    stored_a, stored_b = a.stored[rows_a], b.stored[rows_b]
    same_dtype = not why_not_bits(a, b)
    undefined = np.full(len(layers), np.nan)
    return pd.DataFrame(
        {
            "role": role,
            "layer": layers,
            "changed_ratio": np.diag(pairwise(stored_a, stored_b, "changed_ratio")) if same_dtype else undefined,
            "expected_ratio": expected_change(stored_a, update_size(stored_a, stored_b)) if same_dtype else undefined,
            **{metric: np.diag(pairwise(scale_a, scale_b, metric)) for metric in _BY_LAYER},
            "ulp": spacing(stored_a).mean(axis=1),
            "ulp_median": np.median(ulp_distance(stored_a, stored_b), axis=1) if same_dtype else undefined,
        }
    )

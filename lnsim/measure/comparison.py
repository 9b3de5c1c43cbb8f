"""This module puts many metrics side by side on the same comparisons: same layer, mixed layers, within one model.

A comparison is two vectors: a model and a layer on each side. Every table has one row a comparison. Pairs that share a
model, and layers of one model, are dependent; so the counts below say how often, never how surely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise, row_statistics

__all__ = ["ALIKE_IS_HIGH", "MEASURES", "comparisons", "coverage", "layer_zero", "layer_zero_ranges"]

ALIKE_IS_HIGH: tuple[str, ...] = ("cosine", "pearson", "spearman")
"""Measures that grow with likeness; all others shrink."""

MEASURES: Mapping[str, str] = {
    "cosine": "cosine of the angle",
    "pearson": "Pearson r: the cosine after each vector's mean is removed, called centred cosine in one document",
    "spearman": "Pearson r of the ranks",
    "l2": "length of a - b",
    "rel_l2": "length of a - b over the length of a",
    "rel_l2_b": "length of a - b over the length of b",
    "rel_l2_symmetric": "twice the length of a - b over the sum of both lengths",
    "mean_abs_diff": "mean |a - b|",
    "mean_abs_diff_relative": "twice the mean |a - b| over the sum of the means of |a| and |b|",
    "p99_abs_diff": "99th percentile of |a - b|",
    "p99_diff": "|p99 of |a| - p99 of |b||, which compares two distributions and no channel with its partner",
    "cv_diff": "|cv(a) - cv(b)|; undefined where a mean is near 0",
    "cv_ratio": "larger cv over smaller; undefined where a mean is near 0",
    "norm_ratio": "longer over shorter",
}
"""Every column of a comparison that measures something, with what it is."""

_DIRECT = (
    "cosine", "pearson", "spearman", "l2", "rel_l2", "rel_l2_b", "rel_l2_symmetric", "mean_abs_diff", "p99_abs_diff",
    "cv_diff",
)  # fmt: skip

Floats = npt.NDArray[np.float64]


def comparisons(
    models: Mapping[str, NormVectors],
    roles: Sequence[str],
    layers: Sequence[int],
    labels: Mapping[str, str],
    relations: Mapping[tuple[str, str], tuple[str, str]],
) -> pd.DataFrame:
    """Every two of these vectors, by every measure.

    Args:
        models: vectors by key, all of one hidden size.
        roles: norms are compared with norms of the same role only.
        layers: a layer that a model lacks is left out of it, and shifts nothing.
        labels: what readers see of each key.
        relations: by pair of keys, in either order: its group (``related``, ``independent`` or ``disputed``) and the
            kind of relation.

    Returns:
        Columns ``kind`` (``same layer``, ``mixed layers`` or ``within one model``), ``group`` and ``relation`` (those
        of the pair, or ``within``), ``pair``, ``a``, ``layer_a``, ``b``, ``layer_b``, ``role``, those of MEASURES, and
        ``mean_term``: c_a c_b, the cosine that the two means alone give.

    Raises:
        ComparisonError: for different hidden sizes, or when no two vectors are left to compare.
    """
    frames = [
        _block(role, layers, models[a], models[b], a == b).assign(a=labels[a], b=labels[b], **_related(relations, a, b))
        for role in roles
        for a, b in combinations_with_replacement(models, 2)
    ]
    if not any(len(frame) for frame in frames):
        raise ComparisonError(f"Comparing layers {list(layers)}: none of the models has two of them. Choose others.")
    found = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
    found["pair"] = np.where(found["group"] == "within", found["a"], found["a"] + " × " + found["b"])
    found["kind"] = np.where(found["group"] == "within", "within one model", found["kind"])
    first = ["kind", "group", "relation", "pair", "a", "layer_a", "b", "layer_b", "role"]
    return found[[*first, *MEASURES, "mean_term"]]


def coverage(
    models: Mapping[str, NormVectors], roles: Sequence[str], layers: Sequence[int], labels: Mapping[str, str]
) -> pd.DataFrame:
    """What there is to compare: one row a model, with the layers asked for that it has and those it lacks."""
    rows = []
    for key, vectors in models.items():
        there = [set(vectors[role].layers.tolist()) for role in roles]
        has = [layer for layer in layers if all(layer in one for one in there)]
        lacks = [layer for layer in layers if layer not in has]
        rows.append(
            {
                "model": labels[key],
                "channels": vectors.hidden_size,
                "stack": len(vectors[roles[0]].layers),
                "norm_type": vectors[roles[0]].norm_type,
                "layers": ", ".join(map(str, has)) or "none",
                "lacks": ", ".join(map(str, lacks)) or "none",
            }
        )
    return pd.DataFrame(rows).set_index("model")


def layer_zero(
    models: Mapping[str, NormVectors], layers: Sequence[int], labels: Mapping[str, str], first: int = 0
) -> pd.DataFrame:
    """The first layer of each model against later ones, for every role of the main tower's blocks.

    Args:
        models: vectors by key; each is compared with itself alone, so their hidden sizes may differ.
        layers: the later layers; those that a model lacks are left out.
        labels: what readers see of each key.
        first: the layer they are compared with.

    Returns:
        One row a model, role and layer: ``model``, ``role``, ``layer``, ``cosine``, ``pearson``, ``cv_diff`` (undefined
        where a mean is near 0), ``share_first`` and ``share`` (mean over root mean square of either vector).
    """
    frames = []
    for key, vectors in models.items():
        for role, one in vectors.roles.items():
            rows = [one.row(layer) for layer in layers if layer in one.layers and layer != first]
            if "/" in role or first not in one.layers or not rows:
                continue
            start, later = one.scale[[one.row(first)]], one.scale[rows]
            columns = {metric: pairwise(start, later, metric)[0] for metric in ("cosine", "pearson", "cv_diff")}
            share = {"share_first": row_statistics(start).share[0], "share": row_statistics(later).share}
            name = {"model": labels[key], "role": role, "layer": one.layers[rows]}
            frames.append(pd.DataFrame({**name, **columns, **share}))
    return pd.concat(frames, ignore_index=True)


def layer_zero_ranges(zero: pd.DataFrame) -> pd.DataFrame:
    """What ``layer_zero`` gives, one row a model and role: n, ranges of cosine and r, and the share of layer 0."""
    found = zero.groupby(["model", "role"], sort=False).agg(
        n=("layer", "size"),
        share_first=("share_first", "first"),
        cosine_min=("cosine", "min"),
        cosine_max=("cosine", "max"),
        r_min=("pearson", "min"),
        r_max=("pearson", "max"),
    )
    return found.reset_index()


def _block(role: str, layers: Sequence[int], a: NormVectors, b: NormVectors, within: bool) -> pd.DataFrame:
    """All layers of one model against all of another; within one model each pair of different layers once."""
    rows_a, rows_b = _rows(a[role], layers), _rows(b[role], layers)
    of_a, of_b = np.meshgrid(a[role].layers[rows_a], b[role].layers[rows_b], indexing="ij")
    keep = of_a < of_b if within else np.ones(of_a.shape, dtype=bool)
    if not keep.any():
        return pd.DataFrame()
    values = _measured(a[role].scale[rows_a], b[role].scale[rows_b])
    kind = np.where(of_a == of_b, "same layer", "mixed layers")
    columns = {"kind": kind, "layer_a": of_a, "layer_b": of_b, **values}
    return pd.DataFrame({name: column[keep] for name, column in columns.items()}).assign(role=role)


def _measured(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> dict[str, Floats]:
    """Every measure of every row with every row, each of shape ``(n_layers_a, n_layers_b)``."""
    found = {metric: pairwise(a, b, metric) for metric in _DIRECT}
    of_a, of_b = row_statistics(a), row_statistics(b)
    size_a, size_b = (np.abs(side.astype(np.float64)) for side in (a, b))
    means = size_a.mean(axis=1)[:, None] + size_b.mean(axis=1)[None, :]
    tails = np.quantile(size_a, 0.99, axis=1)[:, None] - np.quantile(size_b, 0.99, axis=1)[None, :]
    guarded = np.where(np.isnan(found["cv_diff"]), np.nan, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):  # a mean of 0 is guarded, as cv_diff is
        cvs = np.abs(of_a.std / of_a.mean)[:, None] / np.abs(of_b.std / of_b.mean)[None, :]
        found["cv_ratio"] = guarded * np.maximum(cvs, 1 / cvs)
    ratio = of_a.norm[:, None] / of_b.norm[None, :]
    return found | {
        "mean_abs_diff_relative": 2 * found["mean_abs_diff"] / means,
        "p99_diff": np.abs(tails),
        "norm_ratio": np.maximum(ratio, 1 / ratio),
        "mean_term": np.outer(of_a.share, of_b.share),
    }


def _rows(one: RoleVectors, layers: Sequence[int]) -> list[int]:
    return [one.row(layer) for layer in layers if layer in one.layers]


def _related(relations: Mapping[tuple[str, str], tuple[str, str]], a: str, b: str) -> dict[str, str]:
    within = ("within", "within")
    group, kind = within if a == b else relations[(a, b) if (a, b) in relations else (b, a)]
    return {"group": group, "relation": kind}

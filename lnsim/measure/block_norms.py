"""This module measures two norms of one block against each other: input against post, within the layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.matched import matched_rows, pair_label
from lnsim.measure.metrics import pairwise, row_statistics
from lnsim.measure.permutation import shared_null_std

__all__ = ["difference_pairs", "two_norms", "two_norms_summary"]


def two_norms(models: Mapping[str, NormVectors], roles: Sequence[str]) -> pd.DataFrame:
    """The first two of these roles in one layer of one model, against each other.

    Returns:
        Columns ``model``, ``layer``, ``r``, ``cosine``, ``norm_ratio`` (second over first), ``difference_mean`` and
        ``difference_std`` (ddof 0) of second minus first, ``r_other_layers`` (mean r of the first at this layer with
        the second at all other layers) and ``null_std`` (of r, channels shuffled: 1 / sqrt(n - 1)).
    """
    first, second = _two(roles)
    return pd.concat([_two_norms(label, vectors, first, second) for label, vectors in models.items()])


def _two(roles: Sequence[str]) -> tuple[str, str]:
    if len(roles) < 2:
        raise ComparisonError(f"Comparing two norms of one block: two roles are needed, found {', '.join(roles)}.")
    return roles[0], roles[1]


def _two_norms(label: str, vectors: NormVectors, first: str, second: str) -> pd.DataFrame:
    layers, rows_a, rows_b = matched_rows(vectors[first], vectors[second])
    a, b = vectors[first].scale[rows_a].astype(np.float64), vectors[second].scale[rows_b].astype(np.float64)
    norms_a, norms_b = row_statistics(a).norm, row_statistics(b).norm
    r, gap = pairwise(a, b, "pearson"), b - a
    others = (r.sum(axis=1) - np.diag(r)) / max(1, len(layers) - 1)
    return pd.DataFrame(
        {
            "model": label,
            "layer": layers,
            "r": np.diag(r),
            "cosine": np.einsum("ij,ij->i", a, b) / (norms_a * norms_b),
            "norm_ratio": norms_b / norms_a,
            "difference_mean": gap.mean(axis=1),
            "difference_std": gap.std(axis=1),
            "r_other_layers": others,
            "null_std": 1 / np.sqrt(a.shape[1] - 1),
        }
    )


def two_norms_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Means over the layers of ``two_norms``, one row a model, and the range of the norm ratio."""
    groups = frame.groupby("model", sort=False)
    return groups.agg(
        layers=("layer", "size"), r_mean=("r", "mean"), r_other_layers=("r_other_layers", "mean"),
        null_std=("null_std", "first"), cosine_mean=("cosine", "mean"), norm_ratio_min=("norm_ratio", "min"),
        norm_ratio_max=("norm_ratio", "max"),
    )  # fmt: skip


def difference_pairs(
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    roles: Sequence[str],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """Do two models share the difference between the two norms of a block, channel by channel?

    Returns:
        One row a pair: ``layers``, ``r_mean`` over equal layer numbers and ``r_null_std``, its exact standard deviation
        when one shuffle of the channels is shared by all layers.
    """
    first, second = _two(roles)
    rows: list[dict[str, Any]] = []
    for a, b in pairs:
        (layers_a, gap_a), (layers_b, gap_b) = (_difference(models[key], first, second) for key in (a, b))
        layers, rows_a, rows_b = np.intersect1d(layers_a, layers_b, return_indices=True)
        one, other = gap_a[rows_a], gap_b[rows_b]
        r_mean = float(np.diag(pairwise(one, other, "pearson")).mean())
        row = {"layers": len(layers), "r_mean": r_mean, "r_null_std": shared_null_std(one, other)}
        rows.append({"pair": pair_label(a, b, labels), **row})
    return pd.DataFrame(rows).set_index("pair")


def _difference(vectors: NormVectors, first: str, second: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    layers, rows_a, rows_b = matched_rows(vectors[first], vectors[second])
    gap = vectors[second].scale[rows_b].astype(np.float64) - vectors[first].scale[rows_a].astype(np.float64)
    return layers, gap

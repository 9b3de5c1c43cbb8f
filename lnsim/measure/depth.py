"""This module measures how γ changes with depth: its scale, the spread of its values, the order of its channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise

__all__ = [
    "PUBLISHED_RANGE",
    "cut_by_range",
    "histograms",
    "scale_with_depth",
    "sorted_map",
]

PUBLISHED_RANGE = (-0.2, 2.0)
"""Ends of the histograms of figure 9 of the published analysis; what lay outside was left out without a word."""

_MAP_COLUMNS = 128


def scale_with_depth(frame: pd.DataFrame) -> pd.DataFrame:
    """How the norm of γ goes from the first layer to the last; one row a model and role.

    Args:
        frame: as ``overview.statistics_by_layer`` gives it, for layers within the blocks.

    Returns:
        Columns ``model``, ``role``, ``layers``, ``norm_first``, ``norm_last``, ``norm_largest``, ``at_layer`` (of the
        largest), ``depth_rank_r`` (Spearman of norm and layer number) and ``rank_null_std`` (1 / sqrt(layers - 1), for
        layers in random order; neighbouring layers are alike, so it is too narrow).
    """
    rows = []
    for (model, role), one in frame.groupby(["model", "role"], sort=False):
        norm = one["norm"].to_numpy()
        largest = int(norm.argmax())
        rank = float(pairwise(norm[None, :], one["layer"].to_numpy(dtype=float)[None, :], "spearman")[0, 0])
        ends = {"norm_first": norm[0], "norm_last": norm[-1], "norm_largest": norm[largest]}
        depth = {"at_layer": int(one["layer"].iloc[largest]), "depth_rank_r": rank}
        null = {"rank_null_std": 1 / np.sqrt(len(norm) - 1)}
        rows.append({"model": model, "role": role, "layers": len(norm), **ends, **depth, **null})
    return pd.DataFrame(rows)


def sorted_map(models: Mapping[str, NormVectors], role: str) -> dict[str, pd.DataFrame]:
    """γ over layer and channel, channels in the order of their mean over the layers.

    Returns:
        By model, a frame with one row a layer; its columns are the mean rank of the channels that were averaged, at
        most 128 groups of as equal a size as can be.
    """
    maps = {}
    for label, vectors in models.items():
        scale = vectors[role].scale.astype(np.float64)
        order = np.argsort(scale.mean(axis=0), kind="stable")
        groups = np.array_split(order, min(_MAP_COLUMNS, len(order)))
        values = np.stack([scale[:, group].mean(axis=1) for group in groups], axis=1)
        ends = np.cumsum([len(group) for group in groups])
        columns = pd.Index(ends - (np.array([len(group) for group in groups]) + 1) / 2, name="rank")
        maps[label] = pd.DataFrame(values, index=pd.Index(vectors[role].layers, name="layer"), columns=columns)
    return maps


def histograms(
    models: Mapping[str, NormVectors], roles: Sequence[str], n_layers: int = 9, n_bins: int = 80
) -> pd.DataFrame:
    """Values of γ counted in bins that hold every value, with the same edges for all models and layers of a role.

    Returns:
        Columns ``model``, ``role``, ``layer``, ``left``, ``right`` (edges of the bin) and ``share`` of the channels; a
        model's shares in one layer sum to 1. Layers are spread evenly from the first to the last of those that all
        models have.
    """
    frames = []
    for role in roles:
        low = min(float(vectors[role].scale.min()) for vectors in models.values())
        high = max(float(vectors[role].scale.max()) for vectors in models.values())
        edges = np.linspace(low, np.nextafter(np.float32(high), np.float32(np.inf)), n_bins + 1)
        for layer in _spread(_common_layers(models, role), n_layers):
            frames += [_counted(label, vectors, role, layer, edges) for label, vectors in models.items()]
    return pd.concat(frames, ignore_index=True)


def _counted(label: str, vectors: NormVectors, role: str, layer: int, edges: npt.NDArray[np.float64]) -> pd.DataFrame:
    row = vectors[role].scale[vectors[role].row(layer)]
    counts = np.histogram(row.astype(np.float64), bins=edges)[0]
    names = {"model": label, "role": role, "layer": layer}
    return pd.DataFrame({**names, "left": edges[:-1], "right": edges[1:], "share": counts / row.size})


def _common_layers(models: Mapping[str, NormVectors], role: str) -> list[int]:
    common = set.intersection(*(set(vectors[role].layers.tolist()) for vectors in models.values()))
    if not common:
        raise ComparisonError(f"Drawing γ of role '{role}' by layer: {', '.join(models)} share no layer.")
    return sorted(common)


def _spread(layers: Sequence[int], n: int) -> list[int]:
    places = np.unique(np.linspace(0, len(layers) - 1, min(n, len(layers))).round().astype(int))
    return [layers[place] for place in places]


def cut_by_range(
    models: Mapping[str, NormVectors], roles: Sequence[str], ends: tuple[float, float] = PUBLISHED_RANGE
) -> pd.DataFrame:
    """How much of γ a histogram from `ends[0]` to `ends[1]` leaves out; one row a model and role.

    Returns:
        Columns ``model``, ``role``, ``share_outside`` (of all values), ``worst_layer`` and ``worst_share_outside``.
    """
    rows = []
    for label, vectors in models.items():
        for role in roles:
            scale = vectors[role].scale
            outside = ((scale < ends[0]) | (scale > ends[1])).mean(axis=1)
            worst = int(outside.argmax())
            found = {"worst_layer": int(vectors[role].layers[worst]), "worst_share_outside": float(outside[worst])}
            rows.append({"model": label, "role": role, "share_outside": float(outside.mean()), **found})
    return pd.DataFrame(rows)

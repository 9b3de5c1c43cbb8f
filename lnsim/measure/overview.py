"""This module tabulates what was read: sizes and origins, statistics by layer, and a check of the bits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.rows import row_statistics

__all__ = ["check_hashes", "labelled", "models_read", "sampled", "statistics_by_layer", "with_role"]


def labelled(models: Mapping[str, NormVectors], labels: Mapping[str, str]) -> dict[str, NormVectors]:
    """The same vectors under the names that readers see."""
    return {labels[key]: vectors for key, vectors in models.items()}


def models_read(models: Mapping[str, NormVectors]) -> pd.DataFrame:
    """What was read of each model, one row a model.

    Args:
        models: vectors by the label that readers see.

    Returns:
        Columns ``family``, ``norm_type``, ``blocks``, ``channels``, ``tensors`` (weights and biases), ``bytes`` (as
        stored), ``dtype``, ``commit`` (or ``none recorded``), ``requests``, ``bytes_received`` and ``missing_layers``
        (how many layers the config promises and the checkpoint lacks).
    """
    return pd.DataFrame.from_dict(
        {label: _row(vectors) for label, vectors in models.items()}, orient="index"
    ).rename_axis("model")


def statistics_by_layer(models: Mapping[str, NormVectors]) -> pd.DataFrame:
    """Statistics of every γ vector.

    Returns:
        Columns ``model``, ``role``, ``layer`` (-1 outside the blocks), ``mean``, ``std`` (ddof 0), ``norm``
        (Euclidean), ``min``, ``max`` and ``mean_over_rms``.
    """
    frames = []
    for label, vectors in models.items():
        for role, one in vectors.roles.items():
            found = row_statistics(one.scale)
            values = {name: getattr(found, name) for name in ("mean", "std", "norm", "min", "max")}
            values["mean_over_rms"] = found.share
            frames.append(pd.DataFrame({"model": label, "role": role, "layer": one.layers, **values}))
    return pd.concat(frames, ignore_index=True)


def with_role(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of norms that have a role; what was read as ``other/...`` is left out."""
    return frame[~frame["role"].str.startswith("other/")]


def sampled(frame: pd.DataFrame, n_layers: int = 5) -> pd.DataFrame:
    """Some layers of each role, spread evenly from the first to the last; the order of the roles stays.

    Args:
        frame: as ``statistics_by_layer`` gives it, of one model.
        n_layers: how many of each role.
    """
    parts = []
    for _, one in frame.groupby("role", sort=False):
        places = np.unique(np.linspace(0, len(one) - 1, n_layers).round().astype(int))
        parts.append(one.iloc[places])
    return pd.concat(parts)


def check_hashes(models: Mapping[str, NormVectors]) -> pd.DataFrame:
    """Hash the bytes of every vector again and compare with the hash recorded when they were read.

    Returns:
        One row a model: ``checked`` tensors, ``equal`` ones among them, and ``first_difference`` by name, or nothing.
    """
    rows: dict[str, dict[str, Any]] = {}
    for label, vectors in models.items():
        stored = vectors.stored
        wrong = [
            name
            for name, array in stored.items()
            if hashlib.sha256(array.tobytes()).hexdigest() != vectors.tensors[name].sha256
        ]
        first = wrong[0] if wrong else "none"
        rows[label] = {"checked": len(stored), "equal": len(stored) - len(wrong), "first_difference": first}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def _row(vectors: NormVectors) -> dict[str, Any]:
    stored = vectors.stored
    return {
        "family": vectors.model_type,
        "norm_type": vectors.norm_type,
        "blocks": _n_blocks(vectors),
        "channels": vectors.hidden_size,
        "tensors": len(stored),
        "bytes": sum(array.nbytes for array in stored.values()),
        "dtype": ", ".join(sorted({source.dtype for source in vectors.tensors.values()})),
        "commit": vectors.commit or "none recorded",
        "requests": vectors.requests,
        "bytes_received": vectors.bytes_received,
        "missing_layers": sum(len(layers) for layers in vectors.missing_layers.values()),
    }


def _n_blocks(vectors: NormVectors) -> int:
    """Blocks that have a norm with a role; those of each tower, and of an MTP block, count apart."""
    named = {role: one for role, one in vectors.roles.items() if not role.startswith("other/")}
    return len({(role.rpartition("/")[0], int(n)) for role, one in named.items() for n in one.layers if n >= 0})

"""This module tabulates what was read: sizes and origins, and statistics by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.rows import row_statistics

__all__ = ["labelled", "models_read", "statistics_by_layer"]


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

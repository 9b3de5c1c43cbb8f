"""This module finds the principal components of all layers of several models together (PCA).

Once as the vectors are, and once after each vector's own mean was taken away and its length made 1, since the first
component of vectors that share a large mean is that mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.nulls import centred_unit

__all__ = ["Components", "principal_components"]

Floats = npt.NDArray[np.float64]

_N = 3


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Where every layer lies along the first three principal components.

    Args:
        places: columns ``model``, ``role``, ``layer``, ``pc1``, ``pc2``, ``pc3``.
        explained: share of the variance (around the mean of all vectors) that each component explains, shape ``(3,)``.
        along_mean: absolute cosine of each component with the direction (1, 1, ..., 1), shape ``(3,)``.
        left_out: labels of the models whose vectors have another length, in order.
    """

    places: pd.DataFrame
    explained: Floats
    along_mean: Floats
    left_out: tuple[str, ...]


def principal_components(models: Mapping[str, NormVectors], role: str, pattern: bool = False) -> Components:
    """Principal components of all layers of the models that are as wide as the first one.

    Args:
        models: by label.
        role: the norm.
        pattern: True to take each vector's own mean away and make its length 1 before.

    Raises:
        ComparisonError: when there are fewer than four vectors, or a vector is constant under `pattern`.
    """
    width = next(iter(models.values()))[role].hidden_size
    wide = {label: vectors for label, vectors in models.items() if vectors[role].hidden_size == width}
    rows = np.concatenate([vectors[role].scale for vectors in wide.values()]).astype(np.float64)
    if len(rows) <= _N:
        raise ComparisonError(f"Finding {_N} principal components of role '{role}': only {len(rows)} vectors.")
    rows = centred_unit(rows) if pattern else rows
    places, directions, explained = _decomposed(rows - rows.mean(axis=0))
    along = np.abs(directions.sum(axis=1)) / np.sqrt(width)
    left_out = tuple(label for label in models if label not in wide)
    return Components(_labelled(places, wide, role), explained, along, left_out)


def _decomposed(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Places, directions and shares of the variance, by the small matrix of inner products of the vectors."""
    values, vectors = np.linalg.eigh(rows @ rows.T)
    values, vectors = values[::-1][:_N], vectors[:, ::-1][:, :_N]
    # A component has no sign of its own: the layer farthest out is put on the positive side.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(_N)])
    lengths = np.sqrt(np.maximum(values, 0.0))
    directions = np.divide(
        vectors.T @ rows, lengths[:, None], out=np.zeros((_N, rows.shape[1])), where=lengths[:, None] > 0
    )
    total = float(np.sum(rows * rows))
    return vectors * lengths, directions, np.asarray(values / total if total > 0 else np.zeros(_N))


def _labelled(places: Floats, models: Mapping[str, NormVectors], role: str) -> pd.DataFrame:
    names: Sequence[str] = [label for label, vectors in models.items() for _ in vectors[role].layers]
    layers = np.concatenate([vectors[role].layers for vectors in models.values()])
    columns = {f"pc{number + 1}": places[:, number] for number in range(_N)}
    return pd.DataFrame({"model": names, "role": role, "layer": layers, **columns})

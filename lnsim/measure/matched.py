"""This module compares two models layer by layer at the layer numbers that both have, and at no others.

Each model's vectors are prepared once, however many models they are compared with.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.rows import Matrix, centre, lengths, row_statistics, scale, widen

__all__ = ["MatchedRows"]


@dataclass(frozen=True, slots=True, eq=False)
class MatchedRows:
    """The vectors of one model and role, ready to be compared at equal layer numbers.

    Args:
        layers: layer numbers, shape ``(n_layers,)``.
        unit: vectors of length 1, shape ``(n_layers, hidden_size)``; NaN where a vector has no length.
        centred: the same after each vector's mean is removed; NaN where it is constant.
        share: mean over root mean square, shape ``(n_layers,)``.
    """

    layers: npt.NDArray[np.int64]
    unit: Matrix
    centred: Matrix
    share: Matrix

    def __post_init__(self) -> None:
        if not len(self.layers) == len(self.unit) == len(self.centred) == len(self.share):
            raise ComparisonError(f"Preparing {len(self.layers)} layers: expected one row of each kind a layer.")

    @classmethod
    def of(cls, one: RoleVectors) -> MatchedRows:
        """Prepare the vectors of one role."""
        rows, broken = widen(one.scale)
        rows[broken] = np.nan
        return cls(one.layers, _unit(rows), _unit(centre(rows)[1]), row_statistics(one.scale).share)

    def against(self, other: MatchedRows) -> pd.DataFrame:
        """Every layer number that both have.

        Returns:
            Columns ``layer``, ``cosine``, ``mean_term`` (the cosine that the means alone give) and ``r``.

        Raises:
            ComparisonError: when they have no layer number in common, or different hidden sizes.
        """
        if self.unit.shape[1] != other.unit.shape[1]:
            raise ComparisonError(
                f"Comparing layers: the hidden sizes {self.unit.shape[1]} and {other.unit.shape[1]} differ, so no "
                "channels are common."
            )
        layers, rows, others = np.intersect1d(self.layers, other.layers, assume_unique=True, return_indices=True)
        if not len(layers):
            raise ComparisonError("Comparing layers: the two models have no layer number in common.")
        return pd.DataFrame(
            {
                "layer": layers,
                "cosine": _cosines(self.unit[rows], other.unit[others]),
                "mean_term": self.share[rows] * other.share[others],
                "r": _cosines(self.centred[rows], other.centred[others]),
            }
        )


def _unit(rows: Matrix) -> Matrix:
    """Rows of length 1; a row without length becomes NaN."""
    scaled = scale(np.nan_to_num(rows))[0]
    length = lengths(scaled)[:, None]
    unit: Matrix = np.divide(scaled, length, out=np.full(rows.shape, np.nan), where=length > 0)
    unit[np.isnan(rows).any(axis=1)] = np.nan
    return unit


def _cosines(a: Matrix, b: Matrix) -> Matrix:
    """Row by row, from the chord between unit vectors: exactly 1 for equal ones, and never more."""
    chord = a - b
    return np.asarray(1.0 - np.einsum("ij,ij->i", chord, chord) / 2)

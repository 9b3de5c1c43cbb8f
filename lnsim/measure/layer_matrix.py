"""This module takes the measures of one alignment from plain arrays, so that a comparison of two models needs no table.

``lnsim.measure.alignment`` and ``lnsim.measure.alignment_pieces`` take the same measures of a labelled frame, by the
functions here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError

__all__ = ["PARTNER_FROM", "LayerMatrix"]

PARTNER_FROM = 0.5
"""A layer has a partner where its largest r is at least this; something is always the largest."""

_AS_GOOD = 0.01
"""A layer of equal number is as good a partner as the best one where its r is less by no more than this: after a depth
expansion a layer has two partners, and which of them is the better one is left to noise."""

_TIE = 1e-12
"""Values that differ by less are equal: sums in another order may differ in the last bits."""

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class LayerMatrix:
    """Likeness of every layer of a with every layer of b; r is meant, and any measure that grows with it will do.

    Args:
        values: shape ``(n_layers_a, n_layers_b)``, float64, defined in every cell.
        layers_a: layer numbers of the rows, shape ``(n_layers_a,)``, each once.
        layers_b: layer numbers of the columns, shape ``(n_layers_b,)``, each once.
        names: what messages call the two models.

    Raises:
        ComparisonError: when there is no cell, a value is undefined, or the numbers do not fit the shape.
    """

    values: Floats
    layers_a: npt.NDArray[np.int64]
    layers_b: npt.NDArray[np.int64]
    names: str = "'a' and 'b'"

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.layers_a), len(self.layers_b)):
            raise ComparisonError(
                f"Aligning layers of {self.names}: {len(self.layers_a)} and {len(self.layers_b)} layers were named, "
                f"found a matrix of shape {self.values.shape}."
            )
        if not self.values.size or not np.isfinite(self.values).all():
            raise ComparisonError(
                f"Aligning layers of {self.names}: expected a defined value in every cell, found "
                f"{int((~np.isfinite(self.values)).sum())} undefined of {self.values.size}. A constant vector has no "
                "r; leave it out."
            )

    def partners(self, offset: int) -> tuple[Places, Places]:
        """Row and column of every cell at an offset (layer of b minus layer of a); ComparisonError where none is."""
        rows, columns = np.nonzero(self.layers_b == self.layers_a[:, np.newaxis] + offset)
        if not rows.size:
            raise ComparisonError(f"Matching layers of {self.names} at offset {offset}: no layer has a partner.")
        return rows, columns

    def best_offset(self, min_share: float = 0.5) -> int:
        """The offset with the largest mean of its cells; the smallest shift where several are equal.

        Args:
            min_share: an offset counts where its cells are at least this share of the shorter stack's layers.
        """
        found = (self.layers_b - self.layers_a[:, np.newaxis]).ravel()
        offsets, places, counts = np.unique(found, return_inverse=True, return_counts=True)
        means = np.bincount(places.ravel(), weights=self.values.ravel()) / counts
        enough = counts >= min_share * min(self.values.shape)
        best = enough & (means >= means[enough].max() - _TIE)
        return int(min(offsets[best], key=abs))

    def alignment_rate(self, offset: int = 0) -> float:
        """Share of layers of a whose largest value in their row is the layer of b at this offset; ties count."""
        rows, columns = self.partners(offset)
        return float((self.values[rows, columns] >= self.values[rows].max(axis=1) - _TIE).mean())

    def margin(self, offset: int = 0) -> float:
        """Mean over layers of a of the matched value minus the largest other one in its row.

        Raises:
            ComparisonError: when b has only one layer, so that there is no other.
        """
        rows, columns = self.partners(offset)
        if self.values.shape[1] < 2:
            raise ComparisonError(f"Taking the margin of {self.names}: b has one layer, expected at least 2.")
        others = self.values[rows].copy()
        others[np.arange(len(rows)), columns] = -np.inf
        return float((self.values[rows, columns] - others.max(axis=1)).mean())

    def partner_counts(self, least: float = PARTNER_FROM) -> dict[str, int]:
        """Where the layers of the shorter stack have their best partner; of two equally long ones, those of b.

        Returns:
            ``layers``, and how many of them have it at the ``same`` number, ``elsewhere``, or are ``without`` one: no r
            reaches `least`. A partner of the same number counts as the best where its r is less by 0.01 at most.
        """
        by_b = self.values.shape[1] <= self.values.shape[0]
        values = self.values if by_b else self.values.T
        equal = (
            (self.layers_a[:, np.newaxis] == self.layers_b) if by_b else (self.layers_b[:, np.newaxis] == self.layers_a)
        )
        largest = values.max(axis=0)
        has, same = largest >= least, (equal & (values >= largest - _AS_GOOD)).any(axis=0)
        counts = {"same": has & same, "elsewhere": has & ~same, "without": ~has}
        return {"layers": len(largest)} | {name: int(which.sum()) for name, which in counts.items()}

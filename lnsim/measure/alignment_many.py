"""This module takes the measures of an alignment over many matrices of one shape at once, as null distributions need.

It gives what ``lnsim.measure.alignment`` gives for one matrix; the tests compare the two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.measure import alignment
from lnsim.measure.nulls import Floats

__all__ = ["Cells", "Places", "gaps", "longest_ascents"]

Places = npt.NDArray[np.intp]
"""Row or column numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Which cells of a matrix belong together.

    Args:
        rows: row of every cell at equal layer numbers; columns likewise.
        offsets: for each offset that counts, the flat places of its cells.
    """

    rows: Places
    columns: Places
    offsets: tuple[Places, ...]

    @classmethod
    def of(cls, matrix: pd.DataFrame, min_share: float = 0.5) -> Cells:
        """Those of this matrix; ComparisonError where a value is undefined or no layer number is common."""
        found = alignment.cells(matrix)["offset"].to_numpy()
        offsets = tuple(np.flatnonzero(found == one) for one in alignment.by_offset(matrix, min_share).index)
        return cls(*alignment.matched_places(matrix), offsets)

    def best_means(self, values: Floats) -> Floats:
        """The largest mean over the offsets, of every matrix of `values`, shape ``(n, n_layers_a, n_layers_b)``."""
        flat = values.reshape(len(values), -1)
        return np.asarray(np.max([flat[:, places].mean(axis=1) for places in self.offsets], axis=0))

    def rates(self, values: Floats) -> Floats:
        """``alignment.alignment_rate`` of every matrix."""
        largest = values.max(axis=2)[:, self.rows] - 1e-12
        return np.asarray((values[:, self.rows, self.columns] >= largest).mean(axis=1))

    def margins(self, values: Floats) -> Floats:
        """``alignment.margin`` of every matrix."""
        return np.asarray(gaps(values)[:, self.rows, self.columns].mean(axis=1))


def gaps(values: Floats) -> Floats:
    """Each cell less the largest other value of its row; the last axis holds the cells of a row."""
    ordered = np.partition(values, -2, axis=-1)
    largest, second = ordered[..., -1:], ordered[..., -2:-1]
    return np.asarray(values - np.where(values == largest, second, largest))


def longest_ascents(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Length of the longest ascending part of each row, entries between its members being left out.

    >>> longest_ascents(np.array([[0, 1, 5, 2, 3], [4, 3, 2, 1, 0]])).tolist()
    [4, 1]
    """
    lengths = np.ones(rows.shape, dtype=np.int64)
    for place in range(1, rows.shape[1]):
        before = np.where(rows[:, :place] < rows[:, place : place + 1], lengths[:, :place], 0)
        lengths[:, place] += before.max(axis=1)
    return np.asarray(lengths.max(axis=1))

"""This module asks which layers of two models belong together: same number, shifted, pruned, repeated, or none.

Everything here takes one matrix of likeness, a frame whose index holds the layer numbers of a and whose columns hold
those of b; r is meant, and any measure that grows with likeness will do. A best match is a selection: among many cells
one is always the largest, so it is no evidence by itself. ``layer_null`` and ``lnsim.measure.layer_nulls`` say what the
order of the layers is worth, ``lnsim.measure.permutation`` what the channels are worth.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure.layer_matrix import LayerMatrix
from lnsim.measure.nulls import NullResult, pvalue

__all__ = [
    "alignment_rate",
    "best_match",
    "best_offset",
    "by_offset",
    "cells",
    "diagonal_statistics",
    "layer_null",
    "margin",
    "matched_places",
    "nearest",
]

Floats = npt.NDArray[np.float64]


def cells(matrix: pd.DataFrame) -> pd.DataFrame:
    """The matrix as one row a cell: ``layer_a``, ``layer_b``, ``offset`` (layer_b - layer_a) and ``value``."""
    values = _checked(matrix)
    layer_a, layer_b = np.meshgrid(matrix.index.to_numpy(), matrix.columns.to_numpy(), indexing="ij")
    columns = {"layer_a": layer_a, "layer_b": layer_b, "offset": layer_b - layer_a, "value": values}
    return pd.DataFrame({name: column.ravel() for name, column in columns.items()})


def diagonal_statistics(matrix: pd.DataFrame) -> pd.DataFrame:
    """Matched cells (equal layer numbers) against all others; index ``matched`` and ``unmatched``.

    Returns:
        Columns ``n``, ``mean``, ``std`` (ddof 0), ``median``, ``q05``, ``q95``, ``min`` and ``max``. Cells of one row
        or column share a vector, so n is a count of cells and not of independent observations.

    Raises:
        ComparisonError: when a value is undefined, or no layer number or nothing but matched cells is there.
    """
    frame = cells(matrix)
    groups = {"matched": frame["value"][frame["offset"] == 0], "unmatched": frame["value"][frame["offset"] != 0]}
    for name, values in groups.items():
        if values.empty:
            raise ComparisonError(f"Describing the cells of {_names(matrix)}: there is no {name} one.")
    return pd.DataFrame({name: _described(values.to_numpy()) for name, values in groups.items()}).T


def by_offset(matrix: pd.DataFrame, min_share: float = 0.5) -> pd.DataFrame:
    """Mean over all cells of each offset (layer of b minus layer of a).

    Args:
        matrix: likeness by layer.
        min_share: an offset is kept where its cells are at least this share of the shorter stack's layers; few cells
            reach an extreme mean by chance alone.

    Returns:
        Index ``offset``, ascending; columns ``n`` and ``mean``.
    """
    grouped = cells(matrix).groupby("offset")["value"].agg(n="size", mean="mean")
    return grouped[grouped["n"] >= min_share * min(matrix.shape)]


def best_offset(matrix: pd.DataFrame, min_share: float = 0.5) -> int:
    """The offset with the largest mean among those of ``by_offset``; the smallest shift where several are equal.

    It is the largest of many means, and its value is therefore biased upwards. A stack that was expanded or pruned in
    its middle has no single offset; ``nearest`` shows what it has.
    """
    return _plain(matrix).best_offset(min_share)


def alignment_rate(matrix: pd.DataFrame, offset: int = 0) -> float:
    """Share of layers of a whose largest value in their row is the layer of b at this offset.

    Only layers whose partner exists count. Chance gives about one over the number of b's layers; layers of one model
    resemble each other, so a rate between that and 1 may come from neighbours. Where values tie, the match counts.
    """
    return _plain(matrix).alignment_rate(offset)


def margin(matrix: pd.DataFrame, offset: int = 0) -> float:
    """Mean over layers of a of the matched value minus the largest other value in its row.

    Positive where layers find their partner with room to spare, negative where some other layer is the more alike. The
    largest of many is subtracted, so strangers have a negative margin.

    Raises:
        ComparisonError: when b has only one layer, so that there is no other.
    """
    return _plain(matrix).margin(offset)


def matched_places(matrix: pd.DataFrame) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Row and column of every cell at equal layer numbers; ComparisonError where there is none."""
    return _partners(matrix, 0)[1:]


def best_match(matrix: pd.DataFrame) -> pd.DataFrame:
    """Pair layers one to one so that the sum of values is largest (`scipy.optimize.linear_sum_assignment`).

    Returns:
        One row a layer of the shorter stack: ``layer_a``, ``layer_b``, ``value``. Some pairing always exists; between
        strangers it is noise that was picked, so look at its values and at whether it keeps the order.
    """
    from scipy.optimize import linear_sum_assignment

    values = _checked(matrix)
    rows, columns = linear_sum_assignment(values, maximize=True)
    pairs = {"layer_a": matrix.index[rows], "layer_b": matrix.columns[columns], "value": values[rows, columns]}
    return pd.DataFrame(pairs)


def nearest(matrix: pd.DataFrame) -> pd.DataFrame:
    """For every layer of b, the layer of a that is the most alike: ``layer_b``, ``layer_a``, ``value``.

    Several layers of b may have the same one, as after a depth expansion that repeats layers. The first of equals wins.
    """
    values = _checked(matrix)
    rows = values.argmax(axis=0)
    pairs = {"layer_b": matrix.columns, "layer_a": matrix.index[rows], "value": values.max(axis=0)}
    return pd.DataFrame(pairs)


def layer_null(matrix: pd.DataFrame, n_permutations: int, seed: int) -> NullResult:
    """Is the mean of matched cells larger than with the layers of b in another order?

    Breaks: which layer number belongs to which of b's matched layers. Keeps: every value, so also whatever all layers
    share. A small p says that the order of the layers matters; a large one may mean that the models share nothing, or
    that all their layers are alike. One-sided.

    Raises:
        ComparisonError: for undefined values, or fewer than 2 matched layers.
    """
    values, rows, columns = _partners(matrix, 0)
    if len(rows) < 2:
        raise ComparisonError(f"Permuting the layers of {_names(matrix)}: one layer matches, expected at least 2.")
    square = values[np.ix_(rows, columns)]
    generator = np.random.default_rng(seed)
    orders = generator.permuted(np.tile(np.arange(len(rows)), (n_permutations, 1)), axis=1)
    null = square[np.arange(len(rows)), orders].mean(axis=1)
    return pvalue(float(np.diag(square).mean()), null, "greater")


def _partners(matrix: pd.DataFrame, offset: int) -> tuple[Floats, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The values, and row and column of every cell at an offset."""
    plain = _plain(matrix)
    return plain.values, *plain.partners(offset)


def _plain(matrix: pd.DataFrame) -> LayerMatrix:
    """The frame as arrays; ComparisonError where a value is undefined."""
    values = matrix.to_numpy(dtype=np.float64)
    return LayerMatrix(values, matrix.index.to_numpy(), matrix.columns.to_numpy(), _names(matrix))


def _checked(matrix: pd.DataFrame) -> Floats:
    return _plain(matrix).values


def _described(values: Floats) -> dict[str, float]:
    q05, median, q95 = np.quantile(values, [0.05, 0.5, 0.95])
    ends = {"q05": q05, "q95": q95, "min": values.min(), "max": values.max()}
    return {"n": len(values), "mean": values.mean(), "std": values.std(), "median": median, **ends}


def _names(matrix: pd.DataFrame) -> str:
    return f"'{matrix.index.name or 'a'}' and '{matrix.columns.name or 'b'}'"

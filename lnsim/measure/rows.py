"""This module prepares vectors for measuring: checked, widened to float64, with the statistics of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError

__all__ = [
    "MAX_MAGNITUDE",
    "Matrix",
    "RowStatistics",
    "centre",
    "check_pair",
    "check_rows",
    "lengths",
    "row_statistics",
    "scale",
    "widen",
]

Matrix = npt.NDArray[np.float64]

MAX_MAGNITUDE = 1e150
"""Squares of larger values leave float64; no norm weight comes near, so a row that does is broken."""

# NumPy itself calls these void, so they are named one by one
_NARROW_FLOATS = tuple(
    np.dtype(kind)
    for kind in (
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)


@dataclass(frozen=True, slots=True, eq=False)
class RowStatistics:
    """Statistics of each row, all of shape ``(n_layers,)`` and float64.

    Args:
        mean: arithmetic mean over the channels.
        std: standard deviation over the channels, ddof 0.
        norm: Euclidean length.
        min: smallest value.
        max: largest value.
        share: mean over root mean square, in [-1, 1]: how much of the vector points along (1, 1, ..., 1). Its square
            is the part of the squared length that the mean alone explains. NaN for an all-zero row.
    """

    mean: Matrix
    std: Matrix
    norm: Matrix
    min: Matrix
    max: Matrix
    share: Matrix


def row_statistics(a: npt.ArrayLike) -> RowStatistics:
    """Mean, spread, length, range and mean share of every row.

    Args:
        a: vectors, shape ``(n_layers, hidden_size)``, any real dtype.

    Raises:
        ComparisonError: when ``a`` is not a matrix of numbers, or is empty.

    A row with a value that is not finite has NaN in every statistic.
    """
    rows, broken = widen(check_rows(a, "a"))
    mean, centred = centre(rows)
    std = np.sqrt((centred**2).mean(axis=1))
    rms = np.hypot(mean, std)
    share = np.divide(mean, rms, out=np.full(len(rows), np.nan), where=rms > 0)
    found = [mean, std, rms * np.sqrt(rows.shape[1]), rows.min(axis=1), rows.max(axis=1), share]
    for values in found:
        values[broken] = np.nan
    return RowStatistics(*found)


def check_pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Both as matrices of one hidden size; raises ComparisonError with both shapes where they are not."""
    rows_a, rows_b = check_rows(a, "a"), check_rows(b, "b")
    if rows_a.shape[1] != rows_b.shape[1]:
        raise ComparisonError(
            f"Comparing a of shape {rows_a.shape} with b of shape {rows_b.shape}: the hidden sizes {rows_a.shape[1]} "
            f"and {rows_b.shape[1]} differ, and vectors of different length have no common channels to compare."
        )
    return rows_a, rows_b


def check_rows(a: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """The argument as a matrix, its dtype kept; raises ComparisonError for another shape, dtype or nothing at all."""
    rows = np.asarray(a)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ComparisonError(
            f"Comparing vectors: {name} has shape {rows.shape}, expected (n_layers, hidden_size) with at least one of "
            f"each. A single vector goes in as {name}[None, :]."
        )
    if not _is_real(rows.dtype):
        raise ComparisonError(f"Comparing vectors: {name} has dtype {rows.dtype}, expected real numbers.")
    return rows


def _is_real(dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "fiu":
        return True
    return dtype in _NARROW_FLOATS


def widen(rows: npt.NDArray[Any]) -> tuple[Matrix, npt.NDArray[np.bool_]]:
    """Rows as float64, which holds every value of a narrower dtype exactly, and which of them are broken.

    A row with NaN, an infinity or a value beyond MAX_MAGNITUDE is broken. It comes back as zeros, so that it disturbs
    no other row; callers put NaN where it took part.
    """
    with np.errstate(invalid="ignore"):  # a signalling NaN warns when it is cast; the row is marked below
        wide = rows.astype(np.float64)
    broken = np.array((~(np.abs(wide) <= MAX_MAGNITUDE)).any(axis=1), dtype=np.bool_)
    wide[broken] = 0.0
    return wide, broken


def lengths(rows: Matrix) -> Matrix:
    """Euclidean length of each row, shape ``(n_layers,)``; zero for an all-zero row only."""
    scaled, exponent = scale(rows)
    return np.asarray(np.ldexp(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), exponent[:, 0]), dtype=np.float64)


def scale(rows: Matrix) -> tuple[Matrix, npt.NDArray[np.int32]]:
    """Rows times powers of two that bring their largest values near 1, and the exponents, shape ``(n_layers, 1)``.

    Scaling by a power of two is exact, and keeps the squares of very small values from vanishing.
    """
    exponent = np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1]
    return np.ldexp(rows, -exponent), exponent


def centre(rows: Matrix) -> tuple[Matrix, Matrix]:
    """Means of the rows, shape ``(n_layers,)``, and the rows without them.

    Each row is first taken relative to its own first value: what is left is exactly zero in a constant row, and loses
    nothing to rounding where the values lie close together, as those of γ do.
    """
    shifted = rows - rows[:, :1]
    offset = shifted.mean(axis=1)
    return rows[:, 0] + offset, shifted - offset[:, None]

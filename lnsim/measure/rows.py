"""This module prepares vectors for measuring: checked, widened to float64, described, or changed row by row.

A robust correlation is the Pearson r of rows that were changed first: ranked, winsorised or trimmed. Each change looks
at one row alone, never at the row it is compared with. So whatever holds for Pearson r under permuted channels (its
null, the exact moments of that null, the fast sums) holds for the changed rows as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError

Matrix = npt.NDArray[np.float64]

MAX_MAGNITUDE = 1e150  # squares of larger values leave float64; no norm weight comes near, so a row that does is broken
TAIL = 0.05  # share of a row's channels that count as extreme, at either end
# NumPy itself calls these void, so they are named one by one
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_NARROW_FLOATS = tuple(np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", *_FLOAT8))


@dataclass(frozen=True, slots=True, eq=False)
class RowStatistics:
    """Statistics of each row, all of shape ``(n_layers,)`` and float64."""

    mean: Matrix  # arithmetic mean over the channels
    std: Matrix  # standard deviation over the channels, ddof 0
    norm: Matrix  # Euclidean length
    min: Matrix  # smallest value
    max: Matrix  # largest value
    # mean over root mean square, in [-1, 1]: how much of the vector points along (1, 1, ..., 1). Its square is
    # the part of the squared length that the mean alone explains. NaN for an all-zero row.
    share: Matrix


def row_statistics(a: npt.ArrayLike) -> RowStatistics:
    """Mean, spread, length, range and mean share of every row of a matrix of any real dtype.

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
    if rows.dtype.kind not in "fiu" and rows.dtype not in _NARROW_FLOATS:
        raise ComparisonError(f"Comparing vectors: {name} has dtype {rows.dtype}, expected real numbers.")
    return rows


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


def ranks(rows: Matrix) -> Matrix:
    """Ranks from 1 within each row; equal values share the average of their ranks."""
    return np.stack([_ranks_of_row(row) for row in rows])


def _ranks_of_row(row: Matrix) -> Matrix:
    _, inverse, counts = np.unique(row, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Matrix = (last - (counts - 1) / 2)[inverse]
    return ranks


def winsorised(rows: Matrix) -> Matrix:
    """Values beyond the row's 5 % and 95 % quantiles are drawn in to these: they keep their side, not their size."""
    low, high = np.quantile(rows, (TAIL, 1 - TAIL), axis=1, keepdims=True)
    return np.asarray(np.clip(rows, low, high))


def trimmed(rows: Matrix) -> Matrix:
    """Values beyond the row's 5 % and 95 % quantiles bear no witness: they count as the mean of those that are kept.

    A product with such a value is 0. That differs from a trimmed r which drops the channel from both rows: which
    channels are dropped would then depend on how the rows stand to each other, and change with every permutation.
    """
    low, high = np.quantile(rows, (TAIL, 1 - TAIL), axis=1, keepdims=True)
    kept = (rows >= low) & (rows <= high)
    mean = np.where(kept, rows, 0.0).sum(axis=1, keepdims=True) / kept.sum(axis=1, keepdims=True)
    return np.where(kept, rows, mean)


CORRELATIONS: Mapping[str, Callable[[Matrix], Matrix]] = {
    "pearson": lambda rows: rows, "spearman": ranks, "winsorised": winsorised, "trimmed": trimmed,
}  # fmt: skip
"""By the name of a correlation, what is done to the rows before Pearson r is taken."""


def prepared(rows: npt.ArrayLike, correlation: str) -> Matrix:
    """Rows, of any real dtype, whose Pearson r is the correlation asked for, one of CORRELATIONS.

    >>> prepared([[10.0, 500.0, 20.0]], "spearman").tolist()
    [[1.0, 3.0, 2.0]]
    """
    if correlation not in CORRELATIONS:
        raise ComparisonError(f"'{correlation}' is no correlation; known are {', '.join(CORRELATIONS)}.")
    return CORRELATIONS[correlation](np.asarray(rows, dtype=np.float64))

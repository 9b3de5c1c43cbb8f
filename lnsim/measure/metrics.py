"""This module measures two sets of vectors against each other, every row of one with every row of the other.

All sums run in float64, whatever dtype comes in. A value that is not defined (a correlation with a constant vector, a
ratio to a zero length) is NaN, never a number made up by an epsilon; ``undefined_reasons`` says which rows and why. A
row with NaN or an infinity is undefined too, and leaves the other rows as they are. Nothing is clipped: near the ends
of [-1, 1] a cosine is computed from the chord between the unit vectors, which cannot leave the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.rows import Matrix, RowStatistics, check_pair, lengths, row_statistics
from lnsim.measure.similarity import cosine, pearson, spearman
from lnsim.measure.undefined import CV_MIN_STANDARD_ERRORS, describe, describe_zero_pairs, undefined_rows

__all__ = [
    "ALIKE_IS_HIGH",
    "CV_MIN_STANDARD_ERRORS",
    "METRICS",
    "RowStatistics",
    "pairwise",
    "row_statistics",
    "undefined_reasons",
]

METRICS: Mapping[str, str] = MappingProxyType(
    {
        "cosine": "cosine of the angle between a and b",
        "pearson": "Pearson correlation over the channels, that is the cosine after each vector's mean is removed",
        "spearman": "Pearson correlation of the ranks, ties sharing their average rank",
        "l2": "length of a - b",
        "rel_l2": "length of a - b over the length of a (the first argument)",
        "rel_l2_b": "length of a - b over the length of b (the second argument)",
        "rel_l2_symmetric": "twice the length of a - b over the sum of both lengths",
        "mean_abs_diff": "mean over the channels of |a - b|",
        "p99_abs_diff": "99th percentile over the channels of |a - b|, linear between order statistics",
        "max_abs_diff": "largest |a - b| over the channels",
        "cv_diff": "|cv(a) - cv(b)|, cv = standard deviation (ddof 0) over |mean|; undefined where the mean is near 0",
        "changed_ratio": "share of channels whose stored bits differ; both must have the same dtype",
    }
)
"""Every metric by name, with what it is."""

ALIKE_IS_HIGH = frozenset({"cosine", "pearson", "spearman"})
"""Metrics that grow with likeness; all others shrink."""

_Rows = npt.NDArray[Any]


def pairwise(a: npt.ArrayLike, b: npt.ArrayLike, metric: str) -> Matrix:
    """Every row of ``a`` against every row of ``b``.

    Args:
        a: vectors, shape ``(n_layers_a, hidden_size)``, any real dtype, those of ml_dtypes included.
        b: vectors, shape ``(n_layers_b, hidden_size)``.
        metric: a name in METRICS. ``rel_l2`` divides by the length of ``a``; ``changed_ratio`` takes vectors as stored.

    Returns:
        float64, shape ``(n_layers_a, n_layers_b)``; NaN where the metric is undefined.

    Raises:
        ComparisonError: for an unknown metric, arrays that are not matrices of numbers, different hidden sizes, or
            different dtypes under ``changed_ratio``.

    >>> pairwise([[3.0, 4.0]], [[4.0, 3.0], [6.0, 8.0]], "cosine").round(2).tolist()
    [[0.96, 1.0]]
    """
    rows_a, rows_b = _checked(a, b, metric)
    if metric == "changed_ratio":
        return _changed_ratio(rows_a, rows_b)
    wide_a, masks_a = undefined_rows(rows_a, metric, "a")
    wide_b, masks_b = undefined_rows(rows_b, metric, "b")
    result = _FUNCTIONS[metric](wide_a, wide_b)
    for mask in masks_a.values():
        result[mask, :] = np.nan
    for mask in masks_b.values():
        result[:, mask] = np.nan
    return result


def undefined_reasons(a: npt.ArrayLike, b: npt.ArrayLike, metric: str) -> tuple[str, ...]:
    """One sentence for each row or pair that makes ``pairwise`` give NaN, rows counted from 0; empty where none does.

    Arguments and errors are those of ``pairwise``. Stored bits always compare, so ``changed_ratio`` has no reasons.
    """
    rows_a, rows_b = _checked(a, b, metric)
    if metric == "changed_ratio":
        return ()
    wide_a, masks_a = undefined_rows(rows_a, metric, "a")
    wide_b, masks_b = undefined_rows(rows_b, metric, "b")
    pairs = describe_zero_pairs(wide_a, wide_b) if metric == "rel_l2_symmetric" else []
    return (*describe(masks_a, "a"), *describe(masks_b, "b"), *pairs)


def _checked(a: npt.ArrayLike, b: npt.ArrayLike, metric: str) -> tuple[_Rows, _Rows]:
    if metric not in METRICS:
        raise ComparisonError(f"There is no metric '{metric}'; the known ones are {', '.join(METRICS)}.")
    rows_a, rows_b = check_pair(a, b)
    if metric == "changed_ratio" and rows_a.dtype != rows_b.dtype:
        raise ComparisonError(
            f"Comparing stored bits: a has dtype {rows_a.dtype} and b {rows_b.dtype}. Bits compare only within one "
            "dtype; take both vectors as stored, or use another metric."
        )
    return rows_a, rows_b


def _differences(a: Matrix, b: Matrix) -> Iterator[Matrix]:
    """|b - row of a| for one row of a after the other: one block of the size of b in memory at a time."""
    for row in a:
        yield np.abs(b - row)


def _l2(a: Matrix, b: Matrix) -> Matrix:
    # From the differences themselves: |a|^2 + |b|^2 - 2ab would lose everything where a and b are close.
    return np.stack([lengths(block) for block in _differences(a, b)])


def _rel_l2(a: Matrix, b: Matrix) -> Matrix:
    return _over(_l2(a, b), lengths(a)[:, None])


def _rel_l2_b(a: Matrix, b: Matrix) -> Matrix:
    return _over(_l2(a, b), lengths(b)[None, :])


def _rel_l2_symmetric(a: Matrix, b: Matrix) -> Matrix:
    return _over(2 * _l2(a, b), lengths(a)[:, None] + lengths(b)[None, :])


def _over(numerator: Matrix, denominator: Matrix) -> Matrix:
    result = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def _mean_abs_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.stack([block.mean(axis=1) for block in _differences(a, b)])


def _p99_abs_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.stack([np.quantile(block, 0.99, axis=1) for block in _differences(a, b)])


def _max_abs_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.stack([block.max(axis=1) for block in _differences(a, b)])


def _cv_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.abs(_cv(a)[:, None] - _cv(b)[None, :])


def _cv(rows: Matrix) -> Matrix:
    statistics = row_statistics(rows)
    return _over(statistics.std, np.abs(statistics.mean))


def _changed_ratio(a: _Rows, b: _Rows) -> Matrix:
    # As bits: +0 and -0 are different, a NaN equals itself.
    bits_a, bits_b = _bits(a), _bits(b)
    return np.stack([(bits_b != row).mean(axis=1) for row in bits_a])


def _bits(rows: _Rows) -> npt.NDArray[np.unsignedinteger[Any]]:
    return np.ascontiguousarray(rows).view(f"u{rows.dtype.itemsize}")


_FUNCTIONS: Mapping[str, Callable[[Matrix, Matrix], Matrix]] = MappingProxyType(
    {
        "cosine": cosine,
        "pearson": pearson,
        "spearman": spearman,
        "l2": _l2,
        "rel_l2": _rel_l2,
        "rel_l2_b": _rel_l2_b,
        "rel_l2_symmetric": _rel_l2_symmetric,
        "mean_abs_diff": _mean_abs_diff,
        "p99_abs_diff": _p99_abs_diff,
        "max_abs_diff": _max_abs_diff,
        "cv_diff": _cv_diff,
    }
)

"""This module measures two sets of vectors against each other, every row of one with every row of the other.

All sums run in float64, whatever dtype comes in. A value that is not defined (a correlation with a constant vector, a
ratio to a zero length) is NaN, never a number made up by an epsilon; ``undefined_rows`` says which rows and why. A
row with NaN or an infinity is undefined too, and leaves the other rows as they are. Nothing is clipped: near the ends
of [-1, 1] a cosine is computed from the chord between the unit vectors, which cannot leave the interval.

A metric is one function below: what it is, and which rows leave it undefined, stands over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.rows import MAX_MAGNITUDE, Matrix, centre, check_pair, lengths, ranks, row_statistics, scale, widen

ALIKE_IS_HIGH = frozenset({"cosine", "pearson", "spearman"})  # metrics that grow with likeness; all others shrink
CV_MIN_STANDARD_ERRORS = 5.0
"""``cv_diff`` needs means at least this many standard errors (std / sqrt(hidden_size)) away from zero.

A coefficient of variation divides by the mean, so its relative error is about that of the mean: a fifth at this limit.
Below it the number tells only how close to zero the mean happened to fall.
"""

Mask = npt.NDArray[np.bool_]
_Rows = npt.NDArray[Any]
_Function = Callable[[_Rows, _Rows], Matrix]
_Undefined = tuple[str, Callable[[Matrix], Mask]]  # why a row leaves a metric undefined, and the rows it holds for


@dataclass(frozen=True, slots=True)
class _Metric:
    """A metric: in words, its function of all pairs of rows, and by side what leaves it undefined."""

    about: str
    function: _Function
    undefined: Mapping[str, _Undefined]


_METRICS: dict[str, _Metric] = {}


def _metric(about: str, **undefined: _Undefined) -> Callable[[_Function], _Function]:
    """Make a function of two matrices a metric of the same name; ``a`` and ``b`` name what leaves it undefined."""

    def add(function: _Function) -> _Function:
        _METRICS[function.__name__.removeprefix("_")] = _Metric(about, function, undefined)
        return function

    return add


def pairwise(a: npt.ArrayLike, b: npt.ArrayLike, metric: str) -> Matrix:
    """Every row of ``a`` against every row of ``b``, by the name of a metric in METRICS.

    Shapes are ``(n_layers_a, hidden_size)`` and ``(n_layers_b, hidden_size)``, dtypes real, those of ml_dtypes
    included. It is float64 of shape ``(n_layers_a, n_layers_b)``, NaN where the metric is undefined. ``rel_l2`` divides
    by the length of ``a``; ``changed_ratio`` takes vectors as stored. ComparisonError for an unknown metric, arrays
    that are not matrices of numbers, different hidden sizes, or different dtypes under ``changed_ratio``.

    >>> pairwise([[3.0, 4.0]], [[4.0, 3.0], [6.0, 8.0]], "cosine").round(2).tolist()
    [[0.96, 1.0]]
    """
    if metric not in _METRICS:
        raise ComparisonError(f"There is no metric '{metric}'; the known ones are {', '.join(_METRICS)}.")
    rows_a, rows_b = check_pair(a, b)
    if metric == "changed_ratio":
        if rows_a.dtype != rows_b.dtype:
            raise ComparisonError(
                f"Comparing stored bits: a has dtype {rows_a.dtype} and b {rows_b.dtype}. Bits compare only within one "
                "dtype; take both vectors as stored, or use another metric."
            )
        return _changed_ratio(rows_a, rows_b)
    wide_a, masks_a = undefined_rows(rows_a, metric, "a")
    wide_b, masks_b = undefined_rows(rows_b, metric, "b")
    result = _METRICS[metric].function(wide_a, wide_b)
    for mask in masks_a.values():
        result[mask, :] = np.nan
    for mask in masks_b.values():
        result[:, mask] = np.nan
    return result


def undefined_rows(rows: _Rows, metric: str, side: str) -> tuple[Matrix, dict[str, Mask]]:
    """Rows widened to float64, and the masks of those that leave the metric undefined, by reason.

    `side` is ``a`` or ``b``, since a ratio may divide by one of them only.
    """
    wide, broken = widen(rows)
    masks = {_BROKEN: broken}
    if found := _METRICS[metric].undefined.get(side):
        reason, holds = found
        masks[reason] = holds(wide) & ~broken
    return wide, masks


def _mean_is_near_zero(wide: Matrix) -> Mask:
    mean, centred = centre(wide)
    standard_error = np.sqrt((centred**2).mean(axis=1) / wide.shape[1])
    near = np.abs(mean) < CV_MIN_STANDARD_ERRORS * standard_error
    return np.array(near | (mean == 0), dtype=np.bool_)


_ZERO: _Undefined = "is all zeros", lambda wide: np.asarray(~wide.any(axis=1))
_CONSTANT: _Undefined = "is constant", lambda wide: np.ptp(wide, axis=1) == 0
_MEAN_NEAR_ZERO = f"has a mean within {CV_MIN_STANDARD_ERRORS:g} standard errors of zero", _mean_is_near_zero
_BROKEN = f"holds a value that is not finite or beyond {MAX_MAGNITUDE:.0e}"

_NEAR_ONE = 0.999


@_metric("cosine of the angle between a and b", a=_ZERO, b=_ZERO)
def _cosine(a: Matrix, b: Matrix) -> Matrix:
    """Cosines, shape ``(n_layers_a, n_layers_b)``, never outside [-1, 1].

    A product of unit vectors has a rounding error of a few units in the last place, which hides how close to 1 a cosine
    is. So near the ends it is 1 - |u - v|^2 / 2 instead, exactly 1 for equal vectors.
    """
    unit_a, unit_b = _unit(a), _unit(b)
    result: Matrix = unit_a @ unit_b.T
    for row, cosines in enumerate(result):
        for sign in (1.0, -1.0):
            near = np.flatnonzero(sign * cosines > _NEAR_ONE)
            chord = unit_b[near] - sign * unit_a[row]
            cosines[near] = sign * (1.0 - np.einsum("ij,ij->i", chord, chord) / 2)
    return result


@_metric(
    "Pearson correlation over the channels, that is the cosine after each vector's mean is removed",
    a=_CONSTANT,
    b=_CONSTANT,
)
def _pearson(a: Matrix, b: Matrix) -> Matrix:
    return _cosine(centre(a)[1], centre(b)[1])


@_metric("Pearson correlation of the ranks, ties sharing their average rank", a=_CONSTANT, b=_CONSTANT)
def _spearman(a: Matrix, b: Matrix) -> Matrix:
    return _pearson(ranks(a), ranks(b))


def _unit(rows: Matrix) -> Matrix:
    """Rows of length 1; an all-zero row stays as it is."""
    scaled, _ = scale(rows)
    length = lengths(scaled)[:, None]
    unit: Matrix = scaled / np.where(length > 0, length, 1.0)
    return unit


def _differences(a: Matrix, b: Matrix) -> Iterator[Matrix]:
    """|b - row of a| for one row of a after the other: one block of the size of b in memory at a time."""
    for row in a:
        yield np.abs(b - row)


@_metric("length of a - b")
def _l2(a: Matrix, b: Matrix) -> Matrix:
    # From the differences themselves: |a|^2 + |b|^2 - 2ab would lose everything where a and b are close.
    return np.stack([lengths(block) for block in _differences(a, b)])


@_metric("length of a - b over the length of a (the first argument)", a=_ZERO)
def _rel_l2(a: Matrix, b: Matrix) -> Matrix:
    return _over(_l2(a, b), lengths(a)[:, None])


@_metric("length of a - b over the length of b (the second argument)", b=_ZERO)
def _rel_l2_b(a: Matrix, b: Matrix) -> Matrix:
    return _over(_l2(a, b), lengths(b)[None, :])


@_metric("twice the length of a - b over the sum of both lengths")
def _rel_l2_symmetric(a: Matrix, b: Matrix) -> Matrix:
    return _over(2 * _l2(a, b), lengths(a)[:, None] + lengths(b)[None, :])


def _over(numerator: Matrix, denominator: Matrix) -> Matrix:
    result = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


@_metric("mean over the channels of |a - b|")
def _mean_abs_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.stack([block.mean(axis=1) for block in _differences(a, b)])


@_metric("99th percentile over the channels of |a - b|, linear between order statistics")
def _p99_abs_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.stack([np.quantile(block, 0.99, axis=1) for block in _differences(a, b)])


@_metric("largest |a - b| over the channels")
def _max_abs_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.stack([block.max(axis=1) for block in _differences(a, b)])


@_metric(
    "|cv(a) - cv(b)|, cv = standard deviation (ddof 0) over |mean|; undefined where the mean is near 0",
    a=_MEAN_NEAR_ZERO,
    b=_MEAN_NEAR_ZERO,
)
def _cv_diff(a: Matrix, b: Matrix) -> Matrix:
    return np.abs(_cv(a)[:, None] - _cv(b)[None, :])


def _cv(rows: Matrix) -> Matrix:
    statistics = row_statistics(rows)
    return _over(statistics.std, np.abs(statistics.mean))


@_metric("share of channels whose stored bits differ; both must have the same dtype")
def _changed_ratio(a: _Rows, b: _Rows) -> Matrix:
    # As bits: +0 and -0 are different, a NaN equals itself.
    bits_a, bits_b = (np.ascontiguousarray(rows).view(f"u{rows.dtype.itemsize}") for rows in (a, b))
    return np.stack([(bits_b != row).mean(axis=1) for row in bits_a])


# Every metric by name, with what it is.
METRICS: Mapping[str, str] = {name: one.about for name, one in _METRICS.items()}

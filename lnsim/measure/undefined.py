"""This module says which rows leave a metric undefined, and why; metrics and messages use the same masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.measure.rows import MAX_MAGNITUDE, Matrix, centre, widen

__all__ = ["CV_MIN_STANDARD_ERRORS", "Mask", "describe", "describe_zero_pairs", "undefined_rows"]

Mask = npt.NDArray[np.bool_]

CV_MIN_STANDARD_ERRORS = 5.0
"""``cv_diff`` needs means at least this many standard errors (std / sqrt(hidden_size)) away from zero.

A coefficient of variation divides by the mean, so its relative error is about that of the mean: a fifth at this limit.
Below it the number tells only how close to zero the mean happened to fall.
"""

BROKEN = f"holds a value that is not finite or beyond {MAX_MAGNITUDE:.0e}"
ZERO = "is all zeros"
CONSTANT = "is constant"
MEAN_NEAR_ZERO = f"has a mean within {CV_MIN_STANDARD_ERRORS:g} standard errors of zero"

_CONSEQUENCE: Mapping[str, str] = MappingProxyType(
    {
        BROKEN: "nothing can be measured on it",
        ZERO: "it has no direction and no length to divide by",
        CONSTANT: "it has no spread to correlate",
        MEAN_NEAR_ZERO: "its coefficient of variation would tell only how near zero the mean happened to fall",
    }
)


def undefined_rows(rows: npt.NDArray[Any], metric: str, side: str) -> tuple[Matrix, dict[str, Mask]]:
    """Rows widened to float64, and the masks of those that leave the metric undefined, by reason.

    Args:
        rows: vectors, shape ``(n_layers, hidden_size)``.
        metric: name of a metric.
        side: ``a`` or ``b``, since a ratio may divide by one of them only.
    """
    wide, broken = widen(rows)
    masks = {BROKEN: broken}
    for reason, find in _TESTS.get(metric, {}).get(side, {}).items():
        masks[reason] = find(wide) & ~broken
    return wide, masks


def describe(masks: Mapping[str, Mask], side: str) -> list[str]:
    """One sentence a row, rows counted from 0."""
    return [
        f"Row {row} of {side} {reason}: {_CONSEQUENCE[reason]}."
        for reason, mask in masks.items()
        for row in np.flatnonzero(mask)
    ]


def describe_zero_pairs(wide_a: Matrix, wide_b: Matrix) -> list[str]:
    """One sentence for each pair of all-zero rows, whose two lengths add up to zero."""
    zero_a, zero_b = np.flatnonzero(_is_zero(wide_a)), np.flatnonzero(_is_zero(wide_b))
    return [
        f"Row {i} of a and row {j} of b are all zeros: their lengths add up to nothing to divide by."
        for i in zero_a
        for j in zero_b
    ]


def _is_zero(wide: Matrix) -> Mask:
    return np.array(~wide.any(axis=1), dtype=np.bool_)


def _is_constant(wide: Matrix) -> Mask:
    constant: Mask = np.equal(wide.min(axis=1), wide.max(axis=1))
    return constant


def _mean_is_near_zero(wide: Matrix) -> Mask:
    mean, centred = centre(wide)
    standard_error = np.sqrt((centred**2).mean(axis=1) / wide.shape[1])
    near = np.abs(mean) < CV_MIN_STANDARD_ERRORS * standard_error
    return np.array(near | (mean == 0), dtype=np.bool_)


_Tests = Mapping[str, Callable[[Matrix], Mask]]
_ZERO: _Tests = {ZERO: _is_zero}
_CONSTANT: _Tests = {CONSTANT: _is_constant}
_MEAN: _Tests = {MEAN_NEAR_ZERO: _mean_is_near_zero}

# metric -> side -> tests; a metric that is not here is defined for every finite row
_TESTS: Mapping[str, Mapping[str, _Tests]] = MappingProxyType(
    {
        "cosine": {"a": _ZERO, "b": _ZERO},
        "pearson": {"a": _CONSTANT, "b": _CONSTANT},
        "spearman": {"a": _CONSTANT, "b": _CONSTANT},
        "rel_l2": {"a": _ZERO},
        "rel_l2_b": {"b": _ZERO},
        "cv_diff": {"a": _MEAN, "b": _MEAN},
    }
)

"""This module knows the grid of values that a stored dtype can hold, and what rounding to it does to a small update.

An update that leaves a value within half a step of where it was is rounded away: the stored bits do not change. Steps
grow with the value, so an update of one size at every depth changes fewer values where γ is large. A share of changed
values that falls with depth is therefore what rounding alone gives (finding 9 of the audit of the published numbers).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Floats = npt.NDArray[np.float64]


def spacing(values: npt.NDArray[Any], dtype: np.dtype[Any] | None = None) -> Floats:
    """Size of one unit in the last place at each value: the step to the next one away from zero.

    Args:
        values: floats, any shape.
        dtype: whose grid is meant; that of the values themselves by default.

    >>> spacing(np.float32([1.0, 0.75, -0.01]), np.dtype(ml_dtypes.bfloat16)).tolist() == [2**-7, 2**-8, 2**-14]
    True
    """
    info = ml_dtypes.finfo(values.dtype if dtype is None else dtype)  # type: ignore[no-untyped-call]
    size = np.maximum(np.abs(values.astype(np.float64)), float(info.smallest_normal))
    # frexp is exact, where a logarithm could land on the wrong side of a power of two.
    return np.asarray(np.ldexp(float(info.eps), np.frexp(size)[1] - 1))


def expected_change(stored: npt.NDArray[Any], sd: float) -> Floats:
    """Share of values whose stored bits a normal update of one size would change, by layer, in closed form.

    Args:
        stored: vectors as stored, ``(n_layers, hidden_size)``.
        sd: standard deviation of the update, the same in every layer; mean zero, rounded to nearest afterwards.

    Returns:
        float64, shape ``(n_layers,)``: the mean over the channels of the probability that the sum leaves the half step
        around the value. Steps towards zero are half as long at a power of two.
    """
    if sd <= 0:
        return np.zeros(len(stored))
    outward = spacing(stored)
    mantissa, _ = np.frexp(np.abs(stored.astype(np.float64)))
    inward = np.where(mantissa == 0.5, outward / 2, outward)
    stays = ndtr(outward / 2 / sd) - ndtr(-inward / 2 / sd)
    return np.asarray((1 - stays).mean(axis=1))

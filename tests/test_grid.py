"""The grid of a stored dtype: steps, units in the last place, and what rounding leaves of a small update."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from notebook_cells import defined

from studies.controls.grid import expected_change, spacing

BF16 = ml_dtypes.bfloat16
ulp_distance = defined("05")["ulp_distance"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_neighbouring_floats_are_one_ulp_apart_everywhere(dtype: Any) -> None:
    size = np.dtype(dtype).itemsize
    bits = np.arange(1, 100, dtype=f"u{size}")
    below, above = bits[:-1].view(dtype), bits[1:].view(dtype)
    assert (ulp_distance(below, above) == 1).all()
    assert (ulp_distance(-below, -above) == 1).all()


def test_ulps_of_doubles_are_an_error() -> None:
    with pytest.raises(ValueError, match="expected floats of at most 32 bits"):
        ulp_distance(np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
def test_one_spacing_away_from_zero_is_the_next_stored_value(dtype: Any) -> None:
    size = np.dtype(dtype).itemsize
    start = int(np.array([0.001], dtype).view(f"u{size}")[0])
    values = np.arange(start, start + 2000, dtype=f"u{size}").view(dtype)
    assert (values[:-1].astype(np.float64) + spacing(values[:-1]) == values[1:].astype(np.float64)).all()


def test_the_expected_share_is_that_of_a_simulated_update() -> None:
    rng, sd = np.random.default_rng(3), 6e-4
    gamma = np.abs(rng.normal(loc=[[0.01], [0.1], [0.5], [1.0]], scale=0.02, size=(4, 200_000))).astype(BF16)
    updated = (gamma.astype(np.float64) + rng.normal(0, sd, gamma.shape)).astype(BF16)
    seen = (gamma.view(np.uint16) != updated.view(np.uint16)).mean(axis=1)
    assert expected_change(gamma, sd) == pytest.approx(seen, abs=0.004)

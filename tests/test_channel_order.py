"""Channels in an order of their own: found where positions are fixed, and elsewhere rarely."""

from __future__ import annotations

import numpy as np
import pytest

from lnsim.errors import ComparisonError
from lnsim.measure.channel_order import FIRES, LAYOUTS, channel_order


def noise(seed: int, size: int = 128) -> np.ndarray:
    return np.random.default_rng(seed).normal(1.0, 0.1, (5, size))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_smooth_pattern_is_found_in_the_layout_it_is_smooth_in(layout: str) -> None:
    pattern = LAYOUTS[layout](128)
    assert np.allclose(pattern.T @ pattern, np.eye(pattern.shape[1]), atol=1e-12)
    assert np.allclose(pattern.sum(axis=0), 0.0, atol=1e-9)
    assert channel_order(noise(0) + 0.6 * pattern[:, 1]) <= FIRES


def test_channels_in_random_order_are_rarely_said_to_have_one() -> None:
    assert sum(channel_order(noise(seed)) <= FIRES for seed in range(60)) <= 3


def test_too_few_channels_and_a_constant_row_are_refused() -> None:
    with pytest.raises(ComparisonError, match=r"expected rows of 16 channels or more, found \(5, 8\)"):
        channel_order(noise(0, 8))
    with pytest.raises(ComparisonError, match="row 0 is constant"):
        channel_order(np.ones((2, 64)))

"""Tests of the correlations of every layer under permutations."""

from __future__ import annotations

import numpy as np
import pytest

from lnsim.measure.nulls import centred_unit
from lnsim.measure.permutation import channel_orders
from lnsim.measure.permuted_rows import layer_values


@pytest.mark.parametrize(("hidden_size", "n_permutations"), [(7, 1), (256, 4), (257, 5), (600, 9)])
def test_each_value_is_the_correlation_of_a_layer_with_the_permuted_one(hidden_size: int, n_permutations: int) -> None:
    a, b = (centred_unit(np.random.default_rng(seed).normal(size=(3, hidden_size))) for seed in (0, 1))
    orders = channel_orders(hidden_size, n_permutations, 2)
    found = layer_values(a, b, orders)
    assert found.shape == (n_permutations, 3)
    for place in range(n_permutations):
        assert found[place] == pytest.approx(np.sum(a * b[:, orders[:, place]], axis=1), abs=1e-12)

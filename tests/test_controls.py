"""What several notebooks compute their controls with: the grid of a dtype, nulls of alignments, Gaussian pairs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pandas as pd
import pytest
from made_vectors import matrix, noisy, stack
from notebook_cells import defined

from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix
from lnsim.measure.permutation import channel_orders
from studies.controls.grid import expected_change, spacing
from studies.controls.layer_nulls import layer_nulls, layer_orders, longest_ascents, match_in_order, pattern_nulls
from studies.controls.simulate import Gaussian, draw

BF16 = ml_dtypes.bfloat16
ORDERS = channel_orders(256, 99, 0)
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


def best_mean(found: pd.DataFrame) -> float:
    """The mean of the cells at the best offset."""
    one = LayerMatrix.of(found)
    return float(one.values.ravel()[one.offsets()[one.best_offset()]].mean())


@pytest.mark.parametrize(
    "origin", [[*range(4, 16)], [*range(1, 16, 2)], [*range(12), *range(6, 16)]], ids=["shifted", "pruned", "expanded"]
)
def test_moved_layers_keep_their_order_beyond_both_nulls(origin: list[int]) -> None:
    a, b = stack(16), noisy(stack(16)[origin])
    found = matrix(a, b)
    layers, channels = layer_nulls(found, 199, 0), pattern_nulls(a, b, found, ORDERS)
    assert layers["match"].pvalue == 1 / 200
    assert layers["offset"].pvalue <= 0.02
    assert max(channels[name].pvalue for name in ("offset", "match", "match_mean")) == 0.01


def test_a_null_over_layers_holds_the_measures_of_matrices_with_their_columns_permuted() -> None:
    found = matrix(stack(6, seed=1), stack(7, seed=2))
    orders, nulls = layer_orders(7, 20, 5), layer_nulls(found, 20, 5)
    assert nulls["offset"].statistic == pytest.approx(best_mean(found))
    for place, order in enumerate(orders):
        shuffled = pd.DataFrame(found.to_numpy()[:, order], index=found.index, columns=found.columns)
        assert nulls["offset"].null_distribution[place] == pytest.approx(best_mean(shuffled))
        assert nulls["rate"].null_distribution[place] == LayerMatrix.of(shuffled).alignment_rate()
        assert nulls["margin"].null_distribution[place] == pytest.approx(LayerMatrix.of(shuffled).margin())
        match = match_in_order(shuffled.to_numpy())[2]
        assert nulls["match"].null_distribution[place] == longest_ascents(match[np.newaxis])[0] / 6


def test_a_null_over_channels_holds_the_measures_of_the_permuted_rows() -> None:
    a, b = stack(5, seed=1), stack(5, seed=2)
    nulls = pattern_nulls(a, b, matrix(a, b), ORDERS[:, :5])
    values = matrix(a, b).to_numpy()
    assert nulls["match_mean"].statistic == pytest.approx(values[match_in_order(values)[1:]].mean())
    for place, order in enumerate(ORDERS[:, :5].T):
        permuted = matrix(a, b[:, order])
        assert nulls["margin"].null_distribution[place] == pytest.approx(LayerMatrix.of(permuted).margin())
        assert nulls["offset"].null_distribution[place] == pytest.approx(best_mean(permuted))


def test_the_order_of_a_match_is_judged_by_its_longest_ascending_part() -> None:
    share, rows, columns = match_in_order(np.eye(4)[[1, 0, 2, 3]])
    assert (share, rows.tolist(), columns.tolist()) == (0.75, [0, 1, 2, 3], [1, 0, 2, 3])


def test_one_layer_no_permutation_and_permutations_of_another_number_of_channels_are_refused() -> None:
    a = stack(3, hidden_size=32)
    for call, message in (
        (lambda: layer_orders(1, 9, 0), "expected at least 2 layers and 1 permutation"),
        (lambda: layer_orders(4, 0, 0), "Permuting 4 layers 0 times"),
        (lambda: pattern_nulls(a, a, matrix(a, a), ORDERS), "the permutations are of 256 channels"),
    ):
        with pytest.raises(ComparisonError, match=message):
            call()


def test_the_published_random_vectors_have_their_closed_form() -> None:
    closed = Gaussian(1.0, 0.1, 1.0, 0.1, 4096).closed()
    assert closed["cosine"] == pytest.approx(0.990099, abs=5e-7)
    assert closed["cosine_std"] == pytest.approx(0.000219, abs=5e-7)
    assert closed["r_std"] == pytest.approx(0.0156, abs=5e-5)
    assert closed["l2"] == pytest.approx(9.0504, abs=5e-5)
    assert closed["l2_std"] == pytest.approx(0.1, abs=5e-4)


def test_vectors_without_spread_and_too_few_draws_are_refused() -> None:
    with pytest.raises(ComparisonError, match="found 64 channels and 0 and 1"):
        Gaussian(1, 0, 1, 1, 64)
    with pytest.raises(ComparisonError, match="Drawing 1 random pairs of 64 channels"):
        draw(64, 1, seed=0)

"""Tests of the permutation test of matched rows: one permutation of the channels for all layers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise
from lnsim.measure.nulls import centred_unit
from lnsim.measure.permutation import channel_orders, layer_values, matched_null, permutation_test, shared_null_std
from lnsim.measure.rows import ranks


def rows(n: int, hidden_size: int = 64, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(loc=1.0, scale=0.1, size=(n, hidden_size))


def test_the_null_holds_the_mean_correlation_of_matched_rows_under_each_permutation_of_the_channels() -> None:
    a, b = rows(3, 4), rows(3, 4, seed=1)
    orders = [list(order) for order in itertools.permutations(range(4))]
    every = [float(np.diag(pairwise(a, b[:, order], "pearson")).mean()) for order in orders]
    result = permutation_test(a, b, 2000)
    assert result.statistic == pytest.approx(every[0])
    assert {round(float(value), 10) for value in result.null_distribution} == {round(value, 10) for value in every}
    assert (result.exact_mean, result.exact_std) == pytest.approx((np.mean(every), np.std(every)), abs=1e-12)
    assert shared_null_std(a, b) == pytest.approx(result.exact_std)


def test_one_permutation_serves_all_layers_so_repeated_layers_add_no_certainty() -> None:
    a, b = rows(1), rows(1, seed=1)
    one, many = permutation_test(a, b, 500), permutation_test(np.tile(a, (9, 1)), np.tile(b, (9, 1)), 500)
    assert many.null_distribution == pytest.approx(one.null_distribution)
    assert many.pvalue == one.pvalue


def test_a_shared_pattern_gets_the_smallest_p_there_is() -> None:
    a = rows(8, 256)
    assert permutation_test(a, a + rows(8, 256, seed=1), 199).pvalue == 1 / 200
    for statistic in ("mean", "max"):
        assert permutation_test(a, a, 1, statistic=statistic).pvalue == 0.5  # and never 0


def test_p_is_about_uniform_where_nothing_is_shared() -> None:
    found = [permutation_test(rows(4, 32, seed), rows(4, 32, 1000 + seed), 99, seed).pvalue for seed in range(200)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)
    assert 0.01 <= np.mean(np.array(found) <= 0.1) <= 0.2
    a, b = rows(8, 1024), rows(8, 1024, seed=1)
    assert pairwise(a, b, "cosine").min() > 0.98  # near one, and inside their own null
    assert lnsim.permutation_test(a, b, 499, alternative="two-sided").pvalue > 0.05


def test_the_maximum_is_the_largest_layer_under_each_permutation() -> None:
    a, b, orders = rows(5, 300), rows(5, 300, seed=1), channel_orders(300, 9, 0)
    result = matched_null(a, b, orders, statistic="max")
    expected = [np.diag(pairwise(a, b[:, orders[:, place]], "pearson")).max() for place in range(9)]
    assert result.statistic == pytest.approx(np.diag(pairwise(a, b, "pearson")).max())
    assert result.null_distribution == pytest.approx(expected)
    assert np.isnan(result.exact_std)


def test_the_maximum_is_by_absolute_value_where_two_sided() -> None:
    a = rows(3)
    b = np.stack([rows(1, seed=5)[0], -a[1], rows(1, seed=6)[0]])
    assert permutation_test(a, b, 99, statistic="max", alternative="two-sided").statistic == pytest.approx(1)
    assert permutation_test(a, b, 99, statistic="max", alternative="two-sided").pvalue == 0.01
    assert permutation_test(a, b, 99, statistic="max").statistic < 0.5


def test_ranks_are_tested_as_pearson_of_ranks() -> None:
    a, b, orders = rows(3), rows(3, seed=1), channel_orders(64, 50, 0)
    by_name = matched_null(a, b, orders, correlation="spearman")
    assert by_name.statistic == pytest.approx(np.diag(pairwise(a, b, "spearman")).mean())
    assert by_name.null_distribution == pytest.approx(matched_null(ranks(a), ranks(b), orders).null_distribution)


def test_one_extreme_channel_makes_pearson_and_no_robust_correlation() -> None:
    a, b = rows(4, 256), rows(4, 256, seed=1)
    a[:, 9] += 3
    b[:, 9] += 3
    assert permutation_test(a, b, 199).pvalue < 0.01
    for correlation in ("spearman", "winsorised", "trimmed"):
        assert abs(permutation_test(a, b, 199, correlation=correlation).statistic) < 0.1
        assert permutation_test(a, b, 199, correlation=correlation).pvalue > 0.05


def test_ranks_without_ties_are_those_with_the_average_rule() -> None:
    values = rows(3, 50)
    tied = np.concatenate([values, values[:, :1]], axis=1)
    assert ranks(values)[0].tolist() == (np.argsort(np.argsort(values[0])) + 1).tolist()
    found = ranks(tied)
    assert (found[:, 0] == found[:, -1]).all()
    assert found.sum(axis=1) == pytest.approx(51 * 52 / 2)


@pytest.mark.parametrize(("hidden_size", "n"), [(1, 3), (7, 5), (384, 400)])
def test_the_permutations_are_those_that_the_seed_gives_one_by_one(hidden_size: int, n: int) -> None:
    generator = np.random.default_rng(6)
    expected = [generator.permutation(hidden_size) for _ in range(n)]
    assert (channel_orders(hidden_size, n, 6) == np.stack(expected, axis=1)).all()


@pytest.mark.parametrize(("hidden_size", "n_permutations"), [(7, 1), (256, 4), (257, 5), (600, 9)])
def test_each_value_is_the_correlation_of_a_layer_with_the_permuted_one(hidden_size: int, n_permutations: int) -> None:
    a, b = (centred_unit(np.random.default_rng(seed).normal(size=(3, hidden_size))) for seed in (0, 1))
    orders = channel_orders(hidden_size, n_permutations, 2)
    found = layer_values(a, b, orders)
    assert found.shape == (n_permutations, 3)
    for place in range(n_permutations):
        assert found[place] == pytest.approx(np.sum(a * b[:, orders[:, place]], axis=1), abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "more", "message"),
    [
        (rows(2), rows(3), {}, r"two arrays of one shape \(n_layers, hidden_size\), got \(2, 64\)"),
        (rows(2), np.stack([rows(1)[0], np.ones(64)]), {}, "row 1 is constant"),
        (rows(2), rows(2), {"n_permutations": 0}, "Shuffling 64 channels 0 times"),
        (rows(2), rows(2), {"statistic": "median"}, "'median' is no statistic over layers; known are mean and max"),
        (rows(2), rows(2), {"correlation": "kendall"}, "'kendall' is no correlation; known are pearson, spearman"),
    ],
)
def test_what_cannot_be_tested_is_refused(a: np.ndarray, b: np.ndarray, more: dict[str, Any], message: str) -> None:
    with pytest.raises(ComparisonError, match=message):
        permutation_test(a, b, **{"n_permutations": 9, **more})


def test_permutations_of_another_number_of_channels_are_refused() -> None:
    with pytest.raises(ComparisonError, match="Shuffling 64 channels: the permutations given have 32"):
        matched_null(rows(2), rows(2), channel_orders(32, 5, 0))

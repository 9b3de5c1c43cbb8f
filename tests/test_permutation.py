"""Tests of the permutation test of matched rows: one permutation of the channels for all layers."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise
from lnsim.measure.permutation import channel_orders, matched_null, permutation_test, shared_null_std
from lnsim.paths import find_stored


def rows(n: int, hidden_size: int = 64, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(loc=1.0, scale=0.1, size=(n, hidden_size))


def test_the_statistic_is_the_mean_correlation_of_matched_rows() -> None:
    a, b = rows(5), rows(5, seed=1)
    assert permutation_test(a, b, 20).statistic == pytest.approx(np.diag(pairwise(a, b, "pearson")).mean())


def test_the_null_holds_the_statistic_of_each_permutation_of_the_channels() -> None:
    a, b = rows(3, 4), rows(3, 4, seed=1)
    every = {
        round(float(np.diag(pairwise(a, b[:, list(order)], "pearson")).mean()), 10)
        for order in itertools.permutations(range(4))
    }
    found = {round(float(value), 10) for value in permutation_test(a, b, 2000).null_distribution}
    assert found == every


def test_one_permutation_serves_all_layers_so_repeated_layers_add_no_certainty() -> None:
    a, b = rows(1), rows(1, seed=1)
    one, many = permutation_test(a, b, 500), permutation_test(np.tile(a, (9, 1)), np.tile(b, (9, 1)), 500)
    assert many.null_distribution == pytest.approx(one.null_distribution)
    assert many.pvalue == one.pvalue


def test_the_exact_spread_of_the_null_is_that_of_all_permutations() -> None:
    a, b = rows(2, 5), rows(2, 5, seed=1)
    every = [np.diag(pairwise(a, b[:, list(order)], "pearson")).mean() for order in itertools.permutations(range(5))]
    assert shared_null_std(a, b) == pytest.approx(np.std(every))


def test_strangers_near_one_have_a_cosine_near_one_inside_their_own_null() -> None:
    a, b = rows(8, 1024), rows(8, 1024, seed=1)
    assert pairwise(a, b, "cosine").min() > 0.98
    assert permutation_test(a, b, 499, alternative="two-sided").pvalue > 0.05


def test_a_shared_pattern_gets_the_smallest_p_there_is() -> None:
    a = rows(8, 256)
    assert permutation_test(a, a + rows(8, 256, seed=1), 199).pvalue == 1 / 200


def test_p_is_about_uniform_where_nothing_is_shared() -> None:
    found = [permutation_test(rows(4, 32, seed), rows(4, 32, 1000 + seed), 99, seed).pvalue for seed in range(200)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)
    assert 0.01 <= np.mean(np.array(found) <= 0.1) <= 0.2


def test_the_seed_fixes_the_null_and_its_beginning() -> None:
    a, b = rows(2), rows(2, seed=1)
    long = permutation_test(a, b, 1500, seed=4).null_distribution
    assert (permutation_test(a, b, 1000, seed=4).null_distribution == long[:1000]).all()
    assert not (permutation_test(a, b, 1500, seed=5).null_distribution == long).all()


def test_the_package_gives_the_test_out() -> None:
    result = lnsim.permutation_test(rows(2), rows(2, seed=1), 99)
    assert isinstance(result, lnsim.NullResult)
    assert result.null_mean == pytest.approx(0, abs=0.05)


def test_real_models_give_the_values_on_record() -> None:
    minilm, e5 = (lnsim.load(find_stored(name)) for name in ("all-minilm-l6-v2", "multilingual-e5-small"))
    for role, r, p in (("post_attention", 0.005, 0.45), ("post_mlp", 0.024, 0.27)):
        result = permutation_test(minilm[role].scale, e5[role].scale[:6], 2999)
        assert result.statistic == pytest.approx(r, abs=5e-4)
        assert result.pvalue == pytest.approx(p, abs=0.04)


def test_a_large_pair_takes_seconds_not_minutes() -> None:
    a, b = rows(46, 4096), rows(46, 4096, seed=1)
    orders = channel_orders(4096, 400, seed=0)
    start = time.perf_counter()
    matched_null(a, b, orders)
    assert time.perf_counter() - start < 5


def test_rows_of_different_shape_are_refused() -> None:
    with pytest.raises(ComparisonError, match=r"two arrays of one shape \(n_layers, hidden_size\), got \(2, 64\)"):
        permutation_test(rows(2), rows(3), 9)


def test_a_constant_row_is_refused() -> None:
    with pytest.raises(ComparisonError, match="row 1 is constant"):
        permutation_test(rows(2), np.stack([rows(1)[0], np.ones(64)]), 9)


def test_permutations_of_another_size_and_none_at_all_are_refused() -> None:
    with pytest.raises(ComparisonError, match="Shuffling 64 channels: the permutations given have 32"):
        matched_null(rows(2), rows(2), channel_orders(32, 5, 0))
    with pytest.raises(ComparisonError, match="Shuffling 64 channels 0 times"):
        permutation_test(rows(2), rows(2), 0)

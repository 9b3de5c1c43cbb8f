"""The test of a pair out of very many: exact p of each part, joined by Fisher's sum, and small where it must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import holm
from lnsim.measure.pair_test import MOST, STRONG, pair_test
from lnsim.measure.parted_test import joined, parted_test, parts_for


def rows(seed: int, n: int = 4, size: int = 256) -> np.ndarray:
    return np.random.default_rng(seed).normal(1, 0.1, (n, size))


@pytest.mark.parametrize("hits", [[39], [9, 99, 179], [0] * 16, [199, 199]])
def test_fishers_sum_is_that_of_scipy(hits: list[int]) -> None:
    shares = [(1 + one) / 200 for one in hits]
    p, low, high = joined(hits, 199)
    assert p == pytest.approx(stats.combine_pvalues(shares, "fisher").pvalue, rel=1e-9)
    assert low <= p <= high


@pytest.mark.parametrize("chances", [[0.01, 0.03, 0.2, 0.5] * 2, [0.6, 0.9, 0.3, 0.4], [0.004, 0.008, 0.02, 0.01] * 4])
def test_the_ends_hold_the_middle_p_for_nearly_every_draw(chances: list[float]) -> None:
    draws = np.random.default_rng(0).binomial(199, chances, size=(1_000, len(chances)))
    p, low, high = np.array([joined(hits, 199) for hits in draws.tolist()]).T
    assert np.mean((low <= np.median(p)) & (np.median(p) <= high)) >= 0.97


def test_one_part_is_the_test_of_verdicts() -> None:
    stack = [(rows(0), rows(1))]
    assert parted_test(stack, 1, 999, 3) == pair_test(stack, most=999, seed=3)


@pytest.mark.parametrize(("n_tests", "n_parts"), [(1_000, 8), (10**6, 16)])
def test_relatives_get_the_smallest_p_there_is_and_the_r_of_the_other_test(n_tests: int, n_parts: int) -> None:
    a = rows(0)
    stack = [(a, a + np.random.default_rng(9).normal(0, 0.05, a.shape))]
    found = parted_test(stack, n_tests)
    assert found.pvalue == found.least == joined([0] * n_parts, 199)[0]
    whole = pair_test(stack, most=9)
    assert (found.r, found.rank_r) == pytest.approx((whole.r, whole.rank_r))


def test_p_of_strangers_is_uniform_or_larger() -> None:
    found = [parted_test([(rows(2 * k, 2, 128), rows(2 * k + 1, 2, 128))], 10**6, seed=k) for k in range(400)]
    for p in (np.array([one.p_r for one in found]), np.array([one.p_ranks for one in found])):
        assert stats.kstest(p, "uniform", alternative="greater").pvalue > 0.01
        assert np.mean(p <= 0.5) > 0.4  # and not much larger


def test_a_row_that_is_constant_within_a_part_is_no_obstacle() -> None:
    a, b = rows(0), rows(1)
    a[0, 8:] = 1.0
    assert 0 < parted_test([(a, b)], 10**6).pvalue <= 1


def test_channels_go_into_as_few_parts_as_will_do() -> None:
    asked = (1, 100, 101, 10_000, 50_000_000, 10**12)
    assert [parts_for(n, 4096) for n in asked] == [(1, MOST), (1, MOST), (8, 199), (8, 199), (16, 199), (16, 199)]
    for n, size in ((10_000, 4096), (50_000_000, 4096), (5 * 10**11, 4096), (10_000, 48), (10**9, 64)):
        n_parts, n_permutations = parts_for(n, size)
        assert n * joined([0] * n_parts, n_permutations)[2] <= STRONG
    assert parts_for(10**9, 64) == (8, 1_999)  # a part has 8 channels at least


def test_nothing_to_test_is_an_error() -> None:
    with pytest.raises(ComparisonError, match="expected matched rows and a permutation, found 0 and 9"):
        parted_test([], 10, 9)


def test_those_that_were_passed_over_count_as_p_of_one() -> None:
    assert holm([0.01, 0.02], 5) == holm([0.01, 0.02, 1.0, 1.0, 1.0])[:2]

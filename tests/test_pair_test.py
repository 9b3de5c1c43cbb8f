"""One test a pair: its numbers, when it stops drawing, and every pair of many models at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from lnsim.errors import ComparisonError
from lnsim.measure.pair_test import LEVELS, _interval, levels_for, pair_test, r_interval
from lnsim.measure.permutation import channel_orders, matched_null
from studies.controls.every_pair import every_pair

TO_THE_END = tuple(np.linspace(0, 1, 2001))
"""So many levels that the drawing ends only where it must."""


def rows(seed: int, n: int = 4, size: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).normal(1.0, 0.1, (n, size))


def blend(share: float) -> tuple[np.ndarray, np.ndarray]:
    return rows(0), share * rows(0) + (1 - share) * rows(1)


def test_r_and_p_are_those_of_the_permutation_test_with_the_same_orders() -> None:
    a, b = blend(0.2)
    found = pair_test([(a, b)], levels=(0.5,), most=400, seed=7)
    orders = channel_orders(64, found.n_permutations, 7)
    by_r, by_ranks = (matched_null(a, b, orders, correlation=kind) for kind in ("pearson", "spearman"))
    assert (found.r, found.rank_r) == pytest.approx((by_r.statistic, by_ranks.statistic), abs=1e-12)
    assert (found.p_r, found.p_ranks) == (by_r.pvalue, by_ranks.pvalue)
    assert found.pvalue == max(by_r.pvalue, by_ranks.pvalue)
    assert found.pvalue_se == pytest.approx((found.pvalue * (1 - found.pvalue) / (1 + found.n_permutations)) ** 0.5)


def test_strangers_are_told_after_some_hundred_and_relatives_when_the_level_is_settled() -> None:
    assert pair_test([(rows(0), rows(1))]).n_permutations == 200
    found = pair_test([blend(0.9)])
    assert (found.n_permutations, found.p_r, found.low) == (1600, 1 / 1601, 0.0)
    twelve = pair_test([blend(0.9)], levels_for(12))
    assert twelve.pvalue * 12 <= LEVELS[0]


def test_a_p_near_a_level_is_drawn_to_the_end_and_its_interval_says_so() -> None:
    a, b = blend(0.145)
    p = pair_test([(a, b)], TO_THE_END, most=3_000).pvalue
    found = pair_test([(a, b)], levels=(p,), most=3_000)
    assert found.n_permutations == 3_000
    assert found.low < p < found.high


@pytest.mark.parametrize(("hits", "n"), [(0, 200), (200, 200), (10, 200), (50, 9_999)])
def test_the_interval_holds_the_exact_one_and_is_it_at_either_end(hits: int, n: int) -> None:
    low, high = _interval(hits, n, 0.01)
    exact = binomtest(hits, n).proportion_ci(0.99)
    assert low <= exact.low + 1e-12
    assert exact.high <= high + 1e-12
    if hits in (0, n):
        assert (low, high) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_every_pair_has_the_p_of_the_test_of_two() -> None:
    stacks = np.stack([rows(0), blend(0.3)[1], rows(2)])
    r, p = every_pair(stacks, 300, 5)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        one = pair_test([(stacks[i], stacks[j])], TO_THE_END, most=300, seed=5)
        assert (r[i, j], p[i, j], one.n_permutations) == (pytest.approx(one.r), one.pvalue, 300)


def test_the_interval_of_r_holds_it_and_narrows_with_the_channels() -> None:
    wide, narrow = ((rows(0, 4, size), 0.5 * rows(0, 4, size) + 0.5 * rows(1, 4, size)) for size in (1024, 64))
    ends = [r_interval([one], 0) for one in (wide, narrow)]
    assert all(low < pair_test([one], most=200).r < high for (low, high), one in zip(ends, (wide, narrow), strict=True))
    assert ends[0][1] - ends[0][0] < (ends[1][1] - ends[1][0]) / 2


def test_nothing_to_test_and_rows_that_do_not_match_are_refused() -> None:
    with pytest.raises(ComparisonError, match="expected matched rows and a permutation, found 0 and 200"):
        pair_test([], most=200)
    with pytest.raises(ComparisonError, match=r"found shapes \(4, 64\) and \(3, 64\)"):
        pair_test([(rows(0), rows(1, 3))])
    with pytest.raises(ComparisonError, match="row 0 is constant"):
        pair_test([(np.ones((1, 64)), rows(1, 1))])


@pytest.mark.parametrize(("share", "kept"), [(0.0, 0.0), (0.3, 0.3), (0.8, 0.8), (1.0, 1.0)])
def test_the_share_kept_is_that_of_the_mixture_that_has_this_r(share: float, kept: float) -> None:
    """Two orthogonal patterns of equal spread, mixed: r is share / sqrt(share^2 + (1 - share)^2), by hand."""
    pattern, stranger = np.tile([1.0, -1.0, 1.0, -1.0], 8), np.tile([1.0, 1.0, -1.0, -1.0], 8)
    mixed = 1 + 0.1 * (share * pattern + (1 - share) * stranger)
    found = pair_test([(1 + 0.2 * pattern[np.newaxis], mixed[np.newaxis])], most=200)
    assert found.pattern_kept == pytest.approx(kept, abs=1e-9)

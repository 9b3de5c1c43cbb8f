"""The null by cyclic shifts is that of single permutations, exact on small groups; the values of real models."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from made_vectors import drawn, made
from scipy.stats import kstest

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.cyclic_nulls import cyclic_nulls
from lnsim.measure.permutation import permutation_test, shared_null_std

ROLE = "pre_mlp"


def test_the_turns_of_one_order_are_the_permutations_they_claim_to_be() -> None:
    models = {"a": drawn(0, layers=[0, 1], size=7), "b": drawn(1, layers=[0, 1], size=7)}
    null = cyclic_nulls(models, [("a", "b")], ROLE, 6, seed=4)["a", "b"]
    order = np.random.default_rng([4, 7]).permutation(7)
    a, b = (models[key][ROLE].scale.astype(float)[:, order] for key in "ab")
    expected = [
        np.mean([np.corrcoef(a[row], np.roll(b[row], -turn))[0, 1] for row in range(2)]) for turn in range(1, 7)
    ]
    assert null.null_distribution == pytest.approx(expected, abs=1e-12)


def test_a_common_pattern_gets_the_smallest_p_and_matching_is_by_number() -> None:
    a = drawn(0, layers=[0, 1, 2, 3])
    models = {"a": a, "b": made(a[ROLE].scale[[1, 3]] * 2, [1, 3]), "c": made(a[ROLE].scale[[1, 3]], [0, 2])}
    found = cyclic_nulls(models, [("a", "b"), ("a", "c")], ROLE, 99, 0)
    assert found["a", "b"].statistic == pytest.approx(1.0)
    assert found["a", "b"].pvalue == 0.01
    assert abs(found["a", "c"].statistic) < 0.5


def test_pairs_of_other_hidden_sizes_do_not_change_a_result() -> None:
    models = {"a": drawn(0), "b": drawn(1), "c": drawn(2, size=32), "d": drawn(3, size=32)}
    pairs = list(combinations(models, 2))
    alone = cyclic_nulls(models, pairs[:1], ROLE, 50, 0)["a", "b"]
    both = cyclic_nulls(models, (pairs[0], pairs[-1]), ROLE, 50, 0)
    assert (both["a", "b"].null_distribution == alone.null_distribution).all()
    assert len(both["c", "d"].null_distribution) == 50


def test_nothing_to_permute_is_an_error() -> None:
    models = {"a": drawn(0, layers=[0, 1]), "b": drawn(1, layers=[2, 3])}
    pairs = list(combinations(models, 2))
    with pytest.raises(ComparisonError, match="Matching the layers of 'a' and 'b': they have no layer number in"):
        cyclic_nulls(models, pairs, ROLE, 9, 0)
    with pytest.raises(ComparisonError, match="Turning channels 0 times: expected at least 1 permutation"):
        cyclic_nulls(models, pairs, ROLE, 0, 0)


def heavy(seed: int, n_layers: int = 3, size: int = 64) -> NormVectors:
    """A synthetic model with heavy tails, whose layers resemble each other and share their extreme channels."""
    generator = np.random.default_rng(seed)
    common = generator.normal(size=size)
    rows = (common + 0.7 * generator.normal(size=(n_layers, size))) / np.sqrt(generator.gamma(1.5, size=size))
    return made(1 + 0.1 * rows)


def error(p: float, n_permutations: int) -> float:
    """Four standard errors of the difference of two p-values from so many permutations each, and one step."""
    return 4 * float(np.sqrt(2 * p * (1 - p) / n_permutations)) + 1 / n_permutations


def test_the_mean_of_all_turns_of_one_order_is_r_over_the_others_with_its_sign_turned() -> None:
    """The sum over a whole group, the true order with it, is 0: the others have the mean -r / (n - 1)."""
    models = {"a": drawn(0), "b": made(drawn(0)[ROLE].scale + drawn(1)[ROLE].scale)}
    null = cyclic_nulls(models, [("a", "b")], ROLE, 63, seed=1)["a", "b"]
    assert null.statistic > 0.5
    assert null.null_mean == pytest.approx(-null.statistic / 63, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_turned_and_single_permutations_give_one_statistic_spread_and_p_for_synthetic_strangers(seed: int) -> None:
    models = {"a": heavy(seed), "b": heavy(100 + seed)}
    turned = cyclic_nulls(models, [("a", "b")], ROLE, 6000, seed)["a", "b"]
    a, b = models["a"][ROLE].scale, models["b"][ROLE].scale
    single = permutation_test(a, b, 4000, 50 + seed, alternative="two-sided")
    assert turned.statistic == pytest.approx(single.statistic, abs=1e-12)
    assert turned.null_std == pytest.approx(shared_null_std(a, b), rel=0.05)
    assert abs(turned.null_mean) < 0.005
    assert turned.pvalue == pytest.approx(single.pvalue, abs=error(single.pvalue, 4000))


def test_turned_and_single_permutations_give_one_p_for_the_real_pairs() -> None:
    names = ("all-minilm-l6-v2", "multilingual-e5-small", "paraphrase-minilm-l3-v2", "sre-minilm-l6")
    models = dict(zip("abcd", map(lnsim.load, names), strict=True))
    pairs = list(combinations(models, 2))
    for role, strangers, relatives in (("post_attention", 0.90, 0.436), ("post_mlp", 0.54, 0.558)):
        nulls = cyclic_nulls(models, pairs, role, 2999, 0)
        for pair in pairs:
            n = min(len(models[key][role].layers) for key in pair)
            a, b = (models[key][role].scale[:n] for key in pair)
            single = permutation_test(a, b, 2999, 1, alternative="two-sided").pvalue
            assert nulls[pair].pvalue == pytest.approx(single, abs=error(single, 2999)), (pair, role)
        assert nulls["a", "b"].pvalue == pytest.approx(strangers, abs=0.04)
        assert nulls["a", "c"].statistic == pytest.approx(relatives, abs=5e-4)
        assert nulls["a", "c"].pvalue == 1 / 3000


@pytest.mark.parametrize("n_permutations", [63, 199])
def test_turned_p_values_of_strangers_are_uniform(n_permutations: int) -> None:
    """One whole order, where they are exact, and three and a part; 500 synthetic pairs, threshold 0.001 of KS."""
    found = []
    for seed in range(500):
        models = {"a": heavy(seed), "b": heavy(10_000 + seed)}
        null = cyclic_nulls(models, [("a", "b")], ROLE, n_permutations, seed)["a", "b"]
        found.append(null.pvalue)
    # p takes the values 1/(n+1) to 1; less a uniform part of one step it is continuous, and uniform if p is.
    steps = np.random.default_rng(1).uniform(size=len(found)) / (n_permutations + 1)
    assert kstest(np.array(found) - steps, "uniform").pvalue > 0.001
    assert 0.02 <= np.mean(np.array(found) <= 0.05) <= 0.08

"""Tests of the permutation tests of all pairs at once: each pair gets the p that it would get by itself."""

from __future__ import annotations

import numpy as np
import pytest

from lnsim.measure.benchmark.level_rows import levels_of
from lnsim.measure.benchmark.permuted_pairs import matched_tests, partner_test
from lnsim.measure.metrics import pairwise
from lnsim.measure.permutation import channel_orders, permutation_test
from tests.made_zoo import ROLES, made_models

N, SEED = 60, 3
MODELS = made_models()
KEYS = list(MODELS)
LEVELS = levels_of(MODELS, ROLES)
ORDERS = channel_orders(48, N, SEED)


def matched(a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both models level by level, as far as both have them."""
    depth = min(len(MODELS[key]["pre_mlp"].layers) for key in (a, b))
    stacked = [np.concatenate([MODELS[key][role].scale[:depth] for role in ROLES]) for key in (a, b)]
    return stacked[0], stacked[1]


@pytest.mark.parametrize("statistic", ["mean", "max"])
@pytest.mark.parametrize("correlation", ["pearson", "spearman", "winsorised"])
@pytest.mark.parametrize(("a", "b"), [("root", "child"), ("root", "other"), ("root", "deep"), ("hidden", "odd")])
def test_a_pair_gets_the_p_that_permutation_test_gives_it(a: str, b: str, correlation: str, statistic: str) -> None:
    found = matched_tests(LEVELS, len(KEYS), ORDERS, correlation)[statistic]
    alone = permutation_test(*matched(a, b), N, SEED, statistic=statistic, correlation=correlation)
    place = KEYS.index(a), KEYS.index(b)
    assert found.statistic[place] == pytest.approx(alone.statistic, abs=1e-12)
    assert found.pvalue[place] == alone.pvalue


def test_a_model_with_a_constant_row_is_undefined_against_all_others_and_no_other_pair_is() -> None:
    found = matched_tests(LEVELS, len(KEYS), ORDERS)["mean"]
    undefined = np.isnan(found.pvalue)
    flat = KEYS.index("flat")
    assert undefined[flat].all()
    assert undefined[:, flat].all()
    assert not np.delete(np.delete(undefined, flat, 0), flat, 1).any()
    assert np.array_equal(undefined, np.isnan(found.statistic))


def test_the_largest_r_of_a_pair_is_never_below_its_mean() -> None:
    tests = matched_tests(LEVELS, len(KEYS), ORDERS)
    defined = ~np.isnan(tests["mean"].statistic)
    assert (tests["max"].statistic[defined] >= tests["mean"].statistic[defined] - 1e-12).all()


@pytest.mark.parametrize(("a", "b"), [("root", "deep"), ("deep", "root"), ("root", "other")])
def test_best_partners_are_the_largest_r_of_each_layer_of_the_shallower_model(a: str, b: str) -> None:
    found = partner_test(LEVELS, len(KEYS), ORDERS)
    shallow, other = (a, b) if len(MODELS[a]["pre_mlp"].layers) <= len(MODELS[b]["pre_mlp"].layers) else (b, a)
    values = [
        pairwise(MODELS[shallow][role].scale, MODELS[other][role].scale, "pearson").max(axis=1).mean() for role in ROLES
    ]
    assert found.statistic[KEYS.index(a), KEYS.index(b)] == pytest.approx(np.mean(values), abs=1e-7)


def test_doubled_layers_are_found_by_best_partners_where_equal_numbers_see_less() -> None:
    place = KEYS.index("root"), KEYS.index("deep")
    partners, equal = partner_test(LEVELS, len(KEYS), ORDERS), matched_tests(LEVELS, len(KEYS), ORDERS)["mean"]
    assert partners.statistic[place] > 0.9 > 0.6 > equal.statistic[place]
    assert partners.pvalue[place] == 1 / (1 + N)


def test_strangers_get_p_values_that_are_about_uniform() -> None:
    rng = np.random.default_rng(5)
    many = {f"m{place}": made_models(int(seed))["root"] for place, seed in enumerate(rng.integers(10**6, size=24))}
    found = matched_tests(levels_of(many, ROLES), len(many), channel_orders(48, 99, 1))["mean"]
    pvalues = found.pvalue[np.triu_indices(len(many), 1)]
    assert 0.35 < pvalues.mean() < 0.65
    assert (pvalues <= 0.05).mean() < 0.12

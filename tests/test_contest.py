"""All pairs of many models at once: each gets the values, and the p, that it would get by itself."""

from __future__ import annotations

import numpy as np
import pytest

from lnsim.measure.metrics import METRICS, pairwise
from lnsim.measure.permutation import channel_orders, permutation_test
from studies.zoo.contest import by_level, levels_of, matched_pvalues, partner_pvalues
from tests.made_vectors import ROLES, made_models

N, SEED = 60, 3
MODELS = made_models()
KEYS = list(MODELS)
LEVELS = levels_of(MODELS, ROLES)
ORDERS = channel_orders(48, N, SEED)


@pytest.mark.parametrize("metric", METRICS)
def test_a_value_stands_on_every_level_that_both_models_have(metric: str) -> None:
    found = by_level(LEVELS, len(KEYS), metric)[:, KEYS.index("root"), KEYS.index("child")]
    for level, value in zip(LEVELS, found, strict=True):
        if level.layer < 3:
            rows = [MODELS[key][level.role].stored[[level.layer]] for key in ("root", "child")]
            assert value == pytest.approx(pairwise(*rows, metric)[0, 0], rel=1e-12)
    assert found.count() == 6


def test_an_undefined_level_is_undefined_and_one_that_a_model_lacks_is_masked() -> None:
    found = by_level(LEVELS, len(KEYS), "pearson")
    mean = found.mean(axis=0).filled(np.nan)
    root, flat, deep = (KEYS.index(key) for key in ("root", "flat", "deep"))
    assert np.isnan(mean[root, flat])
    assert not np.isnan(np.delete(np.delete(mean, flat, 0), flat, 1)).any()
    assert found[:, root, deep].count() == 6
    assert found[:, deep, deep].count() == 12
    undefined = np.isnan(matched_pvalues(LEVELS, len(KEYS), ORDERS)["mean"])
    assert undefined[flat].all()  # a model with a constant row, against all others
    assert undefined[:, flat].all()
    assert not np.delete(np.delete(undefined, flat, 0), flat, 1).any()


def matched(a: str, b: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of both models level by level, as far as both have them."""
    depth = min(len(MODELS[key]["pre_mlp"].layers) for key in (a, b))
    stacked = [np.concatenate([MODELS[key][role].scale[:depth] for role in ROLES]) for key in (a, b)]
    return stacked[0], stacked[1]


@pytest.mark.parametrize("statistic", ["mean", "max"])
@pytest.mark.parametrize("correlation", ["pearson", "spearman", "winsorised"])
@pytest.mark.parametrize(("a", "b"), [("root", "child"), ("root", "other"), ("root", "deep"), ("hidden", "odd")])
def test_a_pair_gets_the_p_that_permutation_test_gives_it(a: str, b: str, correlation: str, statistic: str) -> None:
    found = matched_pvalues(LEVELS, len(KEYS), ORDERS, correlation, largest=statistic == "max")[statistic]
    alone = permutation_test(*matched(a, b), N, SEED, statistic=statistic, correlation=correlation)
    place = KEYS.index(a), KEYS.index(b)
    assert found[place] == alone.pvalue


@pytest.mark.parametrize(("a", "b"), [("root", "deep"), ("deep", "root"), ("root", "other")])
def test_best_partners_are_the_largest_r_of_each_layer_of_the_shallower_model(a: str, b: str) -> None:
    """The same test done pair by pair, with the same permutations."""
    swap = len(MODELS[a]["pre_mlp"].layers) > len(MODELS[b]["pre_mlp"].layers)

    def statistic(order: np.ndarray) -> float:
        r = [pairwise(MODELS[a][role].scale, MODELS[b][role].scale[:, order], "pearson") for role in ROLES]
        return float(np.mean([values.max(axis=0 if swap else 1).mean() for values in r]))

    reached = sum(statistic(order) >= statistic(np.arange(48)) - 1e-12 for order in ORDERS.T)
    found = partner_pvalues(LEVELS, len(KEYS), ORDERS)
    assert found[KEYS.index(a), KEYS.index(b)] == (1 + reached) / (1 + N)
    assert "deep" not in (a, b) or reached == 0  # its doubled layers are found

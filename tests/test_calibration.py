"""Tests that p-values keep their word between synthetic strangers, and that readings which are no tests do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.calibration import NAIVE, TESTS, calibrate, naive_sigma, rejections, smoothed
from lnsim.measure.drawn_models import Template, templates

N_PERMUTATIONS = 99

KS_THRESHOLD = 0.001
"""A test whose p-values are uniform fails below it once in a thousand seeds; the seed here is fixed."""


@pytest.fixture(scope="module")
def measured() -> tuple[Template, ...]:
    names = ("all-minilm-l6-v2", "multilingual-e5-small", "smollm2-135m-instruct")
    models = {name: lnsim.load(name) for name in names}
    return templates(models, ["post_attention", "pre_attention"], {name: name for name in names}, 5)


@pytest.fixture(scope="module")
def drawn(measured: tuple[Template, ...]) -> pd.DataFrame:
    return calibrate(measured, 128, 500, N_PERMUTATIONS, seed=0)


@pytest.mark.parametrize("name", TESTS)
def test_the_p_values_of_strangers_are_uniform(drawn: pd.DataFrame, name: str) -> None:
    values = smoothed(drawn[name].to_numpy(), N_PERMUTATIONS, seed=1)
    assert stats.kstest(values, "uniform").pvalue > KS_THRESHOLD
    assert drawn[name].min() >= 1 / (1 + N_PERMUTATIONS)


@pytest.mark.parametrize("name", TESTS)
def test_strangers_are_called_related_no_more_often_than_the_level_allows(drawn: pd.DataFrame, name: str) -> None:
    """At the upper 99.9 % point of the binomial distribution."""
    for level in (0.05, 0.01):
        assert (drawn[name] <= level).sum() <= stats.binom.ppf(0.999, len(drawn), level)


def test_layers_taken_as_witnesses_and_the_sigma_call_far_more_strangers_related(drawn: pd.DataFrame) -> None:
    found = rejections(drawn, N_PERMUTATIONS, seed=1)
    assert not found.loc[["1/sqrt(n), all layers", "sigma of four layers"], ["kept_0.05", "kept_0.01"]].any(axis=None)
    assert (found.loc[["1/sqrt(n), all layers", "sigma of four layers"], "p_ks"] < 1e-4).all()
    first_layer_apart = drawn[drawn["role"] == "pre_attention"]
    assert (first_layer_apart["sigma"] > 3).mean() > 0.9


def test_a_draw_does_not_depend_on_those_that_follow(measured: tuple[Template, ...]) -> None:
    few, more = calibrate(measured, 32, 2, 9, seed=3), calibrate(measured, 32, 4, 9, seed=3)
    pd.testing.assert_frame_equal(few, more.head(2))
    assert not calibrate(measured, 32, 2, 9, seed=4)[NAIVE[0]].equals(few[NAIVE[0]])


def test_both_templates_of_a_pair_have_one_role(drawn: pd.DataFrame) -> None:
    assert set(drawn.loc[drawn["role"] == "pre_attention", "template_a"]) == {"smollm2-135m-instruct"}
    assert set(drawn.loc[drawn["role"] == "post_attention", "template_b"]) == {
        "all-minilm-l6-v2",
        "multilingual-e5-small",
    }


def test_the_sigma_is_a_difference_of_means_over_the_spread_of_a_few_values() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(1, 0.1, size=(2, 5, 64))
    a[0] -= 1
    cosine = lambda x, y: float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))  # noqa: E731
    across = np.array([cosine(a[i], b[i]) for i in range(1, 5)])
    within = np.array([cosine(one[0], one[i]) for one in (a, b) for i in range(1, 5)])
    expected = (across.mean() - within.mean()) / np.sqrt((across.var() + within.var()) / 2)
    assert naive_sigma(a, b) == pytest.approx(expected)


def test_the_interval_is_where_shares_lie_if_the_level_is_kept() -> None:
    frame = pd.DataFrame({name: (np.arange(200) + 1) / 200 for name in (*TESTS, *NAIVE)})
    found = rejections(frame, 199, seed=0)
    assert (found["at_0.05"] == 0.05).all()
    assert (found["low_0.05"], found["high_0.05"])[0].iloc[0] == stats.binom.ppf(0.025, 200, 0.05) / 200
    assert found[["kept_0.05", "kept_0.01"]].all(axis=None)
    assert (found["ks"] < 0.02).all()


def test_nothing_to_draw_is_refused(measured: tuple[Template, ...]) -> None:
    with pytest.raises(ComparisonError, match="Calibrating with 0 draws from 3 templates: expected at least one"):
        calibrate(measured, 32, 0, 9, seed=0)

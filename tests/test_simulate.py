"""Synthetic models drawn from templates: what was measured on a real stack comes back in what is drawn,
and the permutation tests keep their word between strangers drawn so.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise
from lnsim.measure.simulate import Gaussian, Template, draw, fitted


def real() -> np.ndarray:
    return np.asarray(lnsim.load("all-minilm-l6-v2")["post_attention"].scale)


def test_a_drawn_stack_has_the_level_the_spread_and_the_likeness_of_layers_measured() -> None:
    rows, template = real(), fitted("A", "post_attention", real())
    drawn = template.draw(20_000, np.random.default_rng(0))
    assert np.median(drawn, axis=1) == pytest.approx(np.median(rows, axis=1), abs=0.01)
    for one in (drawn, rows):
        half = np.median(np.abs(one - np.median(one, axis=1, keepdims=True)), axis=1)
        assert half == pytest.approx(np.median(np.abs(rows - np.median(rows, axis=1, keepdims=True)), axis=1), rel=0.03)
    assert pairwise(drawn, drawn, "spearman") == pytest.approx(pairwise(rows, rows, "spearman"), abs=0.05)


def test_the_tails_of_real_layers_are_heavy_and_those_of_normal_values_are_not() -> None:
    normal = np.random.default_rng(0).normal(1.0, 0.1, size=(4, 2000))
    assert fitted("N", "pre_mlp", normal).degrees >= 20
    assert fitted("A", "post_attention", real()).degrees <= 6


def test_a_channel_that_is_extreme_in_one_layer_is_apt_to_be_in_the_others() -> None:
    template = Template("A", "pre_mlp", np.ones(2), np.ones(2), np.eye(2), 2.1)
    far = np.abs(template.patterns(50_000, np.random.default_rng(0))) > 10
    assert far[1][far[0]].mean() > 10 * far[1].mean()


def test_layers_that_are_nearly_alike_still_give_a_distribution() -> None:
    row = np.random.default_rng(0).normal(size=200)
    template = fitted("A", "pre_mlp", np.stack([row, row, -row, row * 2]))
    assert np.isfinite(template.draw(10, np.random.default_rng(0))).all()
    assert np.diag(template.correlation) == pytest.approx(1)


def test_a_layer_without_spread_is_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 20))
    rows[1, :15] = 1
    with pytest.raises(ComparisonError, match="Measuring the stack of A: layer 1 has no spread"):
        fitted("A", "pre_mlp", rows)
    with pytest.raises(ComparisonError, match="Describing the stack of A: expected a spread above 0 for each of 2"):
        Template("A", "pre_mlp", np.ones(2), np.array([1.0, 0.0]), np.eye(2), 3.0)


@pytest.mark.parametrize("how", [{}, {"correlation": "spearman"}, {"statistic": "max"}], ids=["mean", "ranks", "max"])
def test_the_p_values_of_strangers_are_uniform(how: dict[str, str]) -> None:
    """Beyond 1 in 1,000 by Kolmogorov and Smirnov, and by the upper point of the binomial; the seeds are fixed."""
    template, pvalues = fitted("A", "post_attention", real()), []
    for place in range(400):
        generator = np.random.default_rng([0, place])
        a, b = template.draw(128, generator), template.draw(128, generator)
        pvalues.append(lnsim.permutation_test(a, b, 99, place, **how).pvalue)
    steps = np.random.default_rng(1).uniform(size=len(pvalues)) / 100
    assert stats.kstest(pvalues - steps, "uniform").pvalue > 0.001
    for level in (0.05, 0.01):
        assert (np.array(pvalues) <= level).sum() <= stats.binom.ppf(0.999, len(pvalues), level)


def test_the_published_random_vectors_have_their_closed_form() -> None:
    closed = Gaussian(1.0, 0.1, 1.0, 0.1, 4096).closed()
    assert closed["cosine"] == pytest.approx(0.990099, abs=5e-7)
    assert closed["cosine_std"] == pytest.approx(0.000219, abs=5e-7)
    assert closed["r_std"] == pytest.approx(0.0156, abs=5e-5)
    assert closed["l2"] == pytest.approx(9.0504, abs=5e-5)
    assert closed["l2_std"] == pytest.approx(0.1, abs=5e-4)


@pytest.mark.parametrize("moments", [(1.0, 0.1, 1.0, 0.1), (0.5, 0.045, 1.56, 0.49), (0.016, 0.041, 0.24, 0.041)])
def test_closed_forms_agree_with_draws(moments: tuple[float, float, float, float]) -> None:
    vectors, n_draws = Gaussian(*moments, 1024), 4000
    closed, simulated = vectors.closed(), vectors.simulated(draw(1024, n_draws, seed=0))
    for name in ("cosine", "r", "l2"):
        spread = closed[f"{name}_std"]
        assert simulated[name] == pytest.approx(closed[name], abs=4 * spread / np.sqrt(n_draws) + 0.05 * spread)
        assert simulated[f"{name}_std"] == pytest.approx(spread, rel=0.05)


def test_draws_stand_for_whole_vectors() -> None:
    draws, generator = draw(64, 3, seed=5), np.random.default_rng(5)
    x, y = generator.standard_normal((2, 3, 64))
    a, b = 2 + 0.5 * x, -1 + 0.3 * y
    expected = {metric: np.diag(pairwise(a, b, metric)) for metric in ("cosine", "pearson", "l2")}
    found = Gaussian(2, 0.5, -1, 0.3, 64).simulated(draws)
    assert found["cosine"] == pytest.approx(expected["cosine"].mean())
    assert found["r"] == pytest.approx(expected["pearson"].mean())
    assert found["l2_std"] == pytest.approx(expected["l2"].std(ddof=1))


def test_the_seed_fixes_the_draws() -> None:
    assert (draw(32, 150, seed=1).covariance == draw(32, 150, seed=1).covariance).all()
    assert not (draw(32, 150, seed=1).covariance == draw(32, 150, seed=2).covariance).any()


def test_vectors_without_spread_and_too_few_draws_are_refused() -> None:
    with pytest.raises(ComparisonError, match="found 64 channels and 0 and 1"):
        Gaussian(1, 0, 1, 1, 64)
    with pytest.raises(ComparisonError, match="Drawing 1 random pairs of 64 channels"):
        draw(64, 1, seed=0)

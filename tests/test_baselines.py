"""Tests of random baselines: closed forms against draws, and the numbers that one document printed."""

from __future__ import annotations

import numpy as np
import pytest

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.baselines import Gaussian, draw, published_pairs, random_baselines
from lnsim.measure.metrics import pairwise
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

STUDY = load_study("small_models")
PAIRS = [["minilm", "sre"], ["minilm", "l3"], ["minilm", "e5"]]


@pytest.fixture(scope="module")
def models() -> dict[str, NormVectors]:
    return dict(study_vectors(STUDY, "auto", ["minilm", "sre", "l3", "e5"]).vectors)


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


def test_strangers_lie_within_their_own_baseline_and_a_fine_tune_does_not(models: dict[str, NormVectors]) -> None:
    found = random_baselines(PAIRS, models, STUDY.labels, "post_attention", 1, 200, 499, seed=0)
    assert found.index[0] == "Gaussian(1, 0.1)"
    assert found.iloc[0][["cosine", "r", "l2", "p_r"]].isna().all()
    off = ((found.cosine - found.cosine_closed) / found.cosine_std_closed).abs()
    assert off["MiniLM-L6 × e5"] < 3
    assert off["MiniLM-L6 × sre-MiniLM"] > 10
    assert found.p_r["MiniLM-L6 × e5"] > 0.05
    assert found.p_r["MiniLM-L6 × sre-MiniLM"] == 1 / 500


def test_single_comparisons_come_across_within_and_with_layer_zero(models: dict[str, NormVectors]) -> None:
    found = published_pairs(PAIRS, models, STUDY.labels, "post_attention", [1, 2, 5])
    assert found.kind.value_counts().to_dict() == {"same layer": 3, "within one model": 4, "layer 0": 4}
    first = found.set_index("comparison").loc["MiniLM-L6[1] × e5[1]"]
    scale = [models[key]["post_attention"].scale[[1]] for key in ("minilm", "e5")]
    assert first.l2 == pytest.approx(pairwise(*scale, "l2")[0, 0])
    assert first.mean_a == pytest.approx(float(scale[0].astype(np.float64).mean()))


def test_a_comparison_whose_layer_is_missing_is_left_out(models: dict[str, NormVectors]) -> None:
    found = published_pairs(PAIRS, models, STUDY.labels, "post_attention", [5])
    assert "MiniLM-L6[5] × MiniLM-L3[5]" not in set(found.comparison)
    assert "MiniLM-L6[5] × e5[5]" in set(found.comparison)
    assert "within one model" not in set(found.kind)


def test_a_layer_that_no_pair_has_is_refused(models: dict[str, NormVectors]) -> None:
    with pytest.raises(ComparisonError, match="at layer 40, role 'post_mlp': no pair has this layer on both sides"):
        random_baselines(PAIRS, models, STUDY.labels, "post_mlp", 40, 9, 9, seed=0)


def test_vectors_without_spread_and_too_few_draws_are_refused() -> None:
    with pytest.raises(ComparisonError, match="found 64 channels and 0 and 1"):
        Gaussian(1, 0, 1, 1, 64)
    with pytest.raises(ComparisonError, match="Drawing 1 random pairs of 64 channels"):
        draw(64, 1, seed=0)

"""Tests of the levels that many models are laid out on, and of the score of every pair."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from lnsim.errors import ComparisonError, RoleError
from lnsim.measure.benchmark.level_rows import levels_of, pair_means
from lnsim.measure.benchmark.scores import SCORED, likeness
from lnsim.measure.metrics import pairwise
from tests.made_vectors import drawn
from tests.made_zoo import ROLES, made_models

MODELS = made_models()
KEYS = list(MODELS)
LEVELS = levels_of(MODELS, ROLES)


def test_a_level_holds_every_model_that_has_the_layer_in_their_order() -> None:
    assert [(level.role, level.layer) for level in LEVELS if len(level.members) == 1] == [
        (role, layer) for role in ROLES for layer in (3, 4, 5)
    ]
    first = LEVELS[0]
    assert first.members.tolist() == list(range(len(KEYS)))
    assert np.array_equal(first.rows[KEYS.index("child")], MODELS["child"]["pre_attention"].scale[0])


def test_only_models_with_a_bias_are_on_the_levels_of_the_biases() -> None:
    levels = levels_of(MODELS, ROLES, bias=True)
    assert {tuple(level.members.tolist()) for level in levels} == {(KEYS.index("odd"),)}


def test_models_that_cannot_be_laid_out_are_refused() -> None:
    with pytest.raises(ComparisonError, match="their hidden sizes are"):
        levels_of({"a": drawn(1, size=8), "b": drawn(2, size=9)}, ["pre_mlp"])
    with pytest.raises(ComparisonError, match="none has a bias to compare"):
        levels_of({"a": drawn(1)}, ["pre_mlp"], bias=True)
    with pytest.raises(RoleError, match="no norms of role 'q_norm'"):
        levels_of({"a": drawn(1)}, ["q_norm"])


@pytest.mark.parametrize("metric", SCORED)
def test_a_score_is_the_mean_over_levels_and_larger_is_more_alike(metric: str) -> None:
    found = likeness(LEVELS, len(KEYS), metric)
    rows = [
        pairwise(MODELS["root"][role].stored[[layer]], MODELS["child"][role].stored[[layer]], metric)[0, 0]
        for role in ROLES
        for layer in range(3)
    ]
    sign = 1 if metric in ("cosine", "pearson", "spearman") else -1
    assert found[KEYS.index("root"), KEYS.index("child")] == pytest.approx(sign * np.mean(rows), rel=1e-12)
    if metric != "changed_ratio":
        assert found[0, KEYS.index("child")] > found[0, KEYS.index("other")]


def test_bits_of_two_dtypes_are_not_compared() -> None:
    rounded = {
        role: replace(one, stored=one.stored.astype(ml_dtypes.bfloat16)) for role, one in MODELS["root"].roles.items()
    }
    models = {"root": MODELS["root"], "same": MODELS["root"], "rounded": replace(MODELS["root"], roles=rounded)}
    found = likeness(levels_of(models, ROLES), 3, "changed_ratio")
    assert found[0, 1] == 0
    assert np.isnan(found[0, 2])
    assert found[2, 2] == 0


def test_one_undefined_level_leaves_the_pair_undefined_and_no_level_too() -> None:
    everyone, first = np.array([0, 1]), np.array([0])
    values = np.array([[1.0, np.nan], [np.nan, 1.0]])
    found = pair_means(3, [(everyone, np.ones((2, 2))), (everyone, values), (first, np.array([[4.0]]))])
    assert found[0, 0] == 2
    assert np.isnan(found[0, 1])
    assert np.isnan(found[0, 2])

"""Tests of what breaks a pattern on purpose: the exact null of a mean r by distance, and what a shuffle leaves."""

from __future__ import annotations

import numpy as np
import pytest
from made_vectors import LABELS, Relation, drawn, made

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.cells import cells
from lnsim.measure.model_pairs import model_pairs
from lnsim.measure.shuffles import null_by_distance, shuffled_layers

ROLES = ["pre_mlp"]


@pytest.fixture
def models() -> dict[str, NormVectors]:
    a = drawn(0, layers=[0, 1, 3])
    return {"a": a, "b": made(a["pre_mlp"].scale + 0.01, [0, 1, 3]), "c": drawn(1, layers=[0, 1, 2, 3])}


def test_the_null_is_exact_against_many_permutations(models: dict[str, NormVectors]) -> None:
    pairs = model_pairs(models, [Relation("a", "b", "related")], LABELS)
    null = null_by_distance(models, pairs, ROLES, LABELS).set_index(["name", "distance"])["null_std"]
    generator = np.random.default_rng(5)
    a, c = models["a"]["pre_mlp"], models["c"]["pre_mlp"]
    draws = []
    for _ in range(2000):
        shuffled = made(c.scale[:, generator.permutation(64)], c.layers.tolist())
        r = np.corrcoef(a.scale.astype(float), shuffled["pre_mlp"].scale.astype(float))[:3, 3:]
        draws.append(r[np.abs(a.layers[:, None] - c.layers[None, :]) == 1].mean())
    assert null["A × C", 1] == pytest.approx(np.std(draws), rel=0.05)
    assert null["A", 2] == pytest.approx(1 / np.sqrt(63))


def test_a_shuffle_keeps_values_and_loses_the_pattern(models: dict[str, NormVectors]) -> None:
    broken = shuffled_layers(models, ROLES, seed=3)
    assert (np.sort(broken["a"]["pre_mlp"].scale) == np.sort(models["a"]["pre_mlp"].scale)).all()
    assert (broken["a"]["pre_mlp"].scale == shuffled_layers({"a": models["a"]}, ROLES, 3)["a"]["pre_mlp"].scale).all()
    before, after = (cells(some, [("a", "b"), ("a", "c")], ROLES).groupby("b") for some in (models, broken))
    assert before.pearson.mean()["b"] > 0.2
    assert abs(after.pearson.mean()["b"]) < 0.1
    assert after.cosine.mean()["c"] == pytest.approx(before.cosine.mean()["c"], abs=0.01)

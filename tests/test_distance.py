"""Tests of layers by distance: which pairs fall where, the exact null, and what a shuffle leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_vectors import LABELS, Relation, drawn, made

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure import distance
from lnsim.measure.model_pairs import ModelPair, model_pairs
from lnsim.measure.shuffles import null_by_distance, shuffled_layers
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

ROLES = ["pre_mlp"]


@pytest.fixture
def models() -> dict[str, NormVectors]:
    a = drawn(0, layers=[0, 1, 3])
    kin = made(a["pre_mlp"].scale + 0.01, [0, 1, 3])
    return {"a": a, "b": kin, "c": drawn(1, layers=[0, 1, 2, 3])}


@pytest.fixture
def pairs(models: dict[str, NormVectors]) -> tuple[ModelPair, ...]:
    return model_pairs(models, [Relation("a", "b", "related")], LABELS)


@pytest.fixture
def measured(models: dict[str, NormVectors], pairs: tuple[ModelPair, ...]) -> pd.DataFrame:
    return distance.layer_pairs(models, pairs, ROLES, LABELS)


def test_every_pair_of_layers_falls_to_its_distance_once(measured: pd.DataFrame) -> None:
    inside = measured[measured["name"] == "A"]
    assert sorted(inside["distance"]) == [1, 2, 3]
    assert (inside["layer_a"] < inside["layer_b"]).all()
    between = measured[measured["name"] == "A × C"]
    assert len(between) == 3 * 4
    assert between["distance"].value_counts().to_dict() == {0: 3, 1: 4, 2: 3, 3: 2}
    assert len(between[(between["layer_a"] == 1) & (between["layer_b"] == 3)]) == 1


def test_a_distance_holds_the_mean_the_spread_and_the_number(measured: pd.DataFrame) -> None:
    row = distance.by_distance(measured).set_index(["name", "distance"]).loc[("A × C", 1)]
    some = measured[(measured["name"] == "A × C") & (measured["distance"] == 1)]
    assert row["n"] == len(some)
    assert row["cosine_mean"] == pytest.approx(some["cosine"].mean())
    assert row["r_std"] == pytest.approx(some["r"].std(ddof=0))
    assert (row["r_min"], row["r_max"]) == (some["r"].min(), some["r"].max())
    assert distance.overall(measured)["n"].sum() == len(measured)


def test_rows_keep_the_order_of_models_and_distances_ascend(measured: pd.DataFrame) -> None:
    found = distance.by_distance(measured)
    assert list(dict.fromkeys(found["name"])) == ["A", "B", "C", "A × B", "A × C", "B × C"]
    assert all(part["distance"].is_monotonic_increasing for _, part in found.groupby("name"))


def test_groups_stand_beside_each_other_and_an_empty_one_counts_zero(measured: pd.DataFrame) -> None:
    found = distance.beside(measured[measured["name"] != "A × C"], [0, 1, 9])
    assert found.index.tolist() == [0, 1]
    assert found.loc[0, ("within", "n")] == 0
    assert np.isnan(found.loc[0, ("within", "r")])
    assert found.loc[0, ("related", "r")] == pytest.approx(1.0, abs=1e-6)


def test_a_contrast_has_only_distances_that_both_sides_have(measured: pd.DataFrame) -> None:
    found = distance.contrast(measured).set_index(["group", "distance"])
    assert [one for group, one in found.index if group == "independent"] == [1, 2, 3]
    assert [one for group, one in found.index if group == "within"] == [1, 2, 3]
    strangers = measured[(measured["group"] == "independent") & (measured["distance"] == 2)]
    assert found.loc[("independent", 2), "r"] == pytest.approx(strangers["r"].mean())
    assert found.loc[("independent", 2), "n"] == len(strangers)


def test_a_contrast_without_such_a_pair_keeps_the_models_alone(measured: pd.DataFrame) -> None:
    found = distance.contrast(measured, "disputed")
    assert found["group"].unique().tolist() == ["within"]
    assert found["distance"].tolist() == [1, 2, 3]


def test_steps_go_from_the_shallower_layer_to_the_deeper(measured: pd.DataFrame) -> None:
    found = distance.steps(measured, "pre_mlp", [0, 1, 3])
    assert list(dict.fromkeys(found.columns.get_level_values(0))) == ["0 to 1", "0 to 3", "1 to 3"]
    one = measured[(measured["name"] == "A × C") & (measured["layer_a"] == 1) & (measured["layer_b"] == 3)]
    assert found.loc["A × C", ("1 to 3", "cosine")] == one["cosine"].iloc[0]


def test_the_null_is_exact_against_many_permutations(
    models: dict[str, NormVectors], pairs: tuple[ModelPair, ...]
) -> None:
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


def test_a_shuffle_keeps_values_and_loses_the_pattern(
    models: dict[str, NormVectors], pairs: tuple[ModelPair, ...], measured: pd.DataFrame
) -> None:
    broken = shuffled_layers(models, ROLES, seed=3)
    assert (np.sort(broken["a"]["pre_mlp"].scale) == np.sort(models["a"]["pre_mlp"].scale)).all()
    assert (broken["a"]["pre_mlp"].scale == shuffled_layers({"a": models["a"]}, ROLES, 3)["a"]["pre_mlp"].scale).all()
    table = distance.beside_shuffled(measured, distance.layer_pairs(broken, pairs, ROLES, LABELS)).set_index("group")
    assert table.loc["related", "r_mean"] > 0.2
    assert abs(table.loc["related", "r_shuffled"]) < 0.1
    assert table.loc["independent", "cosine_shuffled"] == pytest.approx(
        table.loc["independent", "cosine_mean"], abs=0.01
    )


def test_a_model_that_is_not_there_changes_no_other_row(models: dict[str, NormVectors]) -> None:
    every = distance.layer_pairs(models, model_pairs(models, [], LABELS), ROLES, LABELS)
    fewer = {key: vectors for key, vectors in models.items() if key != "b"}
    some = distance.layer_pairs(fewer, model_pairs(fewer, [], LABELS), ROLES, LABELS)
    kept = every[~every["name"].str.contains("B")].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, some, rtol=1e-12)


def test_a_place_takes_roles_before_and_after() -> None:
    frame = pd.DataFrame({"role": ["pre_attention", "post_attention", "pre_mlp", "encoder/pre_attention"]})
    assert distance.at_place(frame, "attention").index.tolist() == [0, 1, 3]


def test_the_single_layer_that_stands_apart_shows_at_the_largest_distance() -> None:
    smollm2 = {"smollm2": lnsim.load("smollm2-135m-instruct")}
    found = distance.by_distance(distance.layer_pairs(smollm2, [], ["pre_attention"], {"smollm2": "S"}))
    assert (found["n"].iloc[0], found["n"].iloc[-1]) == (29, 1)
    assert found["cosine_mean"].iloc[-1] == pytest.approx(0.023, abs=0.001)
    assert found["cosine_min"].min() == pytest.approx(0.008, abs=0.0005)


@pytest.mark.usefixtures("replica")
def test_the_replica_gives_the_published_steps() -> None:
    study = load_study("solar_glm")
    vectors = dict(study_vectors(study, "replica", ["solar", "glm"]).vectors)
    pairs = model_pairs(vectors, study.pairs(), study.labels)
    found = distance.steps(
        distance.layer_pairs(vectors, pairs, ["pre_attention"], study.labels), "pre_attention", [10, 20, 30]
    )
    for label, first, second in (("Solar", 0.9882, 0.9960), ("GLM-4.5-Air", 0.9982, 0.9976)):
        assert found.loc[label, ("10 to 20", "cosine")] == pytest.approx(first, abs=1e-4)
        assert found.loc[label, ("20 to 30", "cosine")] == pytest.approx(second, abs=1e-4)

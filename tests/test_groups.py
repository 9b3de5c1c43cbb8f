"""Tests of pairs of models by layer and kind: made vectors, and the published groups on the replica."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_vectors import LABELS, Relation, drawn, made

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure import groups, pair_tables
from lnsim.measure.model_pairs import model_pairs
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

KINDS = {"a": "MoE", "b": "dense", "c": "dense", "d": "MoE", "e": "dense"}
ROLE = "pre_mlp"
SETS = {"all": ["a", "b", "c", "d"], "three": ["a", "b", "c"]}


@pytest.fixture
def models() -> dict[str, NormVectors]:
    b = drawn(1, layers=range(4))
    return {
        "a": drawn(0, layers=range(6)),
        "b": b,
        "c": made(b[ROLE].scale[:3] + 0.02),
        "d": drawn(3, layers=[0, 2, 3, 4]),
    }


@pytest.fixture
def compared(models: dict[str, NormVectors]) -> pd.DataFrame:
    return groups.pairs_by_layer(models, model_pairs(models, [Relation("c", "b", "related")], LABELS), [ROLE], KINDS)


def test_a_pair_has_the_layers_that_both_have_and_kinds_in_one_order(compared: pd.DataFrame) -> None:
    layers = {pair: part["layer"].tolist() for pair, part in compared.groupby("pair")}
    assert layers["A × D"] == [0, 2, 3, 4]
    assert layers["C × D"] == [0, 2]
    kinds = compared.drop_duplicates("pair").set_index("pair")["kinds"]
    assert (kinds["A × D"], kinds["B × C"], kinds["B × D"]) == ("MoE × MoE", "dense × dense", "MoE × dense")


def test_groups_count_pairs_with_and_without_the_related(compared: pd.DataFrame) -> None:
    found = groups.by_kinds(groups.at_layer(compared, 0), SETS).set_index(["models", "related", "kinds"])
    assert found.loc[("all", "in", "MoE × dense"), "n"] == 4
    assert ("all", "out", "dense × dense") not in found.index
    row = found.loc[("three", "in", "MoE × dense")]
    some = compared[(compared["layer"] == 0) & compared["pair"].isin(["A × B", "A × C"])]
    assert row["cosine_mean"] == pytest.approx(some["cosine"].mean())
    assert row["cosine_std"] == pytest.approx(some["cosine"].std(ddof=0))
    assert row["r_median"] == pytest.approx(some["r"].median())
    assert (row["cosine_min"], row["cosine_max"]) == (some["cosine"].min(), some["cosine"].max())


def test_a_layer_that_no_pair_has_is_an_error(compared: pd.DataFrame) -> None:
    with pytest.raises(ComparisonError, match="at layer 9: no pair of them has such a layer in common"):
        groups.at_layer(compared, 9)
    with pytest.raises(ComparisonError, match="no two of them have a role among pre_attention in common"):
        groups.pairs_by_layer({"a": drawn(0)}, [], ["pre_attention"], KINDS)


def test_means_over_layers_rest_on_the_same_pairs_at_each(compared: pd.DataFrame) -> None:
    found = groups.over_layers(compared, SETS, [0, 3]).set_index(["which_layers", "models", "related", "kinds"])
    every = found.loc[("every common", "all", "in", "MoE × dense")]
    assert (every["layers"], every["n"]) == (2, 8)  # layers 0 and 2: D lacks layer 1, C ends at 2
    assert found.loc[("listed", "all", "in", "MoE × MoE"), "n"] == 2
    by_layer = groups.by_layer(compared, SETS).set_index(["models", "related", "kinds", "layer"])
    means = [by_layer.loc[("all", "in", "MoE × dense", layer), "cosine_mean"] for layer in (0, 2)]
    assert every["layer_means_std"] == pytest.approx(np.std(means))


def test_a_pair_has_its_layer_and_its_means(compared: pd.DataFrame) -> None:
    found = groups.pairs_summed(compared, 1).set_index("pair")
    assert np.isnan(found.loc["A × D", "cosine"])
    one = compared[compared["pair"] == "B × C"]
    assert (found.loc["B × C", "layers"], found.loc["B × C", "group"]) == (3, "related")
    assert found.loc["B × C", "r_mean"] == pytest.approx(one["r"].mean())


def test_pairs_stand_side_by_side_and_one_that_was_not_measured_is_left_out(compared: pd.DataFrame) -> None:
    found = groups.pairs_beside(compared, ["A × D", "X × Y", "B × C"], [0, 1, 9])
    assert list(dict.fromkeys(found.columns.get_level_values(0))) == ["A × D", "B × C"]
    assert found.index.tolist() == [0, 1]
    assert np.isnan(found.loc[1, ("A × D", "r")])
    one = compared[(compared["pair"] == "B × C") & (compared["layer"] == 1)]
    assert found.loc[1, ("B × C", "cosine")] == one["cosine"].iloc[0]


def test_the_matrix_is_symmetric_and_leaves_gaps(compared: pd.DataFrame) -> None:
    found = groups.model_matrix(groups.at_layer(compared, 1), "r", {key: LABELS[key] for key in "abcd"})
    assert found.loc["A", "B"] == found.loc["B", "A"]
    assert found.isna().sum().sum() == 6  # D has no layer 1
    assert np.diag(found).tolist() == [1.0] * 4


def test_a_removed_model_or_layer_shifts_nothing(models: dict[str, NormVectors], compared: pd.DataFrame) -> None:
    fewer = {key: vectors for key, vectors in models.items() if key != "c"}
    fewer["b"] = made(models["b"][ROLE].scale[[0, 1, 3]], [0, 1, 3])
    found = groups.pairs_by_layer(fewer, model_pairs(fewer, [], LABELS), [ROLE], KINDS)
    kept = compared[
        ~compared["pair"].str.contains("C") & ~(compared["pair"].str.contains("B") & (compared["layer"] == 2))
    ]
    pd.testing.assert_frame_equal(found, kept.reset_index(drop=True))


def test_models_without_vectors_are_listed_with_the_reason(models: dict[str, NormVectors]) -> None:
    found = pair_tables.models_listed(models, {"E": "not read yet"}, KINDS, LABELS, ROLE)
    assert found.loc["E"].tolist() == ["not read yet", "dense", 0, 0, "none"]
    assert found.loc["D", ["loaded", "layers"]].tolist() == ["yes", 4]


def test_one_pair_stands_beside_the_statistics_of_its_layers(compared: pd.DataFrame) -> None:
    found = pair_tables.beside_pair(groups.by_layer(compared, SETS), compared, "C × D")
    assert found.groupby("layer")["r"].count().gt(0).to_dict() == {
        layer: layer in (0, 2) for layer in sorted(found["layer"].unique())
    }
    assert (found["cosine_mean_plus_std"] - found["cosine_mean"]).to_numpy() == pytest.approx(
        found["cosine_std"].to_numpy()
    )


def test_tests_below_the_level_are_counted_by_group() -> None:
    frame = pd.DataFrame(
        {
            "pair": ["x", "y", "z"],
            "group": ["related", "related", "independent"],
            "role": ROLE,
            "cosine_mean": [1.0, 0.99, 0.98],
            "mean_term": [0.97, 0.97, 0.981],
            "r_mean": [1.0, 0.6, 0.01],
            "null_std": 0.02,
            "pvalue": [0.001, 0.03, 0.7],
            "p_holm": [0.003, 0.06, 0.7],
        }
    )
    found = pair_tables.null_summary(frame).set_index("group")
    assert found["below_level"].tolist() == [1, 0]
    assert found.loc["related", "cosine_gap"] == pytest.approx(0.03)
    assert found.loc["independent", "cosine_gap"] == pytest.approx(0.001)


@pytest.fixture(scope="module")
def published(replica: None) -> pd.DataFrame:
    study = load_study("solar_glm")
    vectors = dict(study_vectors(study, "replica", study.experiments["03"]["models"]).vectors)
    pairs = model_pairs(vectors, study.pairs(), study.labels)
    return groups.pairs_by_layer(vectors, pairs, ["pre_attention"], study.kinds("kind"))


def test_the_replica_gives_the_published_groups_and_the_counts_that_were_announced(published: pd.DataFrame) -> None:
    sets = load_study("solar_glm").experiments["03"]["sets"]
    found = groups.by_kinds(groups.at_layer(published, 10), sets).set_index(["models", "related", "kinds"])
    for kinds, mean, std, n in (
        ("MoE × MoE", 0.9639, 0.0187, 6),
        ("MoE × dense", 0.9722, 0.0178, 16),
        ("dense × dense", 0.9738, 0.0183, 6),
    ):
        row = found.loc[("published", "in", kinds)]
        assert row["n"] == n
        assert (row["cosine_mean"], row["cosine_std"]) == pytest.approx((mean, std), abs=2e-4)
    assert found.loc[("announced", "in", "MoE × dense"), "n"] == 20
    assert found.loc[("announced", "in", "dense × dense"), "n"] == 10
    assert found.loc[("announced", "out", "dense × dense"), "n"] == 9


def test_the_replica_gives_the_published_pairs_and_layers(published: pd.DataFrame) -> None:
    sets = load_study("solar_glm").experiments["03"]["sets"]
    here = groups.at_layer(published, 10).set_index("pair")["cosine"]
    pairs = {"Solar × GLM-4.5-Air": 0.9811, "Solar × Mixtral-8x7B": 0.9408, "Phi-3.5-MoE × Mixtral-8x7B": 0.9465}
    assert {pair: here[pair] for pair in pairs} == pytest.approx(pairs, abs=2e-4)
    by_layer = groups.by_layer(published, sets).set_index(["models", "related", "kinds", "layer"])
    rows = {5: (0.9432, 0.0063), 15: (0.9800, 0.0097), 20: (0.9897, 0.0022), 25: (0.9889, 0.0039), 30: (0.9710, 0.0195)}
    for layer, (mean, std) in rows.items():
        row = by_layer.loc[("published", "in", "MoE × MoE", layer)]
        assert (row["cosine_mean"], row["cosine_std"]) == pytest.approx((mean, std), abs=2e-4)
    over = groups.over_layers(published, sets, [5, 10, 15, 20, 25, 30]).set_index(
        ["which_layers", "models", "related", "kinds"]
    )
    row = over.loc[("listed", "published", "in", "MoE × MoE")]
    assert (row["n"], row["layers"]) == (36, 6)
    assert (row["cosine_mean"], row["cosine_std"], row["layer_means_std"]) == pytest.approx(
        (0.9728, 0.0202, 0.0161), abs=2e-4
    )
    assert over.loc[("every common", "published", "in", "MoE × MoE"), "layers"] == 32

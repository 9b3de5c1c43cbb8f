"""Tests of pairs of models: their groups, what can be compared, and why the rest cannot."""

from __future__ import annotations

import pytest
from made_vectors import LABELS, Relation, drawn

from lnsim.errors import ComparisonError
from lnsim.measure.model_pairs import ModelPair, model_pairs, not_comparable, obstacles_in_words, with_role
from lnsim.study.catalog import load_study


def test_every_pair_comes_once_in_the_order_of_the_models_and_is_presumed_independent() -> None:
    pairs = model_pairs(["a", "b", "c"], [Relation("c", "a", "related"), Relation("b", "c", "disputed")], LABELS)
    assert [(pair.label, pair.group) for pair in pairs] == [
        ("A × B", "independent"),
        ("A × C", "related"),
        ("B × C", "disputed"),
    ]


def test_the_relations_of_a_study_fit() -> None:
    study = load_study("solar_glm")
    pairs = model_pairs(["solar", "glm", "intellect", "phi"], study.pairs(), study.labels)
    assert [pair.group for pair in pairs].count("disputed") == 2
    assert [pair.label for pair in pairs if pair.group == "related"] == ["GLM-4.5-Air × INTELLECT-3"]


def test_an_unknown_group_or_a_model_with_itself_is_refused() -> None:
    with pytest.raises(ComparisonError, match=r"Pairing 'a' with 'b': expected .* a group among related, .*'cousins'"):
        ModelPair("a", "b", "A", "B", "cousins")
    with pytest.raises(ComparisonError, match="Pairing 'a' with 'a'"):
        ModelPair("a", "a", "A", "A", "related")


def test_different_hidden_sizes_and_absent_roles_are_named_with_the_pair() -> None:
    models = {"a": drawn(0), "b": drawn(1), "c": drawn(2, size=32), "d": drawn(3, role="post_mlp")}
    pairs = model_pairs(models, [], LABELS)
    assert [pair.label for pair in with_role(models, pairs, "pre_mlp")] == ["A × B"]
    found = not_comparable(models, pairs, ["pre_mlp"]).set_index("pair")["reason"]
    assert found["A × C"].startswith("their hidden sizes are 32 and 64")
    assert found["B × D"] == "D has no norm of this role"
    assert "A × B" not in found
    words = obstacles_in_words(not_comparable(models, pairs, ["pre_mlp"]))
    assert "no channel of one is a channel of the other: A × C, B × C, C × D." in words
    assert words.endswith("Not compared, since D has no norm of this role: A × D, B × D.")


def test_a_role_that_neither_has_is_no_obstacle() -> None:
    models = {"a": drawn(0), "b": drawn(1)}
    found = not_comparable(models, model_pairs(models, [], LABELS), ["pre_mlp", "pre_attention"])
    assert found.empty
    assert obstacles_in_words(found) == "Every pair of these models can be compared."

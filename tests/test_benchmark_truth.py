"""Tests of what is known of every pair, and of the descent that it comes from."""

from __future__ import annotations

import pytest

from lnsim.errors import ComparisonError
from lnsim.measure.benchmark.truth import REMOTE, SIBLINGS, STRANGERS, lineages, pair_truth
from lnsim.study.catalog import load_study
from tests.made_zoo import DERIVATIONS, DESIGNS, MadeLineage, made_truth

TRUTH = made_truth().set_index(["a", "b"])


def test_every_pair_is_there_once() -> None:
    n = len(DERIVATIONS)
    assert len(TRUTH) == n * (n - 1) // 2
    assert TRUTH.index.is_unique


def test_a_model_and_its_grandchild_are_a_derived_pair_of_the_grandchilds_kind() -> None:
    assert TRUTH.loc[("root", "grandchild"), ["group", "kind"]].tolist() == ["derived", "made grandchild"]


def test_children_of_one_model_are_siblings_and_those_of_a_blind_kind_are_told_apart() -> None:
    assert TRUTH.loc[("child", "deep"), "kind"] == SIBLINGS
    assert TRUTH.loc[("child", "hidden"), ["kind", "blind"]].tolist() == [REMOTE, True]
    assert TRUTH.loc[("root", "hidden"), ["kind", "blind"]].tolist() == ["made hidden", True]


def test_all_others_are_strangers_of_one_design_or_not() -> None:
    strangers = TRUTH[TRUTH["group"] == "independent"]
    assert set(strangers["kind"]) == {STRANGERS}
    assert strangers.loc[("other", "third"), "same_design"]
    assert not strangers.loc[("other", "odd"), "same_design"]
    assert (strangers["lineage_a"] != strangers["lineage_b"]).all()


def test_a_lineage_is_named_by_its_first_model() -> None:
    found = lineages(MadeLineage(), list(DERIVATIONS))
    assert {key for key, name in found.items() if name == "root"} == set(DERIVATIONS) - {"other", "third", "odd"}


def test_a_list_without_derived_pairs_or_with_a_wrong_blind_kind_is_refused() -> None:
    study, strangers = MadeLineage(), {"other": "", "third": ""}
    with pytest.raises(ComparisonError, match="no model is of the blind kind 'made up'"):
        pair_truth(study, DERIVATIONS, DESIGNS, ["made up"])
    with pytest.raises(ComparisonError, match="expected both derived and independent ones"):
        pair_truth(study, strangers, DESIGNS, [])


def test_the_zoos_relations_follow_from_its_parents() -> None:
    study = load_study("zoo")
    assert study.has_descent
    assert study.relation("llama_prose_1_merged", "llama_prose_1").kind == "derived"
    assert study.relation("llama_prose_1_merged", "llama_prose_1").a == "llama_prose_1"
    assert study.relation("llama_prose_1_light", "llama_prose_1_folded").kind == "common_ancestor"
    assert study.relation("llama_prose_1_light", "llama_prose_2").independent

"""Tests of how the models of the zoo were made, as notebook 11 lists and groups them."""

from __future__ import annotations

import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.study.catalog import load_study
from studies.zoo.records import designs, training_records

STUDY = load_study("zoo")


def test_a_model_is_listed_with_its_parents_and_the_record_of_its_extract() -> None:
    keys = ["llama_prose_1", "llama_prose_1_merged", "gpt2_two_code_212"]
    models = {key: lnsim.load(STUDY.model(key).stored) for key in keys}
    found = training_records(STUDY, models)
    assert found.index.tolist() == [STUDY.model(key).label for key in keys]
    assert found["parents"].tolist() == ["none", "L1, heavy fine-tune and L1, fine-tune at a high rate", "none"]
    assert found["derivation"].tolist() == ["none", "mean of two children", "none"]
    assert found["first_gamma"].tolist() == ["ones", "ones", "two"]
    assert found["steps"].tolist() == [360, 0, 360]
    recorded = [float(vectors.provenance["zoo_loss"]) for vectors in models.values()]
    assert found["loss"].tolist() == recorded
    assert found["layers"].tolist() == [6, 6, 6]
    assert designs(STUDY, models) == {keys[0]: "Llama, γ ones", keys[1]: "Llama, γ ones", keys[2]: "GPT-2, γ two"}


def test_an_extract_without_a_record_is_an_error_that_names_it() -> None:
    stranger = lnsim.load("all-minilm-l6-v2")
    with pytest.raises(ComparisonError, match=r"Reading how .*MiniLM.* was trained: its extract should have"):
        training_records(STUDY, {"llama_prose_1": stranger})

"""Tests of how γ can begin, and of the records of training, as notebook 11 lists and groups them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.study.catalog import load_study
from studies.zoo.recipes import GAMMA_INITS
from studies.zoo.records import FIRST_GAMMAS, FirstGamma, TrainingRecord, designs, training_records


def draws(gamma: str, generator: np.random.Generator) -> np.ndarray:
    normal = generator.normal(size=400_000)
    constant = {"ones": np.ones_like(normal), "two": np.full_like(normal, 2.0)}
    return {**constant, "near_one": 1 + 0.1 * normal, "absolute": np.abs(normal), "normal": normal}[gamma]


def test_the_moments_on_record_are_those_of_the_draws_and_no_other_first_gamma_is_known() -> None:
    assert set(FIRST_GAMMAS) == set(GAMMA_INITS)
    for name, first in FIRST_GAMMAS.items():
        values = draws(name, np.random.default_rng(1))
        assert (first.mean, first.std) == pytest.approx((values.mean(), values.std()), abs=0.006)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.0), (1.0, -0.1), (float("nan"), 1.0), (1.0, float("nan"))])
def test_a_distribution_that_cannot_be_is_refused(mean: float, std: float) -> None:
    with pytest.raises(ComparisonError, match="A first γ of mean"):
        FirstGamma("x", mean, std)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({name: value}, "Reading how 'made' was trained: its extract should have 'zoo_gamma'")
          for name, value in (("zoo_loss", "low"), ("zoo_seed", "1.5"), ("zoo_gamma", None))),
        ({"zoo_gamma": "threes"}, "γ begins as 'threes'; expected one of ones"),
    ],
)  # fmt: skip
def test_an_extract_without_a_whole_record_is_named(change: dict[str, str | None], message: str) -> None:
    model = lnsim.load("llama-prose-1")
    kept = {name: value for name, value in {**model.provenance, **change}.items() if value is not None}
    with pytest.raises(ComparisonError, match=message):
        TrainingRecord.of(replace(model, source="made", provenance=kept))


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
    assert TrainingRecord.of(models[keys[0]]).architecture == "Llama"
    assert found["layers"].tolist() == [6, 6, 6]
    assert designs(STUDY, models) == {keys[0]: "Llama, γ ones", keys[1]: "Llama, γ ones", keys[2]: "GPT-2, γ two"}

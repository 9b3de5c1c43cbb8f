"""Tests of how γ can begin, and of the records of training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_vectors import drawn

import lnsim
from lnsim.errors import ComparisonError
from studies.zoo.recipes import GAMMA_INITS
from studies.zoo.records import FIRST_GAMMAS, FirstGamma, TrainingRecord

ROOT = Path(__file__).resolve().parents[1]


def trained_model(seed: int, gamma: str = "ones", architecture: str = "llama", **record: str) -> lnsim.NormVectors:
    """A made model with a record of its training."""
    kept = {"architecture": architecture, "gamma": gamma, "text": "prose", "seed": str(seed), "steps": "360"}
    kept |= {"loss": "2.0", "unigram_loss": "3.0", **record}
    return replace(drawn(seed), provenance={f"zoo_{name}": value for name, value in kept.items()})


def draws(gamma: str, generator: np.random.Generator) -> np.ndarray:
    normal = generator.normal(size=400_000)
    return {
        "ones": np.ones_like(normal),
        "two": np.full_like(normal, 2.0),
        "near_one": 1 + 0.1 * normal,
        "absolute": np.abs(normal),
        "normal": normal,
    }[gamma]


def test_every_first_gamma_of_the_recipes_is_known_and_no_other() -> None:
    assert set(FIRST_GAMMAS) == set(GAMMA_INITS)


def test_the_moments_on_record_are_those_of_the_draws() -> None:
    for name, first in FIRST_GAMMAS.items():
        values = draws(name, np.random.default_rng(1))
        assert (first.mean, first.std) == pytest.approx((values.mean(), values.std()), abs=0.006)


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.0), (1.0, -0.1), (float("nan"), 1.0), (1.0, float("nan"))])
def test_a_distribution_that_cannot_be_is_refused(mean: float, std: float) -> None:
    with pytest.raises(ComparisonError, match="A first γ of mean"):
        FirstGamma("x", mean, std)


def test_a_record_is_read_from_the_extract() -> None:
    record = TrainingRecord.of(trained_model(3, "near_one", "gpt2", loss="2.25"))
    assert record == TrainingRecord("GPT-2", "near_one", "prose", 3, 360, 2.25, 3.0)


@pytest.mark.parametrize("change", [{"zoo_loss": "low"}, {"zoo_seed": "1.5"}, {"zoo_gamma": None}])
def test_an_extract_without_a_whole_record_is_an_error_that_names_the_model(change: dict[str, str | None]) -> None:
    model = trained_model(1)
    kept = {name: value for name, value in {**model.provenance, **change}.items() if value is not None}
    with pytest.raises(ComparisonError, match="Reading how 'made' was trained: its extract should have 'zoo_gamma'"):
        TrainingRecord.of(replace(model, provenance=kept))


def test_a_record_with_another_first_gamma_is_an_error() -> None:
    with pytest.raises(ComparisonError, match="γ begins as 'threes'; expected one of ones"):
        TrainingRecord.of(_with_gamma("threes"))


def _with_gamma(gamma: str) -> lnsim.NormVectors:
    model = trained_model(1)
    return replace(model, provenance={**model.provenance, "zoo_gamma": gamma})


def test_a_stored_model_has_its_record_and_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    record = TrainingRecord.of(lnsim.load("llama-prose-1"))
    assert (record.architecture, record.text, record.seed, record.steps) == ("Llama", "prose", 1, 360)
    assert record.loss == pytest.approx(1.769, abs=0.1)
    assert record.loss < record.unigram_loss

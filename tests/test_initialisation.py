"""Tests of what the first γ predicts, of the records of training, and of how far γ moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_trained import LABELS, ROLES, trained_model, zoo_of

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.initialisation import (
    FIRST_GAMMAS,
    FirstGamma,
    TrainingRecord,
    moved,
    predicted_cosine,
    stacked,
    trained,
)
from studies.zoo.recipes import GAMMA_INITS

ROOT = Path(__file__).resolve().parents[1]


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


@pytest.mark.parametrize("a", FIRST_GAMMAS)
@pytest.mark.parametrize("b", FIRST_GAMMAS)
def test_the_predicted_cosine_is_that_of_many_drawn_channels(a: str, b: str) -> None:
    generator = np.random.default_rng(0)
    one, other = draws(a, generator), draws(b, generator)
    found = one @ other / (np.linalg.norm(one) * np.linalg.norm(other))
    assert predicted_cosine(a, b) == pytest.approx(found, abs=0.006)
    assert predicted_cosine(a, b) == predicted_cosine(b, a)


def test_the_moments_on_record_are_those_of_the_draws() -> None:
    for name, first in FIRST_GAMMAS.items():
        values = draws(name, np.random.default_rng(1))
        assert (first.mean, first.std) == pytest.approx((values.mean(), values.std()), abs=0.006)


def test_an_unknown_first_gamma_is_an_error_that_names_the_known() -> None:
    with pytest.raises(ComparisonError, match="no first γ 'zeros'; known are ones, two"):
        predicted_cosine("ones", "zeros")


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


def test_the_table_of_models_has_the_statistics_of_all_rows_of_all_roles() -> None:
    models = zoo_of(["ones", "normal"])
    frame = trained(models, ROLES, LABELS)
    rows = stacked(models["b"], ROLES)
    assert rows.shape == (8, 256)
    assert frame["model"].tolist() == ["A", "B"]
    assert frame["gain"].tolist() == [1.0, 1.0]
    assert frame["first_gamma"].tolist() == ["1", "N(0, 1)"]
    assert frame.loc[1, ["least", "most"]].tolist() == [rows.min(), rows.max()]
    assert frame.loc[1, "std"] == pytest.approx(np.sqrt(np.mean([row.var() for row in rows])))


def test_moved_splits_into_the_shift_and_the_spread() -> None:
    model = trained_model(0, "two", moved=0.0)
    rows = np.full((4, 256), 2.5) + np.tile([0.1, -0.1], 128)
    shifted = {role: replace(model[role], scale=rows.astype(np.float32)) for role in ROLES}
    frame = moved({"a": replace(model, roles=shifted)}, ROLES, LABELS)
    assert frame["shift"].item() == pytest.approx(0.5)
    assert frame["std"].item() == pytest.approx(0.1, rel=1e-5)
    assert frame["moved"].item() == pytest.approx(np.hypot(0.5, 0.1), rel=1e-6)
    assert frame["moved_in_spreads"].item() == pytest.approx(np.hypot(0.5, 0.1) / 0.1, rel=1e-5)
    assert frame["moved_relative"].item() == pytest.approx(np.hypot(0.5, 0.1) / 2, rel=1e-6)


def test_a_gamma_that_was_drawn_has_no_row_since_its_draw_is_not_on_record() -> None:
    frame = moved(zoo_of(["normal", "ones", "near_one", "absolute"]), ROLES, LABELS)
    assert frame["model"].tolist() == ["B"]
    assert moved(zoo_of(["normal"]), ROLES, LABELS).empty


def test_a_stored_model_learnt_and_its_gamma_moved_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    models = {"a": lnsim.load("llama-prose-1"), "b": lnsim.load("gpt2-prose-6")}
    frame = trained(models, ROLES, LABELS).set_index("model")
    assert frame.loc["A", ["architecture", "text", "seed", "steps"]].tolist() == ["Llama", "prose", 1, 360]
    assert frame["loss"].tolist() == pytest.approx([1.769, 2.210], abs=0.1)
    went = moved(models, ROLES, LABELS).set_index("model")
    gamma = np.concatenate([models["a"][role].stored for role in ROLES]).astype(np.float64)
    assert went.loc["A", "moved"] == pytest.approx(np.sqrt(np.mean((gamma - 1) ** 2)), rel=1e-9)
    assert (went["moved"] < 0.2).all()

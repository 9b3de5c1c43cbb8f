"""Tests of the pairs of trained models: who is compared with whom, and every number by another way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_trained import LABELS, ROLES, trained_model, zoo_of

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.initialisation import predicted_cosine, stacked
from lnsim.measure.initialisation_pairs import (
    across_summary,
    by_derivation,
    by_first_gamma,
    by_layer,
    compared,
    pairs_of_one_kind,
)
from lnsim.measure.permutation import permutation_test

ROOT = Path(__file__).resolve().parents[1]
EVERY = ["ones", "ones", "two", "two", "near_one", "near_one", "absolute", "absolute", "normal", "normal"]


def row_cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a * b).sum(axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def test_pairs_keep_to_one_architecture_and_to_alike_or_unlike_beginnings() -> None:
    models = zoo_of(["ones", "ones", "normal"]) | {"d": trained_model(9, "ones", "gpt2")}
    assert pairs_of_one_kind(models, same_gamma=True) == [("a", "b")]
    assert pairs_of_one_kind(models, same_gamma=False) == [("a", "c"), ("b", "c")]


@pytest.mark.parametrize(("gammas", "same", "how"), [(["ones", "two"], True, "alike"), (["two"] * 2, False, "differ")])
def test_to_have_no_such_pair_is_an_error(gammas: list[str], same: bool, how: str) -> None:
    with pytest.raises(ComparisonError, match=f"Comparing 2 models by how γ began: no two .* began {how}"):
        pairs_of_one_kind(zoo_of(gammas), same_gamma=same)


def test_each_value_by_layer_is_what_plain_arithmetic_gives() -> None:
    models = zoo_of(["absolute", "absolute"])
    frame = by_layer(models, [("a", "b")], ROLES, LABELS)
    a, b = (stacked(models[key], ROLES) for key in "ab")
    assert frame[["role", "layer"]].values.tolist() == [[role, layer] for role in ROLES for layer in range(4)]
    assert frame["cosine"].to_numpy() == pytest.approx(row_cosines(a, b), abs=1e-12)
    assert frame["r"].to_numpy() == pytest.approx([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])
    shares = [rows.mean(axis=1) / np.sqrt((rows**2).mean(axis=1)) for rows in (a, b)]
    assert frame["mean_term"].to_numpy() == pytest.approx(shares[0] * shares[1])
    assert (frame["predicted"] == predicted_cosine("absolute", "absolute")).all()


def test_texts_are_called_the_same_or_other() -> None:
    models = {"a": trained_model(0), "b": trained_model(1), "c": trained_model(2, text="code")}
    frame = by_layer(models, [("a", "b"), ("a", "c")], ROLES, LABELS)
    assert frame.groupby("pair")["texts"].unique().map(list).to_dict() == {"A × B": ["same"], "A × C": ["other"]}


def test_the_test_of_a_pair_is_that_of_all_its_rows_under_one_permutation() -> None:
    models = zoo_of(["ones", "ones", "ones"])
    frame = compared(models, [("a", "b"), ("a", "c")], ROLES, LABELS, 199, seed=4)
    null = permutation_test(stacked(models["a"], ROLES), stacked(models["c"], ROLES), 199, seed=4)
    row = frame.set_index("pair").loc["A × C"]
    assert row["pvalue"] == null.pvalue
    assert row["r"] == pytest.approx(null.statistic)
    assert row["null_low"] == pytest.approx(np.quantile(null.null_distribution, 0.025))
    assert (row["rows"], row["channels"]) == (8, 256)
    assert (frame["p_holm"] >= frame["pvalue"]).all()


def test_strangers_have_the_cosine_of_their_beginning_and_a_child_is_found_beside_them() -> None:
    models = zoo_of(EVERY)
    frame = compared(models, pairs_of_one_kind(models, True), ROLES, LABELS, 199, seed=0)
    assert (frame["cosine"] - frame["predicted"]).abs().max() < 0.05
    assert frame["first_gamma"].tolist() == ["1", "2", "N(1, 0.1)", "|N(0, 1)|", "N(0, 1)"]
    summary = by_first_gamma(frame)
    assert summary["found"].sum() == 0
    assert summary["gap"].tolist() == pytest.approx((frame["cosine"] - frame["mean_term"]).abs().tolist())


def test_a_pair_that_shares_its_pattern_is_counted_as_found() -> None:
    models = {"a": trained_model(0), "b": trained_model(0), "c": trained_model(1)}
    frame = compared(models, [("a", "b"), ("a", "c")], ROLES, LABELS, 199, seed=0)
    assert by_first_gamma(frame)[["pairs", "found"]].values.tolist() == [[2, 1]]


def test_crossed_beginnings_are_summed_up_by_both_the_first_in_the_order_of_tables() -> None:
    models = zoo_of(["normal", "ones", "two"])
    summary = across_summary(by_layer(models, pairs_of_one_kind(models, False), ROLES, LABELS))
    assert summary["first_gamma"].tolist() == ["1 × 2", "1 × N(0, 1)", "2 × N(0, 1)"]
    assert (summary["cosine"] - summary["predicted"]).abs().max() < 0.1
    assert "found" not in summary


def test_parents_and_children_are_summed_up_by_how_the_child_was_made() -> None:
    models = {"a": trained_model(0), "b": trained_model(0, moved=0.08), "c": trained_model(5)}
    frame = by_derivation(models, {("a", "b"): "light", ("a", "c"): "none at all"}, ROLES, LABELS)
    assert frame["derivation"].tolist() == ["light", "none at all"]
    assert frame["r"].tolist() == pytest.approx([1, 0], abs=0.1)
    assert frame["cosine"].min() > 0.99


def test_a_pair_without_both_models_is_left_out_and_none_at_all_is_an_error() -> None:
    models = {"a": trained_model(0), "b": trained_model(1)}
    frame = by_derivation(models, {("a", "b"): "light", ("a", "c"): "heavy"}, ROLES, LABELS)
    assert frame["derivation"].tolist() == ["light"]
    with pytest.raises(ComparisonError, match="Comparing 1 children with parents: no pair has the vectors of both"):
        by_derivation(models, {("a", "c"): "heavy"}, ROLES, LABELS)


def test_two_stored_strangers_have_a_cosine_near_one_and_no_correlation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    models = {"a": lnsim.load("llama-prose-1"), "b": lnsim.load("llama-code-4")}
    found = compared(models, [("a", "b")], ROLES, LABELS, 199, seed=0).iloc[0]
    a, b = (np.concatenate([models[key][role].stored for role in ROLES]).astype(np.float64) for key in "ab")
    assert found["cosine"] == pytest.approx(row_cosines(a, b).mean(), abs=1e-12)
    assert found["cosine"] == pytest.approx(0.9985, abs=0.001)
    assert found["cosine"] == pytest.approx(found["mean_term"], abs=0.001)
    assert abs(found["r"]) < 0.06
    assert found["pvalue"] > 0.05

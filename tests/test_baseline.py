"""Tests of a layer as a baseline, on made vectors and on SmolLM2's real ones."""

from __future__ import annotations

import numpy as np
import pytest

import lnsim
from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError, RoleError
from lnsim.measure import baseline

ROLES = ["pre_attention", "pre_mlp"]


def made(layers: list[int], scale: np.ndarray) -> NormVectors:
    names = tuple(f"model.layers.{layer}.input_layernorm.weight" for layer in layers)
    wide = scale.astype(np.float32)
    role = RoleVectors("pre_attention", np.array(layers), wide, None, wide, None, names, "rmsnorm")
    return NormVectors("made", None, "llama", "rmsnorm", scale.shape[1], {"pre_attention": role})


@pytest.fixture(scope="module")
def smollm2() -> NormVectors:
    return lnsim.load("smollm2-135m-instruct")


@pytest.fixture
def small() -> NormVectors:
    return made([0, 1, 3, 4], np.random.default_rng(0).normal(1.0, 0.3, size=(4, 50)))


def test_the_two_terms_add_up_to_the_cosine(small: NormVectors) -> None:
    terms = baseline.baseline_terms(small, ["pre_attention"], 1)
    assert (terms["mean_term"] + terms["pattern_term"]).to_numpy() == pytest.approx(
        terms["cosine"].to_numpy(), abs=1e-14
    )
    a, b = small["pre_attention"].scale[[1, 2]].astype(float)
    row = terms[terms["layer"] == 3].iloc[0]
    assert row["cosine"] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert row["r"] == pytest.approx(np.corrcoef(a, b)[0, 1])


def test_a_missing_layer_is_a_gap_and_no_shift(small: NormVectors) -> None:
    assert baseline.baseline_terms(small, ["pre_attention"], 0)["layer"].tolist() == [1, 3, 4]
    with pytest.raises(RoleError, match="layer 2 of role 'pre_attention'"):
        baseline.baseline_terms(small, ["pre_attention"], 2)


def test_the_bound_is_reached_by_a_vector_of_the_same_pattern() -> None:
    pattern = np.random.default_rng(1).normal(size=50)
    vectors = made([0, 1, 2], np.stack([pattern + 0.1, pattern + 2.0, pattern + 5.0]))
    terms = baseline.baseline_terms(vectors, ["pre_attention"], 0)
    assert terms["bound"].to_numpy() == pytest.approx(terms["cosine"].to_numpy(), abs=1e-6)


def test_each_layer_is_compared_with_all_others(small: NormVectors) -> None:
    each = baseline.each_layer(small, ["pre_attention"], 3)
    rows = small["pre_attention"].scale.astype(float)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert each["cosine_mean"].iloc[0] == pytest.approx(np.mean(unit[1:] @ unit[0]))
    assert each["is_baseline"].tolist() == [False, False, True, False]


def test_a_layer_without_mean_stands_apart_and_an_ordinary_one_does_not() -> None:
    generator = np.random.default_rng(2)
    scale = generator.normal(1.0, 0.1, size=(6, 200))
    scale[0] = generator.normal(0.0, 0.1, size=200)
    vectors = made(list(range(6)), scale)
    assert baseline.stands_apart(baseline.each_layer(vectors, ["pre_attention"], 0))["apart"].tolist() == [True]
    assert baseline.stands_apart(baseline.each_layer(vectors, ["pre_attention"], 1))["apart"].tolist() == [False]


def test_two_odd_layers_do_not_hide_each_other() -> None:
    generator = np.random.default_rng(3)
    scale = generator.normal(1.0, 0.1, size=(12, 200))
    scale[0], scale[1] = generator.normal(0.05, 0.1, size=200), generator.normal(0.2, 0.3, size=200)
    each = baseline.each_layer(made(list(range(12)), scale), ["pre_attention"], 0)
    assert baseline.stands_apart(each)["apart"].tolist() == [True]


def test_layers_are_sampled_from_the_first_to_the_last() -> None:
    assert baseline.sample_layers([*range(30), *range(30)], 0) == [0, 1, 10, 20, 29]
    assert baseline.sample_layers([0, 1, 2], 0, n=8) == [0, 1, 2]
    assert baseline.sample_layers([0], 0) == [0]


def test_two_layers_are_too_few_for_a_baseline() -> None:
    vectors = made([0, 1], np.random.default_rng(0).normal(size=(2, 8)))
    with pytest.raises(ComparisonError, match="has only 2 layers; at least 3 are needed"):
        baseline.baseline_terms(vectors, ["pre_attention"], 0)


def test_columns_stand_side_by_side_by_role(smollm2: NormVectors) -> None:
    wide = baseline.beside_by_role(baseline.baseline_terms(smollm2, ROLES, 0), ["cosine", "r"], [1, 29, 99])
    assert wide.index.tolist() == [1, 29]
    assert wide.columns.tolist() == [(role, column) for role in ROLES for column in ("cosine", "r")]


def test_smollm2s_layer_0_has_no_mean_before_attention(smollm2: NormVectors) -> None:
    terms = baseline.baseline_terms(smollm2, ROLES, 0).groupby("role")["cosine"].agg(["min", "max"]).round(3)
    assert terms.loc["pre_attention"].tolist() == [0.008, 0.035]
    assert terms.loc["pre_mlp"].tolist() == [0.902, 0.978]
    summary = baseline.role_summary(smollm2, ROLES, 0)
    assert summary["mean_over_rms_baseline"].round(3).tolist() == [0.027, 0.970]
    assert summary["tensors"].tolist() == ["*.input_layernorm.weight", "*.post_attention_layernorm.weight"]


def test_smollm2s_shuffles_give_the_measured_null(smollm2: NormVectors) -> None:
    bands, summary = baseline.shuffled(smollm2, ROLES, 0, 999, 0)
    assert summary["r_mean"].round(3).tolist() == [-0.004, 0.065]
    assert summary["inside_band"].iloc[0] == 29
    assert summary["p_r_mean"].iloc[0] > 0.5
    assert summary["p_r_largest"].iloc[1] == pytest.approx(0.001)
    assert (bands["null_low"] < bands["mean_term"]).all()
    assert (bands["mean_term"] < bands["null_high"]).all()


def test_every_model_that_has_the_layer_is_compared_in_every_role_it_has() -> None:
    models = {
        name: lnsim.load(name) for name in ("smollm2-135m-instruct", "paraphrase-minilm-l3-v2", "whisper-tiny.en")
    }
    labels = {"smollm2-135m-instruct": "S", "paraphrase-minilm-l3-v2": "L3", "whisper-tiny.en": "W"}
    every = baseline.every_model(models, labels, 0)
    assert set(every["model"]) == {"S", "L3", "W"}
    assert "encoder/pre_mlp" in set(every["role"])
    one = every[(every["model"] == "S") & (every["role"] == "pre_mlp")]
    alone = baseline.baseline_terms(models["smollm2-135m-instruct"], ["pre_mlp"], 0)
    assert one["cosine"].tolist() == alone["cosine"].tolist()
    assert one["layer"].tolist() == list(range(1, 30))
    over = baseline.over_layers(every, [1, 2, 29]).set_index("role", append=True)
    assert over.loc[("S", "pre_mlp"), "cosine_listed"] == one.set_index("layer").cosine[[1, 2, 29]].mean()
    assert over.loc[("L3", "post_mlp"), "layers"] == 2


def test_a_baseline_layer_that_no_model_has_is_an_error() -> None:
    with pytest.raises(ComparisonError, match="layer 77 with the others: no model has it"):
        baseline.every_model({"x": lnsim.load("paraphrase-minilm-l3-v2")}, {"x": "X"}, 77)

"""Tests of metrics side by side, on real vectors whose relations are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure import comparison
from lnsim.measure.metrics import pairwise
from lnsim.measure.separation import separation, separation_by_relation
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

STUDY = load_study("small_models")
RELATIONS = {(one.a, one.b): (one.group, one.kind) for one in STUDY.pairs()}
ROLES = ["post_attention", "post_mlp"]


@pytest.fixture(scope="module")
def models() -> dict[str, NormVectors]:
    return dict(study_vectors(STUDY, "auto", ["minilm", "sre", "l3", "e5"]).vectors)


@pytest.fixture(scope="module")
def frame(models: dict[str, NormVectors]) -> pd.DataFrame:
    return comparison.comparisons(models, ROLES, [1, 2, 5], STUDY.labels, RELATIONS)


def row(frame: pd.DataFrame, pair: str, layer_a: int, layer_b: int) -> pd.Series:
    found = frame[(frame.pair == pair) & (frame.layer_a == layer_a) & (frame.layer_b == layer_b)]
    return found[found.role == ROLES[0]].iloc[0]


def test_every_comparison_comes_once(frame: pd.DataFrame) -> None:
    # Per role: within, 3 pairs of layers in three models and 1 in the one with two layers; across, 3 pairs of 9 cells
    # and 3 of 6.
    assert len(frame) == 2 * (3 * 3 + 1 + 3 * 9 + 3 * 6)
    assert not frame.duplicated(["pair", "role", "layer_a", "layer_b"]).any()


def test_kinds_and_groups_follow_from_layers_and_relations(frame: pd.DataFrame) -> None:
    assert (frame[frame.kind == "same layer"].eval("layer_a == layer_b")).all()
    assert (frame[frame.kind != "same layer"].eval("layer_a != layer_b")).all()
    assert set(frame[frame.a == frame.b].kind) == {"within one model"}
    assert set(frame[frame.pair == "MiniLM-L6 × sre-MiniLM"].relation) == {"fine_tune"}
    assert set(frame[frame.pair == "MiniLM-L3 × e5"].group) == {"independent"}


def test_a_layer_that_a_model_lacks_is_left_out_and_shifts_nothing(
    frame: pd.DataFrame, models: dict[str, NormVectors]
) -> None:
    own = frame[(frame.b == "MiniLM-L3") & (frame.a != frame.b)]
    assert set(own.layer_b) == {1, 2}
    expected = pairwise(models["minilm"][ROLES[0]].scale[[5]], models["l3"][ROLES[0]].scale[[2]], "pearson")[0, 0]
    assert row(frame, "MiniLM-L6 × MiniLM-L3", 5, 2).pearson == pytest.approx(expected)
    there = comparison.coverage(models, ROLES, [1, 2, 5], STUDY.labels)
    assert there.loc["MiniLM-L3", ["layers", "lacks"]].tolist() == ["1, 2", "5"]


def test_the_published_measures_are_what_their_formulas_say(
    frame: pd.DataFrame, models: dict[str, NormVectors]
) -> None:
    a, b = (models[key][ROLES[0]].scale[1].astype(np.float64) for key in ("minilm", "e5"))
    found = row(frame, "MiniLM-L6 × e5", 1, 1)
    length = np.linalg.norm(a - b)
    assert found.rel_l2 == pytest.approx(length / np.linalg.norm(a))
    assert found.rel_l2_b == pytest.approx(length / np.linalg.norm(b))
    assert found.rel_l2_symmetric == pytest.approx(2 * length / (np.linalg.norm(a) + np.linalg.norm(b)))
    assert found.norm_ratio == pytest.approx(max(np.linalg.norm(a) / np.linalg.norm(b), found.rel_l2 / found.rel_l2_b))
    assert found.p99_diff == pytest.approx(abs(np.quantile(abs(a), 0.99) - np.quantile(abs(b), 0.99)))
    assert found.p99_abs_diff == pytest.approx(np.quantile(abs(a - b), 0.99))
    assert found.mean_abs_diff_relative == pytest.approx(2 * abs(a - b).mean() / (abs(a).mean() + abs(b).mean()))
    cvs = a.std() / a.mean(), b.std() / b.mean()
    assert found.cv_ratio == pytest.approx(max(cvs) / min(cvs))


def test_the_cosine_of_strangers_is_what_their_means_give(frame: pd.DataFrame) -> None:
    strangers = frame[frame.group == "independent"]
    assert (strangers.cosine - strangers.mean_term).abs().max() < 0.0013
    assert strangers.cosine.min() > 0.96
    assert strangers.pearson.abs().max() < 0.08


def test_a_fine_tune_is_parted_by_every_measure_and_cut_layers_by_none_at_equal_numbers(frame: pd.DataFrame) -> None:
    same = frame[frame.kind == "same layer"]
    by_kind = separation_by_relation(same)
    assert (by_kind["fine_tune"] == 1).all()
    assert (by_kind["common_ancestor"] < 1).all()


def test_the_share_in_order_counts_ties_half_and_knows_which_way_is_alike() -> None:
    frame = pd.DataFrame(
        {
            "group": ["related", "related", "independent", "disputed"],
            "relation": ["x", "y", "independent", "disputed"],
            "cosine": [0.9, 0.5, 0.5, 0.99],
            "l2": [1.0, 4.0, 2.0, 9.0],
            "cv_diff": [0.1, np.nan, 0.2, 0.0],
        }
    )
    found = separation(frame, ["cosine", "l2", "cv_diff"])
    assert found.in_order.tolist() == [0.75, 0.5, 1.0]
    assert found.related.tolist() == [2, 2, 1]
    assert separation_by_relation(frame, ["l2"]).loc["l2"].tolist() == [1.0, 0.0]


def test_without_strangers_nothing_is_judged(frame: pd.DataFrame) -> None:
    assert separation(frame[frame.group == "related"]).in_order.isna().all()


def test_layer_zero_of_the_rmsnorm_decoder_is_alone_in_one_role_only() -> None:
    smollm2 = dict(study_vectors(STUDY, "auto", ["smollm2"]).vectors)
    zero = comparison.layer_zero(smollm2, range(1, 30), STUDY.labels)
    attention, mlp = (zero[zero.role == role] for role in ("pre_attention", "pre_mlp"))
    assert (attention.cosine.min().round(3), attention.cosine.max().round(3)) == (0.008, 0.035)
    assert (mlp.cosine.min().round(3), mlp.cosine.max().round(3)) == (0.902, 0.978)
    assert attention.cv_diff.isna().all()
    assert mlp.cv_diff.notna().all()
    assert comparison.layer_zero_ranges(zero).n.tolist() == [29, 29]


def test_models_of_different_hidden_size_are_refused() -> None:
    both = dict(study_vectors(STUDY, "auto", ["whisper", "smollm2"]).vectors)
    with pytest.raises(ComparisonError, match="hidden sizes 384 and 576 differ"):
        comparison.comparisons(both, ["pre_mlp"], [1, 2], STUDY.labels, RELATIONS)


def test_layers_that_no_model_has_are_refused(models: dict[str, NormVectors]) -> None:
    with pytest.raises(ComparisonError, match=r"Comparing layers \[40\]: none of the models has two of them"):
        comparison.comparisons(models, ROLES, [40], STUDY.labels, RELATIONS)

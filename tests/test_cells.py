"""The three frames, plain where something is missing; their numbers are on record (`test_recorded_tables.py`)."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from made_vectors import drawn, made

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.cells import cells, statistics, tests
from lnsim.study.catalog import load_study


@functools.cache
def models() -> dict[str, lnsim.NormVectors]:
    return {model.key: lnsim.load(model.stored) for model in load_study("small_models").models}


def test_statistics_are_those_of_each_vector() -> None:
    frame = statistics(models(), ["pre_attention"])
    assert set(frame.model) == {"smollm2", "whisper"}
    row = frame[(frame.model == "smollm2") & (frame.layer == 3)].iloc[0]
    gamma = models()["smollm2"]["pre_attention"][3].astype(float)
    assert row["name"] == "model.layers.3.input_layernorm.weight"
    expected = [gamma.mean(), gamma.std(), np.linalg.norm(gamma), gamma.min(), gamma.max(), (gamma < 0).mean()]
    found = row[["mean", "std", "norm", "min", "max", "negative"]].to_numpy(float)
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert row["share"] == pytest.approx(gamma.mean() / np.sqrt((gamma**2).mean()), rel=1e-14)


def test_a_gap_is_no_shift_and_the_offset_is_of_layer_numbers() -> None:
    both = {"a": drawn(1, [0, 2, 5]), "b": drawn(2, [1, 2])}
    frame = cells(both, [("a", "b")], ["pre_mlp"], metrics=["cosine", "rel_l2"])
    assert frame[["layer_a", "layer_b", "offset"]].to_numpy().tolist() == [
        [0, 1, 1], [0, 2, 2], [2, 1, -1], [2, 2, 0], [5, 1, -4], [5, 2, -3]
    ]  # fmt: skip
    expected = lnsim.pairwise(both["a"]["pre_mlp"].scale, both["b"]["pre_mlp"].scale, "rel_l2")
    assert frame.rel_l2.tolist() == expected.ravel().tolist()


def test_a_pair_without_the_role_or_of_another_width_has_no_rows_and_a_reason_in_tests() -> None:
    every = {"a": drawn(1), "b": drawn(2), "wide": drawn(3, size=32), "other": drawn(4, role="post_mlp")}
    pairs = [("a", "b"), ("a", "wide"), ("a", "other")]
    assert set(cells(every, pairs, ["pre_mlp"]).b) == {"b"}
    found = tests(every, pairs, ["pre_mlp"], n_permutations=9)
    assert found.obstacle.tolist() == [
        "", "their hidden sizes are 64 and 32, and no channel of one is a channel of the other",
        "other has no norm of the role pre_mlp",
    ]  # fmt: skip
    assert found.pvalue.isna().tolist() == [False, True, True]
    lacking = {"a": drawn(1), "wide": drawn(3, size=32, role="post_mlp")}
    assert tests(lacking, [("a", "wide")], ["pre_mlp"], 9).obstacle.item().startswith("their hidden sizes are 64 and")
    with pytest.raises(ComparisonError, match="no pair has norms of pre_mlp of one width"):
        cells(every, pairs[1:], ["pre_mlp"])
    with pytest.raises(ComparisonError, match="There is no metric 'cosin'; the known ones are cosine, pearson"):
        cells(every, pairs, ["pre_mlp"], metrics=["cosin"])


def test_two_roles_are_set_against_each_other_and_named_so() -> None:
    both = {"a": drawn(1), "b": drawn(2, role="post_mlp")}
    assert set(cells(both, [("a", "b")], [("pre_mlp", "post_mlp")]).role) == {"pre_mlp × post_mlp"}
    assert tests(both, [("a", "b")], [("pre_mlp", "post_mlp")], n_permutations=9).layers.tolist() == [5]
    assert tests(both, [("a", "a")], [("pre_mlp", "pre_mlp")], n_permutations=9).obstacle.tolist() == [""]


def test_a_constant_layer_and_layers_apart_are_not_tested_and_say_why() -> None:
    flat = made(np.ones((2, 8)))
    found = tests({"a": flat, "b": flat, "c": drawn(1, [7], size=8)}, [("a", "b"), ("a", "c")], ["pre_mlp"], 9)
    assert found.obstacle.tolist() == [
        "γ of a is the same in every channel of layer 0, so it has no pattern", "no layer number in common",
    ]  # fmt: skip


def test_holm_is_over_all_rows_of_the_frame_that_are_tested() -> None:
    found = tests({"a": drawn(1), "b": drawn(2), "c": drawn(1)}, [("a", "b"), ("a", "c"), ("b", "c")], ["pre_mlp"], 99)
    assert found.p_holm.min() == pytest.approx(3 * found.pvalue.min())
    assert (found.p_holm >= found.pvalue).all()


def test_layers_that_are_asked_for_stand_alone_and_one_that_is_not_there_is_left_out() -> None:
    both = {"a": drawn(1, [0, 2, 5]), "b": drawn(2, [1, 2])}
    frame = cells(both, [("a", "b"), ("a", "a")], ["pre_mlp"], layers=[2, 5, 9])
    assert frame[["a", "b", "layer_a", "layer_b"]].to_numpy().tolist() == [
        ["a", "b", 2, 2], ["a", "b", 5, 2], ["a", "a", 2, 2], ["a", "a", 2, 5], ["a", "a", 5, 2], ["a", "a", 5, 5],
    ]  # fmt: skip
    whole = cells(both, [("a", "b")], ["pre_mlp"])
    same = whole[(whole.layer_a == 2) & (whole.layer_b == 2)].cosine.iloc[0]
    assert frame.cosine.iloc[0] == pytest.approx(same, abs=1e-14)
    with pytest.raises(ComparisonError, match="no pair has norms of pre_mlp"):
        cells(both, [("a", "b")], ["pre_mlp"], layers=[7])


def test_the_numbers_of_a_test_are_those_of_the_permutation_test_and_no_pair_is_an_error() -> None:
    both = {"a": drawn(1, range(2, 7)), "b": drawn(2, range(4, 9))}
    row = tests(both, [("a", "b")], ["pre_mlp"], 199).iloc[0]
    matched = both["a"]["pre_mlp"].scale[2:], both["b"]["pre_mlp"].scale[:3]
    by_r, by_ranks = (lnsim.permutation_test(*matched, 199, 0, correlation=kind) for kind in ("pearson", "spearman"))
    assert (row.layers, row.channels, row.r) == (3, 64, by_r.statistic)
    assert (row.pvalue, row.p_ranks, row.rank_r) == (by_r.pvalue, by_ranks.pvalue, by_ranks.statistic)
    assert (row.null_low, row.null_high) == tuple(np.quantile(by_r.null_distribution, [0.025, 0.975]))
    with pytest.raises(ComparisonError, match="none was given, or none has the vectors of both its models"):
        tests(both, [], ["pre_mlp"])

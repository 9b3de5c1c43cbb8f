"""Projection matrices of several models: the null of uncorrelated ones, a positive control, and published numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_streams import Whole

from lnsim.errors import ComparisonError
from lnsim.measure import projections
from lnsim.measure.streams import ROWS

Matrices = dict[str, dict[tuple[str, int], Whole]]


def strangers(seed: int = 0, scales: tuple[float, ...] = (1.0, 2.0, 0.5)) -> Matrices:
    generator = np.random.default_rng(seed)
    return {
        name: {("k_proj", layer): Whole(generator.normal(0, scale, (4 * ROWS, 32))) for layer in (0, 1)}
        for name, scale in zip("abc", scales, strict=True)
    }


def test_strangers_follow_the_null_and_the_ratio_of_lengths() -> None:
    frame = projections.layer_pairs(strangers(), 199, 0)
    assert len(frame) == 6
    assert frame["z"].abs().max() < 4
    assert (frame["rel_l2"] - frame["expected_rel_l2"]).abs().max() < 0.05
    assert frame["null_std_rows"].to_numpy() == pytest.approx(frame["null_std"].to_numpy(), rel=0.25)
    assert (frame["p_holm"] >= frame["p_cosine"]).all()
    assert frame["p_cosine"].min() >= 1 / 200


def test_a_related_pair_stands_out_while_the_others_stay() -> None:
    models = strangers()
    noise = np.random.default_rng(5).normal(0, 0.1, (4 * ROWS, 32))
    models["c"] = {place: Whole(models["a"][place].values + noise) for place in models["a"]}
    frame = projections.layer_pairs(models, 199, 0).set_index("pair")
    assert frame.loc["a × c", "cosine"].min() > 0.99
    assert frame.loc["a × c", "p_cosine"].max() == pytest.approx(1 / 200)
    assert frame.loc["a × b", "z"].abs().max() < 4


def test_the_same_seed_gives_the_same_table_and_another_one_another_null() -> None:
    one, again, other = (projections.layer_pairs(strangers(), 19, seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(one, again)
    assert not np.allclose(one["null_std_rows"], other["null_std_rows"])
    assert np.allclose(one["cosine"], other["cosine"])


def test_a_matrix_that_only_one_model_has_is_left_out_and_none_in_common_is_an_error() -> None:
    models = strangers()
    del models["a"]["k_proj", 1]
    frame = projections.layer_pairs(models, 9, 0)
    assert frame[frame["layer"] == 1]["pair"].tolist() == ["b × c"]
    with pytest.raises(ComparisonError, match="a, b share no kind and layer"):
        projections.layer_pairs({"a": {("k_proj", 0): models["a"]["k_proj", 0]}, "b": {}}, 9, 0)


def test_shuffles_stay_within_their_blocks_and_hold_every_row() -> None:
    blocks = list(projections.row_shuffles(ROWS + 7, 5, 0))
    assert [block.shape for block in blocks] == [(5, ROWS), (5, 7)]
    for block in blocks:
        assert (np.sort(block, axis=1) == np.arange(block.shape[1])).all()


def test_a_matrix_with_its_halves_swapped_looks_like_a_stranger_to_itself() -> None:
    frame = projections.halves_swapped(strangers(), 0)
    assert frame["cosine"].abs().max() < 4 / np.sqrt(4 * ROWS * 32)
    assert frame["rel_l2"].to_numpy() == pytest.approx(np.sqrt(2), rel=0.03)
    with pytest.raises(ComparisonError, match="Swapping rows of layer 9"):
        projections.halves_swapped(strangers(), 9)


def test_every_pair_of_matrices_is_in_one_group() -> None:
    frame = projections.all_pairs(strangers())
    counts = frame["group"].value_counts().to_dict()
    assert counts == {"one model, two layers": 3, "same layer, two models": 6, "other layer, two models": 6}
    summary = projections.group_summary(frame)
    assert summary["pairs"].sum() == 15
    same = frame[frame["group"] == "same layer, two models"]
    assert summary.loc["same layer, two models", "z_std"] == pytest.approx(same["z"].std(ddof=0))

"""Tests of what of two models can be compared, and of the words for what cannot."""

from __future__ import annotations

import numpy as np
import pytest
from made_vectors import LABELS, drawn, made

from lnsim.measure.comparable import layer_text, matched_layers, obstacle, obstacle_to_test, obstacles_in_words

MODELS = {"a": drawn(0), "b": drawn(1), "c": drawn(2, size=32), "d": drawn(3, role="post_mlp")}
PAIRS = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "d")]


def test_different_hidden_sizes_and_absent_roles_are_named_with_the_pairs() -> None:
    words = obstacles_in_words(MODELS, PAIRS, ["pre_mlp"], LABELS)
    assert words == (
        "Not compared, since their hidden sizes are 64 and 32, and no channel of one is a channel of the other: A × C. "
        "Not compared, since D has no norm of the role pre_mlp: A × D, B × D."
    )
    words = obstacles_in_words(MODELS, [("a", "b")], ["pre_mlp", "pre_attention"], LABELS)  # neither has the second
    assert words == "Every pair of these models can be compared."


def test_norms_of_two_roles_are_compared_where_each_model_has_its_own() -> None:
    assert obstacle(MODELS, "a", "d", ("pre_mlp", "post_mlp")) == ""
    assert obstacle(MODELS, "a", "d", ("post_mlp", "post_mlp")) == "a has no norm of the role post_mlp"


def test_layers_that_do_not_match_and_a_constant_one_cannot_be_tested() -> None:
    flat = np.ones((1, 64))
    models = {"a": drawn(0, [0, 1]), "b": drawn(1, [2, 3]), "flat": made(flat, [1])}
    roles = ("pre_mlp", "pre_mlp")
    assert obstacle_to_test(models, "a", "b", roles) == "no layer number in common"
    assert obstacle_to_test(models, "a", "a", roles) == ""
    found = obstacle_to_test(models, "a", "flat", roles)
    assert found == "γ of flat is the same in every channel of layer 1, so it has no pattern"


def test_layers_are_matched_by_number_and_none_shifts() -> None:
    found = matched_layers(drawn(0, [0, 2, 5])["pre_mlp"], drawn(1, [2, 3, 5, 6])["pre_mlp"])
    assert [part.tolist() for part in found] == [[2, 5], [1, 2], [0, 2]]


@pytest.mark.parametrize(
    ("layers", "text"), [([3], "layer 3"), ([0, 1, 2, 7], "layers 0 to 2, 7"), ([1, 4], "layers 1, 4")]
)
def test_layer_numbers_in_words(layers: list[int], text: str) -> None:
    assert layer_text(layers) == text

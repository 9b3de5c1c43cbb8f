"""Tests of what of two models can be compared, and of the words for what cannot."""

from __future__ import annotations

from made_vectors import LABELS, drawn

from lnsim.measure.comparable import layer_text, matched_layers, obstacle
from studies.controls.obstacles import obstacles_in_words

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
    assert obstacle(MODELS, "a", "d", ("post_mlp", "post_mlp")) == "a has no norm of the role post_mlp"
    assert layer_text([3]) == "layer 3"


def test_layers_are_matched_by_number_and_none_shifts() -> None:
    found = matched_layers(drawn(0, [0, 2, 5])["pre_mlp"], drawn(1, [2, 3, 5, 6])["pre_mlp"])
    assert [part.tolist() for part in found] == [[2, 5], [1, 2], [0, 2]]

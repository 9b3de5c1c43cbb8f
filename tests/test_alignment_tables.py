"""Tests of the tables of alignments: each measure beside both nulls, and the pieces of each pair."""

from __future__ import annotations

import numpy as np
import pytest
from made_stacks import noisy, stack
from made_vectors import LABELS, made

from lnsim.measure.alignment import margin
from lnsim.measure.alignment_tables import MOST_CHANNEL_ORDERS, nulls_table, pieces_table
from lnsim.measure.stacks import StackPair, stack_pairs

ROWS = stack(8, hidden_size=128)
MODELS = {"a": made(ROWS), "b": made(noisy(ROWS)[1::2]), "c": made(stack(8, seed=4, hidden_size=128))}
GROUPS = {("a", "b"): "related", ("a", "c"): "independent", ("b", "a"): "related"}


def stacks(*pairs: tuple[str, str]) -> list[StackPair]:
    return stack_pairs(pairs, MODELS, ["pre_mlp"], LABELS, GROUPS)


def test_every_measure_has_a_row_with_the_p_of_either_null() -> None:
    found = nulls_table(stacks(("a", "b"), ("a", "c")), 99, 0)
    assert list(found["measure"]) == ["offset", "rate", "margin", "match", "match_mean"] * 2
    assert (found["layer_orders"].unique(), found["channel_orders"].unique()) == ([99], [99])
    assert found.loc[found["measure"] != "match_mean", ["p_layers", "p_channels"]].notna().all(axis=None)
    assert found.loc[found["measure"] == "match_mean", "p_layers"].isna().all()
    related = found[found["group"] == "related"].set_index("measure")
    assert related.loc["match_mean", "p_channels"] == 0.01


def test_a_value_is_that_of_the_pairs_own_matrix() -> None:
    (pair,) = stacks(("a", "c"))
    found = nulls_table([pair], 9, 0).set_index("measure")
    assert found.loc["margin", "value"] == pytest.approx(margin(pair.matrices["r"]))


def test_the_channels_are_permuted_a_limited_number_of_times() -> None:
    found = nulls_table(stacks(("a", "c")), MOST_CHANNEL_ORDERS + 1, 0)
    assert found["channel_orders"].unique() == [MOST_CHANNEL_ORDERS]
    assert found["layer_orders"].unique() == [MOST_CHANNEL_ORDERS + 1]


def test_pieces_are_named_from_the_first_model_to_the_second_whichever_is_the_shorter() -> None:
    found = pieces_table(stacks(("a", "b"), ("b", "a"), ("a", "c")))
    columns = ["shorter", "same", "elsewhere", "without", "layers_first", "layers_second"]
    assert found.loc[0, columns].tolist() == [4, 0, 4, 0, "1, 3, …, 7", "0 to 3"]
    assert found.loc[1, columns].tolist() == [4, 0, 4, 0, "0 to 3", "1, 3, …, 7"]
    assert found.loc[2, columns].tolist() == [8, 0, 0, 8, "none", "none"]
    assert np.isnan(found.loc[2, "r"])

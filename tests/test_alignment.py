"""Tests of alignments: copies, shifted, pruned and depth-expanded stacks are recovered, strangers are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_stacks import matrix, noisy, stack

from lnsim.errors import ComparisonError
from lnsim.measure import alignment


def test_a_fine_tune_aligns_layer_by_layer() -> None:
    found = matrix(stack(12), noisy(stack(12)))
    assert alignment.best_offset(found) == 0
    assert alignment.alignment_rate(found) == 1.0
    assert alignment.margin(found) > 0.05
    assert (alignment.best_match(found).eval("layer_a == layer_b")).all()
    assert alignment.layer_null(found, 999, 0).pvalue == 0.001


def test_a_stack_that_lost_its_first_layers_is_found_at_its_offset() -> None:
    found = matrix(stack(16), noisy(stack(16)[4:]))
    assert alignment.best_offset(found) == -4
    assert alignment.alignment_rate(found, -4) == 1.0
    assert alignment.alignment_rate(found) < 0.1
    assert alignment.margin(found) < 0 < alignment.margin(found, -4)


def test_a_pruned_stack_is_recovered_by_the_one_to_one_match() -> None:
    found = matrix(stack(12), noisy(stack(12)[1::2]))
    match = alignment.best_match(found).sort_values("layer_b")
    assert match["layer_a"].tolist() == [1, 3, 5, 7, 9, 11]
    assert match["value"].min() > 0.98


def test_a_depth_expanded_stack_is_recovered_layer_by_layer() -> None:
    origin = [*range(8), *range(4, 12)]
    found = matrix(stack(12), noisy(stack(12)[origin]))
    assert alignment.nearest(found)["layer_a"].tolist() == origin
    assert alignment.alignment_rate(found) < 1.0


def test_strangers_align_nowhere_though_something_is_always_the_largest() -> None:
    found = matrix(stack(12), stack(12, seed=1))
    assert alignment.alignment_rate(found) < 0.5
    assert alignment.margin(found) < 0
    assert len(alignment.best_match(found)) == 12
    assert alignment.by_offset(found)["mean"].max() < 0.3


def test_layers_match_by_number_and_a_gap_shifts_nothing() -> None:
    kept = [0, 1, 2, 4, 5]
    found = matrix(stack(6), noisy(stack(6)[kept]), kept)
    assert alignment.best_offset(found) == 0
    assert alignment.alignment_rate(found) == 1.0
    assert alignment.diagonal_statistics(found).loc["matched", "n"] == 5


def test_cells_of_one_offset_are_averaged_and_short_ones_left_out() -> None:
    values = pd.DataFrame(np.arange(12.0).reshape(3, 4))
    means = alignment.by_offset(values, min_share=0.5)
    assert means.loc[0].tolist() == [3.0, 5.0]
    assert means.loc[-1].tolist() == [2.0, 6.5]
    assert 3 not in means.index
    assert 3 in alignment.by_offset(values, min_share=0.0).index


def test_the_smallest_shift_wins_where_offsets_are_equal() -> None:
    assert alignment.best_offset(pd.DataFrame(np.ones((6, 6)))) == 0


def test_the_statistics_of_matched_and_unmatched_cells_are_those_of_the_cells() -> None:
    values = pd.DataFrame([[1.0, 2.0], [3.0, 6.0]])
    found = alignment.diagonal_statistics(values)
    assert found.loc["matched", ["n", "mean", "std", "min", "max"]].tolist() == [2, 3.5, 2.5, 1, 6]
    assert found.loc["unmatched", ["n", "mean", "std", "median"]].tolist() == [2, 2.5, 0.5, 2.5]


def test_layers_that_are_all_alike_have_no_order_to_find() -> None:
    assert alignment.layer_null(pd.DataFrame(np.full((5, 5), 0.9)), 99, 0).pvalue == 1.0


def test_the_layer_null_holds_the_means_of_permuted_columns() -> None:
    values = pd.DataFrame([[1.0, 0.0], [0.5, 2.0]])
    null = alignment.layer_null(values, 200, 0).null_distribution
    assert set(null) == {1.5, 0.25}


def test_an_undefined_cell_is_refused_with_the_reason() -> None:
    with pytest.raises(ComparisonError, match=r"found 1 undefined of 4\. A constant vector has no r"):
        alignment.best_match(pd.DataFrame([[1.0, np.nan], [0.0, 1.0]]))


def test_stacks_without_a_common_layer_are_refused() -> None:
    apart = pd.DataFrame([[0.5]], index=[0], columns=[7])
    with pytest.raises(ComparisonError, match="at offset 0: no layer has a partner"):
        alignment.alignment_rate(apart)
    with pytest.raises(ComparisonError, match="there is no matched one"):
        alignment.diagonal_statistics(apart)


def test_one_layer_has_no_margin_and_no_order() -> None:
    single = pd.DataFrame([[0.5]])
    with pytest.raises(ComparisonError, match="b has one layer, expected at least 2"):
        alignment.margin(single)
    with pytest.raises(ComparisonError, match="one layer matches, expected at least 2"):
        alignment.layer_null(single, 9, 0)

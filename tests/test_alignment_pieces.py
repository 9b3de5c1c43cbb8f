"""Tests of alignments in pieces: what was expanded, pruned or shifted comes out as it was made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_stacks import matrix, noisy, stack

from lnsim.errors import ComparisonError
from lnsim.measure.alignment_pieces import Piece, fewest_pieces, partner_counts, pieces

YI = [*range(28), *range(12, 28), *range(28, 32)]
"""Of which layers of 32 a stack of 48 is made when its middle is repeated."""


def spans(found: tuple[Piece, ...]) -> list[tuple[int, int, int, int, int]]:
    return [(one.first_b, one.last_b, one.first_a, one.last_a, one.step) for one in found]


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
def test_a_depth_expanded_stack_is_two_pieces_that_overlap_in_the_origin(noise: float) -> None:
    found = pieces(matrix(stack(32, hidden_size=1024), noisy(stack(32, hidden_size=1024)[YI], noise)))
    assert [(one.first_b, one.last_b) for one in found] == [(0, 27), (28, 47)]
    assert [one.offset for one in found] == [0, 16]
    assert (found[1].of_a, found[1].of_b) == ("12 to 31", "28 to 47")


def test_a_pruned_stack_is_one_piece_of_step_two() -> None:
    found = pieces(matrix(stack(12), noisy(stack(12)[1::2])))
    assert spans(found) == [(0, 5, 1, 11, 2)]
    assert (found[0].of_a, found[0].of_b) == ("1, 3, …, 11", "0 to 5")


def test_a_shifted_stack_is_one_piece_at_its_offset() -> None:
    (found,) = pieces(matrix(stack(16), noisy(stack(16)[4:])))
    assert spans((found,)) == [(0, 11, 4, 15, 1)]
    assert found.offset == -4


def test_a_fine_tune_is_one_piece_at_equal_numbers_and_strangers_are_none() -> None:
    assert spans(pieces(matrix(stack(9), noisy(stack(9))))) == [(0, 8, 0, 8, 1)]
    assert pieces(matrix(stack(9), stack(9, seed=1))) == ()


def test_the_direction_with_fewer_pieces_is_taken() -> None:
    pruned, whole = noisy(stack(12)[1::2]), stack(12)
    assert fewest_pieces(matrix(whole, pruned))[1] is False
    found, other_way = fewest_pieces(matrix(pruned, whole))
    assert (spans(found), other_way) == ([(0, 5, 1, 11, 2)], True)


def test_a_layer_without_a_partner_parts_two_pieces() -> None:
    b = noisy(stack(7))
    b[3] = stack(1, seed=5)[0]
    assert spans(pieces(matrix(stack(7), b))) == [(0, 2, 0, 2, 1), (4, 6, 4, 6, 1)]


def test_a_gap_in_the_layer_numbers_is_no_gap_in_a_piece() -> None:
    kept = [0, 1, 2, 5, 6]
    assert spans(pieces(matrix(stack(5), noisy(stack(5)), kept))) == [(0, 6, 0, 4, 1)]


def test_two_layers_some_way_apart_are_no_run() -> None:
    found = pieces(matrix(stack(12), noisy(stack(12)[[2, 5]])))
    assert spans(found) == [(0, 0, 2, 2, 1), (1, 1, 5, 5, 1)]


def test_partners_are_counted_over_the_shorter_stack() -> None:
    shorter = noisy(stack(12)[[0, 1, 4, 6]])
    shorter[3] = stack(1, seed=5)[0]
    expected = {"layers": 4, "same": 2, "elsewhere": 1, "without": 1}
    assert partner_counts(matrix(stack(12), shorter)) == expected
    assert partner_counts(matrix(shorter, stack(12))) == expected


def test_a_repeated_layer_has_its_partner_at_the_same_number() -> None:
    found = partner_counts(matrix(stack(32, hidden_size=1024), noisy(stack(32, hidden_size=1024)[YI])))
    assert found == {"layers": 32, "same": 28, "elsewhere": 4, "without": 0}


def test_an_undefined_value_is_refused() -> None:
    with pytest.raises(ComparisonError, match="found 1 undefined of 4"):
        partner_counts(pd.DataFrame([[1.0, np.nan], [0.0, 1.0]]))


def test_a_piece_goes_forward() -> None:
    with pytest.raises(ComparisonError, match="expected ascending layers"):
        Piece(3, 2, 0, 1, 1, 0.9)

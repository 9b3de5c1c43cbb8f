"""Tests of alignments: copies, shifted, pruned and depth-expanded stacks are recovered, strangers are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from made_vectors import matrix, noisy, stack
from notebook_cells import defined

from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix, margins

YI = [*range(28), *range(12, 28), *range(28, 32)]
"""Of which layers of 32 a stack of 48 is made when its middle is repeated."""


def aligned(a: np.ndarray, b: np.ndarray, layers_b: list[int] | None = None) -> LayerMatrix:
    return LayerMatrix.of(matrix(a, b, layers_b))


def means(found: LayerMatrix, min_share: float = 0.5) -> dict[int, float]:
    return {offset: found.values.ravel()[places].mean() for offset, places in found.offsets(min_share).items()}


def test_a_fine_tune_aligns_layer_by_layer_a_shifted_stack_at_its_offset_and_strangers_nowhere() -> None:
    tuned = aligned(stack(12), noisy(stack(12)))
    assert (tuned.best_offset(), tuned.alignment_rate()) == (0, 1.0)
    assert tuned.margin() > 0.05
    shifted = aligned(stack(16), noisy(stack(16)[4:]))
    assert shifted.best_offset() == -4
    assert shifted.alignment_rate() < 0.1
    assert shifted.margin() < 0
    origin = [*range(8), *range(4, 12)]
    expanded = aligned(stack(12), noisy(stack(12)[origin]))
    assert expanded.values.argmax(axis=0).tolist() == origin
    assert expanded.alignment_rate() < 1.0
    strangers = aligned(stack(12), stack(12, seed=1))  # something is always the largest
    assert strangers.alignment_rate() < 0.5
    assert strangers.margin() < 0
    assert max(means(strangers).values()) < 0.3


def test_layers_match_by_number_and_a_gap_shifts_nothing() -> None:
    kept = [0, 1, 2, 4, 5]
    found = aligned(stack(6), noisy(stack(6)[kept]), kept)
    assert found.best_offset() == 0
    assert found.alignment_rate() == 1.0
    assert len(found.partners(0)[0]) == 5


def test_cells_of_one_offset_are_averaged_and_short_ones_left_out() -> None:
    found = LayerMatrix.of(pd.DataFrame(np.arange(12.0).reshape(3, 4)))
    assert (means(found)[0], len(found.offsets()[0])) == (5.0, 3)
    assert (means(found)[-1], len(found.offsets()[-1])) == (6.5, 2)
    assert 3 not in found.offsets()
    assert 3 in found.offsets(min_share=0.0)
    assert LayerMatrix.of(pd.DataFrame(np.ones((6, 6)))).best_offset() == 0  # the smallest shift where all are equal


def test_a_margin_takes_the_second_largest_where_the_cell_is_the_largest() -> None:
    values, rows, columns = np.array([[3.0, 1.0, 2.0], [5.0, 5.0, 0.0]]), *np.indices((2, 3)).reshape(2, 6, 1)
    found = [float(margins(values, row, column)) for row, column in zip(rows, columns, strict=True)]
    assert found == [1.0, -2.0, -1.0, 0.0, 0.0, -5.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LayerMatrix.of(pd.DataFrame([[1.0, np.nan], [0.0, 1.0]])),
         r"found 1 undefined of 4\. A constant vector has no r"),
        (lambda: LayerMatrix.of(pd.DataFrame([[0.5]], index=[0], columns=[7])).alignment_rate(),
         "at offset 0: no layer has a partner"),
        (lambda: LayerMatrix.of(pd.DataFrame([[0.5]])).margin(), "b has one layer, expected at least 2"),
        (lambda: LayerMatrix(np.eye(3), np.arange(2), np.arange(3)),
         "2 and 3 layers were named, found a matrix of shape"),
    ],
    ids=["an undefined cell", "no common layer", "one layer", "layers that do not fit"],
)  # fmt: skip
def test_what_has_no_alignment_is_refused_with_the_reason(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ComparisonError, match=message):
        call()


def test_partners_are_counted_over_the_shorter_stack() -> None:
    shorter = noisy(stack(12)[[0, 1, 4, 6]])
    shorter[3] = stack(1, seed=5)[0]
    expected = {"layers": 4, "same": 2, "elsewhere": 1, "without": 1}
    assert aligned(stack(12), shorter).partner_counts() == expected
    assert aligned(shorter, stack(12)).partner_counts() == expected
    repeated = aligned(stack(32, hidden_size=1024), noisy(stack(32, hidden_size=1024)[YI])).partner_counts()
    assert repeated == {"layers": 32, "same": 28, "elsewhere": 4, "without": 0}


def mixed(n_layers: int, stranger: int) -> np.ndarray:
    """The same stack but for one layer, which is a stranger's."""
    rows = noisy(stack(n_layers))
    rows[stranger] = stack(1, seed=5)[0]
    return rows


PIECES = {
    "pruned": (matrix(stack(12), noisy(stack(12)[1::2])), [("1, 3, …, 11", "0 to 5")]),
    "fine-tune": (matrix(stack(9), noisy(stack(9))), [("0 to 8", "0 to 8")]),
    "strangers": (matrix(stack(9), stack(9, seed=1)), [("none", "none")]),
    "a layer without a partner": (matrix(stack(7), mixed(7, 3)), [("0 to 2", "0 to 2"), ("4 to 6", "4 to 6")]),
    "a gap in the numbers": (matrix(stack(5), noisy(stack(5)), [0, 1, 2, 5, 6]), [("0 to 4", "0 to 6")]),
}


@pytest.mark.parametrize(("found", "pieces"), PIECES.values(), ids=PIECES)
def test_notebook_06_finds_layers_piece_by_piece(found: pd.DataFrame, pieces: list[tuple[str, str]]) -> None:
    assert [(one["layers_first"], one["layers_second"]) for one in defined("06")["pieces"](found)] == pieces

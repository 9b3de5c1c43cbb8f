"""This module says which layers belong together where no single offset tells it: as pieces, each with its own step.

A stack that was expanded repeats layers of another from its middle on, and a pruned one skips some. Either way the
layers of one stack, taken in order, find partners that run evenly for a while and then jump. A piece is one such run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure import alignment
from lnsim.measure.layer_matrix import PARTNER_FROM, LayerMatrix

__all__ = ["PARTNER_FROM", "Piece", "fewest_pieces", "partner_counts", "pieces"]

_LARGEST_STEP = 4
"""Layers of a that one layer of b may go forward within a piece; a longer way is a jump."""

_FEWEST_WITH_STEP = 3
"""Layers that make a run whose step is not 1: any two are some step apart."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of layers of b whose best partners in a follow one another evenly.

    Args:
        first_b: first layer of b, last_b the last.
        first_a: partner of the first, last_a that of the last.
        step: layers of a from one partner to the next; 1 also where the piece is a single layer.
        r: mean over the piece.
    """

    first_b: int
    last_b: int
    first_a: int
    last_a: int
    step: int
    r: float

    def __post_init__(self) -> None:
        if self.last_b < self.first_b or self.last_a < self.first_a or self.step < 1:
            raise ComparisonError(f"Noting a piece of two stacks: expected ascending layers, found {self}.")

    @property
    def offset(self) -> int:
        """Layer of b minus layer of a where the piece begins; the same all along it where the step is 1."""
        return self.first_b - self.first_a

    @property
    def of_a(self) -> str:
        """Its layers of a as text, for example ``4 to 11`` or ``1, 3, 5``."""
        return _text(self.first_a, self.last_a, self.step)

    @property
    def of_b(self) -> str:
        """Its layers of b as text."""
        return _text(self.first_b, self.last_b, 1)


def pieces(matrix: pd.DataFrame, least: float = PARTNER_FROM) -> tuple[Piece, ...]:
    """The runs of b's layers in a, in the order of b; a layer without a partner belongs to none.

    Args:
        matrix: r by layer, layers of a down and those of b across.
        least: a best partner counts from this r on.

    Related stacks that go together layer by layer give one piece of offset 0, a shifted one gives one of another
    offset, a pruned one a piece of step 2, and an expanded one several pieces that overlap in a. Look at the two
    directions (``matrix.T``): what one stack lacks can only be seen from the other.
    """
    near = alignment.nearest(matrix)
    near = near[near["value"] >= least]
    layers = {int(b): place for place, b in enumerate(matrix.columns)}
    rows = [(int(b), int(a), float(r)) for b, a, r in near[["layer_b", "layer_a", "value"]].itertuples(index=False)]
    found = []
    while rows:
        length = _run(rows, layers)
        run, rows = rows[:length], rows[length:]
        step = run[1][1] - run[0][1] if length > 1 else 1
        found.append(Piece(run[0][0], run[-1][0], run[0][1], run[-1][1], step, sum(row[2] for row in run) / length))
    return tuple(found)


def fewest_pieces(matrix: pd.DataFrame, least: float = PARTNER_FROM) -> tuple[tuple[Piece, ...], bool]:
    """``pieces`` in the direction that takes fewer of them, and whether that is the other one: a's layers in b.

    Where both take as many, or one finds none, b's layers in a.
    """
    here, there = pieces(matrix, least), pieces(matrix.T, least)
    return (there, True) if there and len(there) < len(here) else (here, False)


def partner_counts(matrix: pd.DataFrame, least: float = PARTNER_FROM) -> dict[str, int]:
    """Where the layers of the shorter stack have their best partner; of two equally long ones, those of b.

    Returns:
        ``layers``, and how many of them have it at the same number (``same``), at another one (``elsewhere``), or have
        none (``without``: no r reaches `least`). A partner of the same number counts as the best one where its r is
        less than the largest by 0.01 at most.

    Raises:
        ComparisonError: when a value is undefined.
    """
    values = matrix.to_numpy(dtype=np.float64)
    return LayerMatrix(values, matrix.index.to_numpy(), matrix.columns.to_numpy()).partner_counts(least)


def _text(first: int, last: int, step: int) -> str:
    if first == last:
        return f"{first}"
    if step == 1:
        return f"{first} to {last}"
    middle = ", …" if last > first + 2 * step else ""
    return f"{first}, {first + step}{middle}, {last}"


def _run(rows: Sequence[tuple[int, int, float]], layers: dict[int, int]) -> int:
    """How many rows from the first on make one piece."""
    if len(rows) < 2:
        return 1
    step, length = rows[1][1] - rows[0][1], 1
    while length < len(rows) and 1 <= step <= _LARGEST_STEP:
        before, here = rows[length - 1], rows[length]
        if here[1] - before[1] != step or layers[here[0]] - layers[before[0]] != 1:
            break
        length += 1
    return length if step == 1 or length >= _FEWEST_WITH_STEP else 1

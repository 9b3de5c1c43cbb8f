"""This module sums over pairs of large matrices (k_proj, v_proj, ...), a block of rows at a time.

Only sums are kept: no whole matrix is in memory. Sums of a block are formed in float64 and added without rounding
(``math.fsum``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.errors import ComparisonError

__all__ = ["KEPT", "ROWS", "SWAPPED", "Blocks", "HalvesSwapped", "Place", "joint_blocks", "pair_sums"]

Floats = npt.NDArray[np.float64]
Place = tuple[str, str, int]
"""Model, kind and layer of a matrix."""

ROWS = 64
"""Rows of a block: 64 of 4,096 columns take 2 MB in float64."""

KEPT, SWAPPED = "kept", "halves swapped"
"""The order of the rows of the second matrix of a pair."""


class Blocks(Protocol):
    """A matrix that is read from top to bottom."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def blocks(self, rows: int) -> Iterator[npt.NDArray[Any]]:
        """Blocks of this many rows, the last one maybe shorter, in any real dtype."""


@dataclass(frozen=True, slots=True)
class HalvesSwapped:
    """A matrix with the upper and the lower half of its rows in each other's place, to a whole block of ROWS."""

    matrix: Blocks

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as before."""
        return self.matrix.shape

    def blocks(self, rows: int) -> Iterator[npt.NDArray[Any]]:
        """The lower half first; ComparisonError where the blocks do not all have one size."""
        n_blocks, rest = divmod(self.shape[0], rows)
        if rest or n_blocks < 2:
            raise ComparisonError(
                f"Swapping the halves of a matrix of {self.shape[0]} rows: two or more whole blocks of {rows} rows "
                f"were expected."
            )
        half = n_blocks // 2
        return chain(islice(self.matrix.blocks(rows), half, None), islice(self.matrix.blocks(rows), half))


def joint_blocks(matrices: Sequence[Blocks], rows: int = ROWS) -> Iterator[list[Floats]]:
    """Blocks of several matrices side by side, in float64.

    Raises:
        ComparisonError: when the shapes differ, or a value is not finite.
    """
    shapes = [matrix.shape for matrix in matrices]
    if len(set(shapes)) != 1:
        raise ComparisonError(f"Comparing matrices: all must have one shape, found {', '.join(map(str, shapes))}.")
    for number, blocks in enumerate(zip(*(matrix.blocks(rows) for matrix in matrices), strict=True)):
        wide = [block.astype(np.float64) for block in blocks]
        # A sum of squares shows NaN, infinities and values too large to square, at less cost than a look at each.
        broken = [place for place, block in enumerate(wide) if not np.isfinite(np.vdot(block, block))]
        if broken:
            raise ComparisonError(
                f"Comparing matrices: matrix {broken[0]}, counted from 0, has a value in rows [{number * rows}, "
                f"{number * rows + len(wide[0])}) that is not finite or too large to square."
            )
        yield wide


def pair_sums(matrices: Mapping[Place, Blocks]) -> pd.DataFrame:
    """The sums over every pair of matrices of one kind, and over each matrix and itself with its halves swapped.

    Args:
        matrices: by model, kind and layer; those of a kind have one shape.

    Returns:
        One row a pair: kind, a, layer_a, b, layer_b, order (KEPT or SWAPPED), rows, columns, and the sums over all
        entries ``sum_a``, ``sum_b``, ``sum_aa``, ``sum_bb``, ``sum_ab``, ``sum_dd`` of (a - b)^2, ``sum_gap`` of
        ``|a - b|``. ``sum_rows_mean`` and ``sum_rows_std`` are the mean and standard deviation of ``sum_ab`` when the
        rows of b stand in any order within each block of ROWS, all orders equally likely: of a block with the products
        g of all its rows, sum(g) / rows, and the sum of squares of g, freed of the means of its rows and columns, over
        rows - 1, which is a variance (Hoeffding 1951).

    Raises:
        ComparisonError: as ``joint_blocks``.
    """
    rows: list[dict[str, Any]] = []
    for kind in dict.fromkeys(kind for _, kind, _ in matrices):
        places = [place for place in matrices if place[1] == kind]
        pairs = list(combinations(range(len(places)), 2))
        rows += _rows(places, pairs, joint_blocks([matrices[place] for place in places]), KEPT)
        for place in places:
            both = joint_blocks([matrices[place], HalvesSwapped(matrices[place])])
            rows += _rows([place, place], [(0, 1)], both, SWAPPED)
    return pd.DataFrame(rows)


def _rows(
    places: Sequence[Place], pairs: Sequence[tuple[int, int]], blocks: Iterator[list[Floats]], order: str
) -> Iterator[dict[str, Any]]:
    terms: dict[tuple[int, int], list[dict[str, float]]] = {pair: [] for pair in pairs}
    n_rows = columns = 0
    for block in blocks:
        n_rows, columns = n_rows + len(block[0]), block[0].shape[1]
        for i, j in pairs:
            terms[i, j].append(_terms(block[i], block[j]))
    for (i, j), found in terms.items():
        (a, kind, layer_a), (b, _, layer_b) = places[i], places[j]
        sums = {f"sum_{name}": math.fsum(one[name] for one in found) for name in found[0]}
        sums["sum_rows_std"] = math.sqrt(sums.pop("sum_rows_variance"))
        place = {"kind": kind, "a": a, "layer_a": layer_a, "b": b, "layer_b": layer_b, "order": order}
        yield {**place, "rows": n_rows, "columns": columns, **sums}


def _terms(a: Floats, b: Floats) -> dict[str, float]:
    """What one block of each adds to the sums."""
    g, gap = a @ b.T, np.abs(a - b)
    free = g - g.mean(axis=0) - g.mean(axis=1, keepdims=True) + g.mean()
    found = {"a": a.sum(), "b": b.sum(), "aa": np.vdot(a, a), "bb": np.vdot(b, b), "ab": np.trace(g)}
    found |= {"dd": np.vdot(gap, gap), "gap": gap.sum(), "rows_mean": g.sum() / len(g)}
    found["rows_variance"] = np.vdot(free, free) / max(1, len(g) - 1)  # one row has one order
    return {name: float(value) for name, value in found.items()}

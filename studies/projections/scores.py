"""This module measures large matrices (k_proj, v_proj) against each other, a block of rows at a time.

Only sums, products of one block and the counts of a histogram are kept: no whole matrix is in memory. Block sums are
formed in float64 and added without rounding (``math.fsum``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.metrics import CV_MIN_STANDARD_ERRORS

__all__ = ["ROWS", "Blocks", "HalvesSwapped", "PairSums", "gram", "joint_blocks", "pair_sums", "row_shuffles"]

Floats = npt.NDArray[np.float64]

ROWS = 64
"""Rows of a block: 64 of 4,096 columns take 2 MB in float64."""

_DROPPED_BITS = 14
"""Bits of a float32 that the histogram of differences ignores: its bins are at most 1/512 of their value wide."""

_BINS = 2 ** (31 - _DROPPED_BITS)


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


@dataclass(slots=True)
class PairSums:
    """What is kept of two matrices a and b.

    Args:
        shape: rows and columns of both.
        terms: the block sums of a, b, a², b², ab, (a - b)² and ``|a - b|``, one list each.
        largest: largest ``|a - b|``.
        counts: histogram of ``|a - b|``, on the grid of float32 without its last bits.
        shuffled: sum of the products of a with b, its rows in another order, shape ``(n_permutations,)``.
    """

    shape: tuple[int, int]
    shuffled: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    terms: dict[str, list[float]] = field(default_factory=dict)
    largest: float = 0.0
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, dtype=np.int64), repr=False)

    def add(self, a: Floats, b: Floats, orders: npt.NDArray[np.int64] | None = None) -> None:
        """Take in one block of each, and their products with the rows of b in these orders."""
        gap = np.abs(a - b)
        sums = {"a": a.sum(), "b": b.sum(), "aa": np.vdot(a, a), "bb": np.vdot(b, b), "ab": np.vdot(a, b)}
        for name, value in (sums | {"dd": np.vdot(gap, gap), "gap": gap.sum()}).items():
            self.terms.setdefault(name, []).append(float(value))
        self.largest = max(self.largest, float(gap.max()))
        places = gap.astype(np.float32).view(np.uint32).ravel() >> _DROPPED_BITS
        self.counts += np.bincount(places, minlength=_BINS)
        if orders is not None:
            self.shuffled = self.shuffled + (a @ b.T)[np.arange(len(a)), orders].sum(axis=1)

    def total(self, name: str) -> float:
        """One of the sums over the whole matrix."""
        return math.fsum(self.terms[name])

    @property
    def n(self) -> int:
        """Number of entries of each matrix."""
        return self.shape[0] * self.shape[1]

    def measures(self) -> dict[str, float]:
        """Cosine, r, lengths, differences; NaN where one is undefined.

        ``rel_l2`` divides by the length of a, ``rel_l2_b`` by that of b. ``cv_diff`` needs both means at least
        CV_MIN_STANDARD_ERRORS standard errors from 0, or it would say only how near 0 they happened to fall.
        ``p99_abs_diff`` is within 0.1 % of the 99th percentile.
        """
        aa, bb, ab, dd = (self.total(name) for name in ("aa", "bb", "ab", "dd"))
        norm_a, norm_b, length = math.sqrt(aa), math.sqrt(bb), math.sqrt(dd)
        return {
            "norm_a": norm_a,
            "norm_b": norm_b,
            "cosine": _over(ab, norm_a * norm_b),
            "pearson": self._pearson(),
            "norm_ratio": _over(norm_b, norm_a),
            "rel_l2": _over(length, norm_a),
            "rel_l2_b": _over(length, norm_b),
            "rel_l2_symmetric": _over(2 * length, norm_a + norm_b),
            "mean_abs_diff": self.total("gap") / self.n,
            "p99_abs_diff": self.quantile(0.99),
            "max_abs_diff": self.largest,
            "cv_diff": self._cv_diff(),
        }

    def quantile(self, share: float) -> float:
        """The quantile of ``|a - b|``: the middle of the bin that it falls in."""
        place = int(np.searchsorted(np.cumsum(self.counts), share * self.n))
        edges = np.array([place << _DROPPED_BITS, (place + 1) << _DROPPED_BITS], dtype=np.uint32).view(np.float32)
        return float(edges.astype(np.float64).mean())

    def mean_in_standard_errors(self) -> tuple[float, float]:
        """How far the mean of each matrix lies from 0, in standard errors (std over sqrt(n), ddof 0)."""
        return self._mean_over_error("a"), self._mean_over_error("b")

    def _mean_over_error(self, name: str) -> float:
        mean, spread = self._moments(name)
        return _over(abs(mean) * math.sqrt(self.n), spread)

    def _moments(self, name: str) -> tuple[float, float]:
        mean = self.total(name) / self.n
        return mean, math.sqrt(max(0.0, self.total(2 * name) / self.n - mean**2))

    def _pearson(self) -> float:
        (mean_a, std_a), (mean_b, std_b) = self._moments("a"), self._moments("b")
        return _over(self.total("ab") / self.n - mean_a * mean_b, std_a * std_b)

    def _cv_diff(self) -> float:
        if not all(distance >= CV_MIN_STANDARD_ERRORS for distance in self.mean_in_standard_errors()):
            return math.nan  # NaN, of a matrix without spread, is no distance either
        (mean_a, std_a), (mean_b, std_b) = self._moments("a"), self._moments("b")
        return abs(std_a / abs(mean_a) - std_b / abs(mean_b))


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


def pair_sums(
    matrices: Mapping[str, Blocks], n_permutations: int = 0, seed: int = 0
) -> dict[tuple[str, str], PairSums]:
    """Every pair of some matrices, each read once from top to bottom.

    Args:
        matrices: by name, all of one shape.
        n_permutations: how often the rows of the second of a pair are shuffled, within blocks of ROWS.
        seed: of the shuffles; all pairs get the same ones.

    Raises:
        ComparisonError: for fewer than two matrices, and as ``joint_blocks``.
    """
    if len(matrices) < 2:
        raise ComparisonError(f"Comparing matrices: two were expected, found {', '.join(matrices) or 'none'}.")
    shape = next(iter(matrices.values())).shape
    found = {pair: PairSums(shape, np.zeros(n_permutations)) for pair in combinations(matrices, 2)}
    orders = row_shuffles(shape[0], n_permutations, seed)
    for blocks in joint_blocks(list(matrices.values())):
        block, order = dict(zip(matrices, blocks, strict=True)), next(orders)
        for (a, b), sums in found.items():
            sums.add(block[a], block[b], order if n_permutations else None)
    return found


def row_shuffles(n_rows: int, n_permutations: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Orders of the rows of one block after the other, each of shape ``(n_permutations, rows of the block)``.

    Rows change place within blocks of ROWS rows, so that no more than a block is needed at a time.
    """
    generator = np.random.default_rng(seed)
    for start in range(0, n_rows, ROWS):
        size = min(ROWS, n_rows - start)
        yield generator.permuted(np.tile(np.arange(size), (n_permutations, 1)), axis=1)


def gram(matrices: Sequence[Blocks]) -> tuple[Floats, Floats]:
    """Cosine and Pearson r of every matrix with every other.

    Returns:
        Two arrays of shape ``(n_matrices, n_matrices)``; n blocks are in memory at a time. NaN where a matrix is all
        zeros (cosine) or constant (r).
    """
    products = np.zeros((len(matrices), len(matrices)))
    sums = np.zeros(len(matrices))
    for blocks in joint_blocks(matrices):
        flat = np.stack([block.ravel() for block in blocks])
        products += flat @ flat.T
        sums += flat.sum(axis=1)
    n = matrices[0].shape[0] * matrices[0].shape[1]
    return _normalised(products), _normalised(products - np.outer(sums, sums) / n)


def _normalised(products: Floats) -> Floats:
    lengths = np.sqrt(np.maximum(np.diag(products), 0.0))
    scale = np.outer(lengths, lengths)
    return np.asarray(np.divide(products, scale, out=np.full(products.shape, np.nan), where=scale > 0))


def _over(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else math.nan

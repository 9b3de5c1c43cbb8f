"""This module tests whether two models share a pattern over their channels, all matched layers at once.

One permutation of the channels is shared by all layers: layers of one model resemble each other, and must not be
counted as independent witnesses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import NullResult, centred_unit, pvalue

__all__ = ["Orders", "channel_orders", "matched_null", "permutation_test", "shared_null_std"]

Orders = npt.NDArray[np.unsignedinteger[Any]]

_BATCH = 1_000
"""Permutations turned at a time, so that no second array of all of them is needed."""

_BLOCK = 64
"""Rows at a time of the matrix of channel products: 64 of 4,096 channels take 2 MB, which stays in the cache."""


def permutation_test(
    a: npt.ArrayLike, b: npt.ArrayLike, n_permutations: int = 9999, seed: int = 0, alternative: str = "greater"
) -> NullResult:
    """Do two models share a pattern over their channels? The mean Pearson r of matched rows beside its null.

    Breaks: which channel of `a` stands beside which of `b`, by one permutation of the channels shared by all rows.
    Keeps: every value of every row, and how the rows of one model resemble each other.

    Args:
        a: matched rows, shape ``(n_layers, hidden_size)``.
        b: the same shape; row i of `a` is compared with row i of `b`.
        n_permutations: how many, at least 1; the smallest p possible is 1 / (1 + n_permutations).
        seed: of the generator; the same seed gives the same permutations for every pair of this hidden size.
        alternative: ``greater`` (a common pattern makes r positive) or ``two-sided``.

    Returns:
        The mean r as ``statistic``, and its value under each permutation, shape ``(n_permutations,)``.

    Raises:
        ComparisonError: when the shapes differ, or a row is constant, so that its correlation is undefined.

    A p-value speaks of channels that were assigned at random. Two strangers whose extreme channels coincide for a
    reason of architecture would get a small p as well.
    """
    rows = np.asarray(a)
    _check_matched(rows, np.asarray(b))
    return matched_null(rows, b, channel_orders(rows.shape[1], n_permutations, seed), alternative)


def channel_orders(hidden_size: int, n_permutations: int, seed: int) -> Orders:
    """Permutations of the channels, shape ``(hidden_size, n_permutations)``: entry (i, k) is where i goes in the k-th.

    Several tests of one hidden size may share them; 9,999 of 4,096 channels take 82 MB.

    Raises:
        ComparisonError: when there is no channel or no permutation.
    """
    if hidden_size < 1 or n_permutations < 1:
        raise ComparisonError(
            f"Shuffling {hidden_size} channels {n_permutations} times: expected at least 1 permutation of 1 channel."
        )
    kind = np.uint16 if hidden_size <= 2**16 else np.uint32
    generator = np.random.default_rng(seed)
    orders = np.empty((hidden_size, n_permutations), dtype=kind)
    for start in range(0, n_permutations, _BATCH):
        size = min(_BATCH, n_permutations - start)
        orders[:, start : start + size] = np.stack([generator.permutation(hidden_size) for _ in range(size)], axis=1)
    return orders


def matched_null(a: npt.ArrayLike, b: npt.ArrayLike, orders: Orders, alternative: str = "greater") -> NullResult:
    """``permutation_test`` with given permutations, as ``channel_orders`` makes them.

    The sum of all correlations under a permutation is a sum of one entry a row of the matrix ``A^T B`` of channel
    products, so the rows are multiplied once and not once a permutation.

    Raises:
        ComparisonError: as ``permutation_test``, or when the permutations are of another hidden size.
    """
    rows_a, rows_b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    _check_matched(rows_a, rows_b)
    if len(orders) != rows_a.shape[1]:
        raise ComparisonError(f"Shuffling {rows_a.shape[1]} channels: the permutations given have {len(orders)}.")
    unit_a, unit_b = centred_unit(rows_a), centred_unit(rows_b)
    sums = np.zeros(orders.shape[1])
    for start in range(0, len(orders), _BLOCK):
        products = unit_a[:, start : start + _BLOCK].T @ unit_b
        for channel, row in enumerate(products, start):
            sums += row[orders[channel]]
    return pvalue(float(np.sum(unit_a * unit_b)) / len(unit_a), sums / len(unit_a), alternative)


def shared_null_std(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Exact standard deviation of the null of ``permutation_test``, over all permutations that there are.

    With unit rows u and v, it is ``sqrt(sum_ij (u_i u_j)(v_i v_j) / (hidden_size - 1)) / n_layers``: wider than that of
    independent layers by as much as the layers of each model resemble each other.

    Raises:
        ComparisonError: as ``permutation_test``.
    """
    rows_a, rows_b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    _check_matched(rows_a, rows_b)
    unit_a, unit_b = centred_unit(rows_a), centred_unit(rows_b)
    total = float(np.sum((unit_a @ unit_a.T) * (unit_b @ unit_b.T)))
    return float(np.sqrt(total / (rows_a.shape[1] - 1)) / len(rows_a))


def _check_matched(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> None:
    if a.ndim != 2 or a.shape != b.shape or not a.size or a.shape[1] < 2:
        raise ComparisonError(
            f"Permuting the channels of matched rows: expected two arrays of one shape (n_layers, hidden_size), got "
            f"{a.shape} and {b.shape}."
        )

"""This module tests whether two models share a pattern over their channels, all matched layers at once.

One permutation of the channels is shared by all layers: layers of one model resemble each other, and must not be
counted as independent witnesses.

The method is that of "Independence Tests for Language Models" (Zhu, Ahmed, Kuditipudi and Liang, ICML 2025,
arXiv:2502.12292), whose tests permute hidden units, applied to the channels of the norm weights. The p-value is exact
under two assumptions. First, training is *equivariant* to a relabelling of the hidden dimensions: had the channels been
numbered in another order at the start, the same training would have given the same weights in that other order, and no
order is likelier than another at the start. Second, the two models were *initialised independently* and have shared
nothing since that tells one channel from another. Then the channels of one model stand beside those of the other in an
order drawn uniformly from all, the true order is one more permutation among those drawn, and p is at most t with
probability at most t.

What it cannot see: a copy whose channels were permuted afterwards, with the rest of the network to match, computes the
same function and escapes this test. What it may take for a shared origin: anything else that ties channels of the same
number together, such as a design that treats certain channels in a way of their own in both models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import Floats, NullResult, centred_unit, pvalue
from lnsim.measure.rows import prepared

# Permutations of the channels, one a column: ``channel_orders`` makes them.
Orders = npt.NDArray[np.unsignedinteger[Any]]

_BATCH = 2**17  # entries of permutations drawn at a time, 1 MB, so that no second array of all of them is needed
_BLOCK = 64  # rows at a time of the matrix of channel products: of 4,096 channels 2 MB, which stays in the cache
_FEW = 1_000  # up to so many permutations all channels of a block are gathered in one call; of more, one at a time
_CHANNELS = 256  # channels at a time where every layer has its own correlation
_VALUES = 48_000  # values gathered at a time there: 384 kB, less than half of a core's own cache


def permutation_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    n_permutations: int = 9999,
    seed: int = 0,
    alternative: str = "greater",
    *,
    statistic: str = "mean",
    correlation: str = "pearson",
) -> NullResult:
    """Do two models share a pattern over their channels? The correlation of matched rows beside its null.

    Breaks: which channel of `a` stands beside which of `b`, by one permutation of the channels shared by all rows.
    Keeps: every value of every row, and how the rows of one model resemble each other.

    Row i of `a` is compared with row i of `b`, both of shape ``(n_layers, hidden_size)``. The same seed gives the same
    permutations for every pair of this hidden size. `alternative` is ``greater`` (a common pattern makes r positive) or
    ``two-sided``; `statistic` the ``mean`` over the rows, or ``max``, which sees a pattern in few rows, by absolute
    value where two-sided; `correlation` one of ``rows.CORRELATIONS``.

    The result has the statistic under each permutation, shape ``(n_permutations,)``, and for the mean its exact moments
    over all permutations that there are. ComparisonError when the shapes differ, a row is constant, so that its
    correlation is undefined, or there is no permutation.

    p is (1 + hits) / (1 + n_permutations), so never 0. The top of this module says under which assumptions it is exact,
    and what escapes it. Source: Zhu, Ahmed, Kuditipudi and Liang, ICML 2025, arXiv:2502.12292.
    """
    rows_a, rows_b = _matched(a, b)
    orders = channel_orders(rows_a.shape[1], n_permutations, seed)
    return matched_null(rows_a, rows_b, orders, alternative, statistic=statistic, correlation=correlation)


def channel_orders(hidden_size: int, n_permutations: int, seed: int | Sequence[int]) -> Orders:
    """Permutations of the channels, shape ``(hidden_size, n_permutations)``: entry (i, k) is where i goes in the k-th.

    Several tests of one hidden size may share them; 9,999 of 4,096 channels take 82 MB. ComparisonError when there is
    no channel or no permutation.
    """
    if hidden_size < 1 or n_permutations < 1:
        raise ComparisonError(
            f"Shuffling {hidden_size} channels {n_permutations} times: expected at least 1 permutation of 1 channel."
        )
    return order_stream(hidden_size, seed)(n_permutations)


def order_stream(hidden_size: int, seed: int | Sequence[int]) -> Callable[[int], Orders]:
    """What gives the next permutations of a seed, as many as asked for; together they are those of channel_orders."""
    kind = np.uint16 if hidden_size <= 2**16 else np.uint32
    generator, step = np.random.default_rng(seed), max(1, _BATCH // hidden_size)

    def following(n_permutations: int) -> Orders:
        orders = np.empty((hidden_size, n_permutations), dtype=kind)
        for start in range(0, n_permutations, step):
            stop = min(start + step, n_permutations)
            batch = np.tile(np.arange(hidden_size), (stop - start, 1))
            orders[:, start:stop] = generator.permuted(batch, axis=1).T
        return orders

    return following


def matched_null(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    orders: Orders,
    alternative: str = "greater",
    *,
    statistic: str = "mean",
    correlation: str = "pearson",
) -> NullResult:
    """``permutation_test`` with given permutations of the same hidden size, as ``channel_orders`` makes them."""
    rows_a, rows_b = _matched(a, b)
    if len(orders) != rows_a.shape[1]:
        raise ComparisonError(f"Shuffling {rows_a.shape[1]} channels: the permutations given have {len(orders)}.")
    test = {"mean": _mean_test, "max": _max_test}.get(statistic)
    if test is None:
        raise ComparisonError(f"'{statistic}' is no statistic over layers; known are mean and max.")
    unit_a, unit_b = (centred_unit(prepared(rows, correlation)) for rows in (rows_a, rows_b))
    return test(unit_a, unit_b, orders, alternative)


def shared_null_std(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Exact standard deviation of the null of ``permutation_test``, over all permutations that there are.

    With unit rows u and v, it is ``sqrt(sum_ij (u_i u_j)(v_i v_j) / (hidden_size - 1)) / n_layers``: wider than that of
    independent layers by as much as the layers of each model resemble each other. The exact mean is 0. Both follow from
    Hoeffding (1951), "A combinatorial central limit theorem": a sum of entries, one a row and column of a matrix whose
    rows and columns sum to 0, has mean 0 and the variance of all squared entries over ``hidden_size - 1``.
    """
    rows_a, rows_b = _matched(a, b)
    return _exact_std(centred_unit(rows_a), centred_unit(rows_b))


def permuted_sums(unit_a: Floats, unit_b: Floats, orders: Orders) -> Floats:
    """The sum of all correlations under each permutation, shape ``(n_permutations,)``.

    It is a sum of one entry a row of ``A^T B``, the matrix of channel products; so the rows are multiplied once and not
    once a permutation.
    """
    sums = np.zeros(orders.shape[1])
    for start in range(0, len(orders), _BLOCK):
        products = unit_a[:, start : start + _BLOCK].T @ unit_b
        sums += _gathered(products, orders[start : start + _BLOCK])
    return sums


def _mean_test(unit_a: Floats, unit_b: Floats, orders: Orders, alternative: str) -> NullResult:
    sums = permuted_sums(unit_a, unit_b, orders)
    null = pvalue(float(np.sum(unit_a * unit_b)) / len(unit_a), sums / len(unit_a), alternative)
    return replace(null, exact_mean=0.0, exact_std=_exact_std(unit_a, unit_b))


def _gathered(products: Floats, orders: Orders) -> Floats:
    """For each permutation the sum, over these channels, of the entries that it meets."""
    if orders.shape[1] <= _FEW:
        starts = np.arange(len(products))[:, None] * products.shape[1]
        return np.asarray(products.ravel().take(starts + orders).sum(axis=0))
    sums = np.zeros(orders.shape[1])
    for row, order in zip(products, orders, strict=True):
        sums += row[order]
    return sums


def _max_test(unit_a: Floats, unit_b: Floats, orders: Orders, alternative: str) -> NullResult:
    """The largest over the layers, or the largest absolute value where two-sided."""
    observed, null = np.sum(unit_a * unit_b, axis=1), layer_values(unit_a, unit_b, orders)
    if alternative == "two-sided":
        observed, null = np.abs(observed), np.abs(null)
    return pvalue(float(observed.max()), null.max(axis=1), alternative)


def layer_values(unit_a: Floats, unit_b: Floats, orders: Orders) -> Floats:
    """Correlation of each layer of a with the same layer of b, the channels of b permuted.

    The mean over layers needs only one sum a permutation; their maximum, or a range of each, needs every layer by
    itself. What that costs is memory traffic: one stack is gathered anew for each permutation. A block of channels and
    a few permutations at a time keep what is gathered in the processor's cache; the sums are left to BLAS.

    Rows are those of ``centred_unit``, shape ``(n_layers, hidden_size)``; the values have the shape ``(n_permutations,
    n_layers)``, for 9,999 permutations and 46 layers 3.7 MB.
    """
    channels_a, channels_b = np.ascontiguousarray(unit_a.T), np.ascontiguousarray(unit_b.T)
    found = np.empty((orders.shape[1], unit_a.shape[0]))
    step = max(1, _VALUES // (min(_CHANNELS, len(channels_a)) * len(unit_a)))
    for start in range(0, len(found), step):
        block = np.ascontiguousarray(orders[:, start : start + step].T)
        found[start : start + step] = _layer_block(channels_a, channels_b, block.astype(np.intp))
    return found


def _layer_block(channels_a: Floats, channels_b: Floats, orders: npt.NDArray[np.intp]) -> Floats:
    """The same for a few permutations, one a row of `orders`; shape ``(n_permutations, n_layers)``."""
    sums = np.zeros((len(orders), channels_a.shape[1]))
    gathered = np.empty((len(orders), min(_CHANNELS, len(channels_a)), channels_a.shape[1]))
    for start in range(0, len(channels_a), _CHANNELS):
        part = channels_a[start : start + _CHANNELS]
        here = gathered[:, : len(part)]
        # Every entry is below the number of channels; with mode="raise" NumPy would gather into a second array first.
        np.take(channels_b, orders[:, start : start + _CHANNELS], axis=0, out=here, mode="clip")
        np.multiply(here, part, out=here)
        sums += np.matmul(np.ones(len(part)), here)
    return sums


def _exact_std(unit_a: Floats, unit_b: Floats) -> float:
    total = float(np.sum((unit_a @ unit_a.T) * (unit_b @ unit_b.T)))
    return float(np.sqrt(max(total, 0.0) / (unit_a.shape[1] - 1)) / len(unit_a))


def _matched(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Floats, Floats]:
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if one.ndim != 2 or one.shape != other.shape or not one.size or one.shape[1] < 2:
        raise ComparisonError(
            f"Permuting the channels of matched rows: expected two arrays of one shape (n_layers, hidden_size), got "
            f"{one.shape} and {other.shape}."
        )
    return one, other

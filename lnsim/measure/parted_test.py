"""This module tests a pair out of very many: ``pair_test`` with the channels in parts, each permuted by itself.

N permutations of all channels give no p below ``1 / (1 + N)``, and a million comparisons multiply it by a million. The
assumption of ``pair_test``, that of strangers one has its channels in random order, says more: given which channels
fall into a part, their orders within the parts are random and independent of one another. So each part has a p of its
own, (1 + hits) / (1 + N), exact and independent of the others, and Fisher's sum joins them: under the null
``-2 sum log p`` is at most chi-squared with two degrees of freedom a part (Fisher 1932). Eight parts of 199
permutations reach 2e-11 and sixteen 1e-20, for the price of 199 permutations. Channels are dealt to the parts by the
seed, not by γ. As in ``pair_test`` the same is asked by ranks, and the larger p counts.

What it costs: a part sees only its own channels, so that a pattern so faint that it takes all of them is lost sooner.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import centred_unit
from lnsim.measure.pair_test import KINDS, MOST, STRONG, PairTest, Stack, levels_for, pair_test

_Places = npt.NDArray[np.intp]

_FEWEST, _MOST = 199, 9_999  # permutations of each part
_FEWEST_CHANNELS = 8  # of a part: 40,320 orders
_MOST_PARTS = 64
_SURE = 2.576  # standard deviations that hold 99 %


def parts_for(n_tests: int, hidden_size: int, most: int = MOST) -> tuple[int, int]:
    """Into how many parts the channels go where so many tests are adjusted together, and the permutations of each.

    As few parts as will do, at best one: where no permutation reaches a pair, its p is to be strong and on no border.
    Where so few channels are no more parts, more permutations.
    """
    if n_tests / (1 + most) <= STRONG:
        return 1, most
    n_parts, n_permutations = 2, min(_FEWEST, most)
    while n_tests * joined([0] * n_parts, n_permutations)[2] > STRONG:
        if n_parts < _MOST_PARTS and hidden_size >= 2 * n_parts * _FEWEST_CHANNELS:
            n_parts *= 2
        elif n_permutations < min(_MOST, most):
            n_permutations = min(10 * n_permutations + 9, _MOST, most)
        else:
            break
    return n_parts, n_permutations


def joined(hits: Sequence[int], n_permutations: int) -> tuple[float, float, float]:
    """Fisher's p of parts that so many permutations reached, and the ends of an interval that allows for other draws.

    In 99 of 100 it holds the middle p of all. The logarithm of a part's p has a variance, from draw to draw, of about
    ``1 / (1 + hits) - 1 / (1 + n_permutations)``.
    """
    shares = [(1 + one) / (1 + n_permutations) for one in hits]
    x, spread = -sum(map(math.log, shares)), math.sqrt(sum(1 / one - 1 for one in shares) / (1 + n_permutations))
    p, low, high = (_tail(max(x + far * _SURE * spread, 0.0), len(shares)) for far in (0, 1, -1))
    return p, low, high


def parted_test(stacks: Sequence[Stack], n_tests: int, most: int = MOST, seed: int = 0) -> PairTest:
    """Test matched rows of two models, one stack a hidden size, among `n_tests` that are adjusted together.

    Where one part will do it is ``pair_test``. ComparisonError as there.
    """
    n_parts, n_permutations = parts_for(n_tests, min((a.shape[1] for a, _ in stacks), default=1), most)
    if n_parts == 1:
        return pair_test(stacks, levels_for(n_tests), most, seed)
    n_rows = sum(len(a) for a, _ in stacks)
    if not n_rows or most < 1:
        raise ComparisonError(f"Testing a pair: expected matched rows and a permutation, found {n_rows} and {most}.")
    values, found = [], []
    for kind in KINDS:
        units = [tuple(centred_unit(kind(np.asarray(rows, dtype=np.float64))) for rows in both) for both in stacks]
        observed, hits = 0.0, np.zeros(n_parts, dtype=int)
        for part in range(n_parts):
            here, null = 0.0, np.zeros(n_permutations)
            for a, b in units:
                channels, meet = _dealt(a.shape[1], n_parts, n_permutations, seed)[part]
                products = a[:, channels].T @ b[:, channels]
                here += float(np.trace(products))
                null += products.ravel().take(meet).sum(axis=0)
            hits[part] = np.count_nonzero(null >= here - 1e-12 * n_rows)
            observed += here
        values.append(observed / n_rows)
        found.append(joined(hits.tolist(), n_permutations))
    (p_r, low_r, high_r), (p_ranks, low_ranks, high_ranks) = found
    drawn, least = n_parts * n_permutations, joined([0] * n_parts, n_permutations)[0]
    low, high = max(low_r, low_ranks), max(high_r, high_ranks)
    return PairTest(values[0], values[1], p_r, p_ranks, low, high, n_rows, drawn, seed, least)


def _tail(x: float, n: int) -> float:
    """The chance that minus the logarithms of n independent p add up to x or more (Fisher 1932), in closed form."""
    return min(1.0, sum(math.exp(k * math.log(x) - math.lgamma(k + 1) - x) for k in range(n)) if x else 1.0)


@functools.lru_cache(maxsize=4)
def _dealt(size: int, n_parts: int, n_permutations: int, seed: int) -> tuple[tuple[_Places, _Places], ...]:
    """For each part its channels and, a column a permutation, where their products lie; the same for every pair."""
    rng = np.random.default_rng([seed, size, n_parts])
    found = []
    for channels in np.array_split(rng.permutation(size), n_parts):
        start = np.arange(len(channels))[:, np.newaxis]
        orders = rng.permuted(np.tile(start, (1, n_permutations)), axis=0)
        found.append((np.sort(channels), start * len(channels) + orders))
    return tuple(found)

"""This module asks of two models, in one test, whether their norms share a pattern over the channels.

The statistic is the mean r over all norms of the residual stream that both models have at the same place; its null are
permutations of the channels, one for all of them at a time, as in ``permutation``, whose assumptions are those of this
test. The same is asked by ranks, and the p of the pair is the larger of the two: no single channel can make it small.

Permutations are drawn until what they decide is settled. After 200, and whenever their number has doubled, the interval
of p that the draws allow is looked at (99 % for all looks together), and the drawing ends where it holds none of the
levels. So strangers are done after some hundred, and a pair near a level costs all 99,999. Where both statistics are
twice the largest that any permutation gave, no more are drawn than the smallest level asks. The k-th permutation of a
seed is the same whenever the drawing ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import Floats, centred_unit
from lnsim.measure.permutation import order_stream, permuted_sums
from lnsim.measure.rows import ranks

STRONG, WEAK = LEVELS = (0.001, 0.05)
"""Adjusted p up to which a signal is called strong, and weak."""

MOST = 99_999
"""Permutations after which the drawing ends, whatever is settled."""

KINDS: tuple[Callable[[Floats], Floats], ...] = (np.asarray, ranks)
"""What is done to the rows before r is taken: nothing, and ranks."""

_FIRST_LOOK = 200
_AT_ONCE = 10_000  # permutations held at a time: of 4,096 channels they take 82 MB
_FAR = 2  # times the largest value of any permutation: no further one is then expected to reach the statistic
_OUTSIDE = 0.01  # chance that the interval misses p at some look

Stack = tuple[Floats, Floats]
"""Matched rows of two models, both of shape ``(n_rows, hidden_size)``."""


@dataclass(frozen=True, slots=True)
class PairTest:
    """What one test of two models found."""

    r: float  # mean Pearson r over all rows; rank_r is that of ranks
    rank_r: float
    p_r: float  # (1 + hits) / (1 + n_permutations) of the first; p_ranks is that of the second
    p_ranks: float
    low: float  # of the larger of the two p, the lower end of the interval that the draws allow; high is the upper one
    high: float
    n_rows: int  # norms compared, over all roles
    n_permutations: int
    seed: int

    @property
    def pvalue(self) -> float:
        """The larger of the two."""
        return max(self.p_r, self.p_ranks)

    @property
    def pattern_kept(self) -> float:
        """The share w of a pattern at which ``w pattern + (1 - w) stranger``, of equal spread, has this r; 0 for none.

        So notebook 12 dilutes a model: r = w / sqrt(w^2 + (1 - w)^2). It says how much is left, not how it was lost.
        """
        r = min(max(self.r, 0.0), 1.0)
        return r / (r + math.sqrt(1 - r * r))

    @property
    def pvalue_se(self) -> float:
        """Monte Carlo standard error of ``pvalue``."""
        return math.sqrt(self.pvalue * (1 - self.pvalue) / (1 + self.n_permutations))


def levels_for(n_pairs: int) -> tuple[float, ...]:
    """The levels that a raw p is held against where so many pairs are adjusted together (Holm 1979)."""
    return tuple(sorted({level / steps for level in LEVELS for steps in range(1, n_pairs + 1)}))


def pair_test(stacks: Sequence[Stack], levels: Sequence[float] = LEVELS, most: int = MOST, seed: int = 0) -> PairTest:
    """Test matched rows of two models, given as one stack a hidden size: row i of one beside row i of the other.

    The drawing ends where p is known to lie on one side of each level, or after `most` permutations. ComparisonError
    when there is no row, the shapes differ, or a row is constant.
    """
    n_rows = sum(len(a) for a, _ in stacks)
    if not n_rows or most < 1:
        raise ComparisonError(f"Testing a pair: expected matched rows and a permutation, found {n_rows} and {most}.")
    kinds = [[_units(a, b, kind) for a, b in stacks] for kind in KINDS]
    observed = [sum(float(np.sum(a * b)) for a, b in kind) / n_rows for kind in kinds]
    hits, largest, drawn, looks = np.zeros(2, dtype=int), np.zeros(2), 0, list(_looks(most))
    streams = [order_stream(a.shape[1], seed) for a, _ in stacks]
    low = high = 0.0
    for until in looks:
        while drawn < until:
            some = min(_AT_ONCE, until - drawn)
            orders = [stream(some) for stream in streams]
            for place, (kind, value) in enumerate(zip(kinds, observed, strict=True)):
                parts = [permuted_sums(a, b, order) for (a, b), order in zip(kind, orders, strict=True)]
                null = np.sum(parts, axis=0) / n_rows
                hits[place] += np.count_nonzero(null >= value - 1e-12)
                largest[place] = max(largest[place], null.max())
            drawn += some
        low, high = map(max, zip(*(_interval(int(one), drawn, _OUTSIDE / len(looks)) for one in hits), strict=True))
        far = (largest * _FAR < observed).all() and 1 / (1 + drawn) <= min(levels)
        if far or not any(low <= level <= high for level in levels):
            break
    p_r, p_ranks = ((1 + hits) / (1 + drawn)).tolist()
    return PairTest(observed[0], observed[1], p_r, p_ranks, low, high, n_rows, drawn, seed)


def r_interval(stacks: Sequence[Stack], seed: int, n_draws: int = 999) -> tuple[float, float]:
    """The middle 95 % of the mean r where channels are drawn with replacement, the same ones for every row."""
    total = np.zeros(n_draws)
    for a, b in stacks:
        size = a.shape[1]
        counts = np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), size=n_draws) / size
        one, other = (centred_unit(np.asarray(rows, dtype=np.float64)) for rows in (a, b))
        mean_a, mean_b, both, square_a, square_b = (
            counts @ values.T for values in (one, other, one * other, one**2, other**2)
        )
        spread = np.sqrt((square_a - mean_a**2) * (square_b - mean_b**2))
        total += ((both - mean_a * mean_b) / spread).sum(axis=1)
    low, high = np.quantile(total / sum(len(a) for a, _ in stacks), (0.025, 0.975))
    return float(low), float(high)


def _units(a: npt.ArrayLike, b: npt.ArrayLike, kind: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
    one, other = (centred_unit(kind(np.asarray(rows, dtype=np.float64))) for rows in (a, b))
    if one.shape != other.shape:
        raise ComparisonError(f"Testing a pair: expected matched rows, found shapes {one.shape} and {other.shape}.")
    return one, other


def _looks(most: int) -> Iterator[int]:
    look = _FIRST_LOOK
    while look < most:
        yield look
        look *= 2
    yield most


def _interval(hits: int, n: int, outside: float) -> tuple[float, float]:
    """Ends of an interval that holds a share of which `hits` of `n` were seen, but for a chance of `outside`.

    The share p leaves it only where ``n KL(hits/n, p)`` exceeds ``log(2 / outside)`` (Chernoff's bound, which holds for
    every n; Hoeffding 1963). Found by halving.
    """
    seen, most = hits / n, math.log(2 / outside) / n

    def too_far(p: float) -> bool:
        one = seen * math.log(seen / p) if seen else 0.0
        return one + ((1 - seen) * math.log((1 - seen) / (1 - p)) if seen < 1 else 0.0) > most

    ends = []
    for end in (0.0, 1.0):
        near, far = seen, end
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (near, middle) if middle in (0.0, 1.0) or too_far(middle) else (middle, far)
        ends.append(far if near != end else end)
    return ends[0], ends[1]

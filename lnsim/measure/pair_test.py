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
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.source import Progress, no_progress
from lnsim.errors import ComparisonError
from lnsim.measure.nulls import Floats, centred_unit
from lnsim.measure.permutation import Orders, order_stream
from lnsim.measure.rows import ranks

STRONG, WEAK = LEVELS = (0.001, 0.05)
"""Adjusted p up to which a signal is called strong, and weak."""

MOST = 99_999
"""Permutations after which the drawing ends, whatever is settled."""

KINDS: tuple[Callable[[Floats], Floats], ...] = (np.asarray, ranks)
"""What is done to the rows before r is taken: nothing, and ranks."""

_FIRST_LOOK = 200
_ENTRIES = 40_960_000  # entries of permutations held at a time, 82 MB
_PAIRS = 256  # tested together at most
_VALUES = 2**23  # of one of their models, as many as 64 MB hold
_SUMS = 2**22  # sums held at a time, 32 MB
_PRODUCTS = 2**22  # products of channels held at a time, 16 MB
_BLOCK = 64  # channels whose products are summed in float32
_SLICE = 2_000  # permutations gathered at a time, so that they stay in the cache
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
    least: float  # the smallest p that the test could give, had it drawn all the permutations it may

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
    return pair_tests([stacks], levels, most, seed)[0]


def pair_tests(
    pairs: Sequence[Sequence[Stack]],
    levels: Sequence[float] = LEVELS,
    most: int = MOST,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[PairTest]:
    """Test many pairs: the same permutations serve all of one hidden size, and a pair that is settled costs no more.

    Each gets the result that it has alone; arguments and errors are those of ``pair_test``.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, stacks in enumerate(pairs):
        alike.setdefault(tuple(a.shape[1] for a, _ in stacks), []).append(place)
    found: dict[int, PairTest] = {}
    for sizes, places in alike.items():
        largest = max(sum(a.size for a, _ in pairs[place]) for place in places)
        step = min(_PAIRS, max(1, _VALUES // max(1, largest)))
        for start in range(0, len(places), step):
            some = places[start : start + step]
            drawn = _drawn([_Drawn.of(pairs[place], most) for place in some], sizes, levels, most, seed)
            found |= {place: one.result(seed, most) for place, one in zip(some, drawn, strict=True)}
            progress(len(found), len(pairs))
    return [found[place] for place in range(len(pairs))]


@lru_cache(16)  # whoever asks for the relatives of a model gives its rows with every pair
def _units(kind: int, shape: tuple[int, int], rows: bytes) -> Floats:
    return centred_unit(KINDS[kind](np.frombuffer(rows).reshape(shape)))


@dataclass(slots=True)
class _Drawn:
    """What the permutations that were drawn so far say of one pair; arrays hold an entry a kind."""

    units: list[list[Stack]]  # rows without their mean and of length 1, by kind, then by hidden size
    observed: Floats
    n_rows: int
    hits: npt.NDArray[np.int64]
    near: npt.NDArray[np.bool_]  # whether a permutation came within a factor of _FAR
    n: int = 0
    settled: bool = False
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, stacks: Sequence[Stack], most: int) -> _Drawn:
        n_rows = sum(len(a) for a, _ in stacks)
        if not n_rows or most < 1:
            raise ComparisonError(
                f"Testing a pair: expected matched rows and a permutation, found {n_rows} and {most}."
            )
        both = [[np.asarray(rows, dtype=np.float64) for rows in stack] for stack in stacks]
        if apart := next((one for one in both if one[0].shape != one[1].shape), None):
            shapes = " and ".join(str(rows.shape) for rows in apart)
            raise ComparisonError(f"Testing a pair: expected matched rows, found shapes {shapes}.")
        kinds = [
            [(_units(kind, a.shape, a.tobytes()), _units(kind, b.shape, b.tobytes())) for a, b in both]
            for kind in range(len(KINDS))
        ]
        observed = np.array([sum(float(np.sum(a * b)) for a, b in kind) / n_rows for kind in kinds])
        return cls(kinds, observed, n_rows, np.zeros(len(KINDS), dtype=np.int64), observed <= 0)

    def count(self, sums: Floats, orders: Sequence[Orders], looks: Sequence[int], levels: Sequence[float]) -> None:
        """Count these permutations, up to the look after which the pair is settled; `sums` has a row a kind.

        A sum in float32 is off by less than `slack`: each row has length 1, so that the terms of a block of channels,
        whatever their signs, add up to the number of rows at most, and each of its roundings costs a share of 2^-24 of
        that. A permutation nearer to the statistic than this is summed again in float64, where another order of the
        terms moves a sum by some 1e-15; one that ties with the true order is thus a hit in any order, as 1e-12 allows,
        and one that does not tie would have to miss by this very number to be counted in another way.
        """
        first, slack = self.n, (_BLOCK + self.n_rows + 8) * 2.0**-23
        last = first + sums.shape[1]
        for until in [*(look for look in looks if first < look < last), last]:
            some = slice(self.n - first, until - first)
            here = [order[:, some] for order in orders]
            for kind, observed in enumerate(self.observed.tolist()):
                values = sums[kind, some] / self.n_rows
                self.hits[kind] += self._reached(kind, values, observed - 1e-12, slack, here)
                self.near[kind] = self.near[kind] or self._reached(kind, values, observed / _FAR, slack, here) > 0
            self.n = until
            if until in looks and self._settle(_OUTSIDE / len(looks), levels):
                return

    def _reached(self, kind: int, values: Floats, least: float, slack: float, orders: Sequence[Orders]) -> int:
        """How many permutations reach a value, those in doubt summed again."""
        above = values - least
        doubtful = np.flatnonzero(np.abs(above) <= slack).tolist()
        return int(np.count_nonzero(above > slack)) + sum(self.exact(kind, orders, k) >= least for k in doubtful)

    def _settle(self, outside: float, levels: Sequence[float]) -> bool:
        """Whether no further permutation is needed."""
        intervals = (_interval(hits, self.n, outside) for hits in self.hits.tolist())
        self.low, self.high = map(max, zip(*intervals, strict=True))
        far = not self.near.any() and 1 / (1 + self.n) <= min(levels)
        self.settled = far or not any(self.low <= level <= self.high for level in levels)
        return self.settled

    def exact(self, kind: int, orders: Sequence[Orders], k: int) -> float:
        """The statistic under the k-th of these permutations, in float64."""
        parts = zip(self.units[kind], orders, strict=True)
        return sum(float(np.sum(a * b[:, order[:, k]])) for (a, b), order in parts) / self.n_rows

    def result(self, seed: int, most: int) -> PairTest:
        (r, rank_r), (p_r, p_ranks) = self.observed.tolist(), ((1 + self.hits) / (1 + self.n)).tolist()
        return PairTest(r, rank_r, p_r, p_ranks, self.low, self.high, self.n_rows, self.n, seed, 1 / (1 + most))


def _drawn(pairs: list[_Drawn], sizes: Sequence[int], levels: Sequence[float], most: int, seed: int) -> list[_Drawn]:
    """Draw until each of these pairs is settled."""
    streams, looks, n, left = [order_stream(size, seed) for size in sizes], list(_looks(most)), 0, pairs
    while left and n < most:
        some = min(_planned(looks, n, max(sizes)) - n, _ENTRIES // max(sizes), _SUMS // (len(KINDS) * len(left)))
        orders = [stream(max(1, some)) for stream in streams]
        for one, sums in zip(left, _sums(left, orders), strict=True):
            one.count(sums, orders, looks, levels)
        n += orders[0].shape[1]
        left = [one for one in left if not one.settled]
    return pairs


def _planned(looks: Sequence[int], n: int, size: int) -> int:
    """The look up to which permutations are drawn next, after `n`.

    The products of all channels cost about as much as to draw and gather one permutation a channel. So of few channels
    it is the next look, of many one further on; but the first, after which most pairs are settled, is always alone.
    """
    ahead = [look for look in looks if n < look]
    return max((look for look in ahead if n and look <= n + size), default=ahead[0])


def _sums(pairs: Sequence[_Drawn], orders: Sequence[Orders]) -> Floats:
    """Sums of all correlations, taken in float32; shape ``(n_pairs, n_kinds, n_permutations)``."""
    columns = [(one, kind) for one in pairs for kind in range(len(KINDS))]
    sums = np.zeros((orders[0].shape[1], len(columns)))
    for place, order in enumerate(orders):
        a, b = (_padded([one.units[kind][place][side] for one, kind in columns]) for side in (0, 1))
        _add_gathered(sums, a, b, order)
    return sums.T.reshape(len(pairs), len(KINDS), -1)


def _padded(rows: Sequence[Floats]) -> npt.NDArray[np.float32]:
    """Rows of each as one array, with rows of zeros where it has fewer; they change no sum."""
    found = np.zeros((len(rows), max(map(len, rows)), rows[0].shape[1]), dtype=np.float32)
    for place, some in enumerate(rows):
        found[place, : len(some)] = some
    return found


def _add_gathered(sums: Floats, a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], order: Orders) -> None:
    """Add for each permutation (down) and column (across) the products of channels that meet, as permuted_sums does.

    The products of a channel with all others lie side by side for all columns, so that they are gathered together.
    """
    n_columns, _, size = a.shape
    step = min(_BLOCK, max(1, _PRODUCTS // (size * n_columns)))
    for start in range(0, size, step):
        products = np.moveaxis(a[:, :, start : start + step].transpose(0, 2, 1) @ b, 0, 2).copy()
        for first in range(0, len(sums), _SLICE):
            meets = order[start : start + step, first : first + _SLICE].astype(np.intp)
            part = np.zeros((meets.shape[1], n_columns), dtype=np.float32)
            gathered = np.empty_like(part)
            for row, places in zip(products, meets, strict=True):
                part += np.take(row, places, axis=0, out=gathered, mode="clip")
            sums[first : first + _SLICE] += part


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


def _looks(most: int) -> Iterator[int]:
    look = _FIRST_LOOK
    while look < most:
        yield look
        look *= 2
    yield most


@lru_cache(4096)
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

"""This module makes random patterns that are the same bits on every machine, and rounds them to BF16.

NumPy promises the bit stream of PCG64, not what its distributions make of it, and no two maths libraries agree on the
last bit of a logarithm or of a long sum. So a pattern is a sum of eight integers from the raw stream (close to a
Gaussian, within 4.9 standard deviations), scaled by one constant; every later step uses only additions,
multiplications, divisions and square roots value by value, which IEEE 754 fixes to the bit, and sums by ``math.fsum``,
which are exact before one rounding. Neither BLAS nor SIMD nor the number of threads can then show.

BF16 keeps eight bits, so rounding a vector of 4096 values moves its mean, its spread and its correlations in the fourth
decimal: enough to change a printed table. The fit undoes that: it moves single values by one step of the BF16 grid, up
or down, always the move (else the pair of moves) that brings the statistics nearest to those of the vector before
rounding. A few dozen of the 4096 values move.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = [
    "Bits",
    "Pinned",
    "Vector",
    "draw",
    "exact_dot",
    "fit",
    "from_bits",
    "round_to_bf16",
    "standardised",
    "stream",
]

Vector = npt.NDArray[np.float64]

_PARTS = 8
_PART_VALUES = 65536
_PART_MEAN = (_PART_VALUES - 1) / 2
_SUM_STD = math.sqrt(_PARTS * (_PART_VALUES**2 - 1) / 12)


def stream(seed: int, label: str, n_bytes: int) -> npt.NDArray[np.uint8]:
    """Random bytes, shape ``(n_bytes,)``, from the seed and the label alone, so that a new vector changes no other."""
    digest = hashlib.sha256(f"{seed}:{label}".encode()).digest()
    words = np.random.PCG64(int.from_bytes(digest, "big")).random_raw(-(-n_bytes // 8))
    return words.astype("<u8", copy=False).view(np.uint8)[:n_bytes]


def draw(seed: int, label: str, size: int) -> Vector:
    """A pattern of mean 0 and standard deviation 1 in expectation, shape ``(size,)``."""
    parts = stream(seed, label, 2 * _PARTS * size).view("<u2").reshape(size, _PARTS)
    total = parts.astype(np.int64).sum(axis=1)
    pattern: Vector = (total.astype(np.float64) - _PARTS * _PART_MEAN) / _SUM_STD
    return pattern


def exact_dot(a: Vector, b: Vector) -> float:
    """Inner product: products rounded one by one, their sum exact and then rounded once."""
    return math.fsum((a * b).tolist())


def standardised(pattern: Vector) -> Vector:
    """The pattern moved and scaled to mean 0 and standard deviation 1 (of the population)."""
    centred = pattern - math.fsum(pattern.tolist()) / len(pattern)
    return centred / math.sqrt(exact_dot(centred, centred) / len(centred))


Bits = npt.NDArray[np.uint16]

_MEAN_TOLERANCE = 3e-7
_SPREAD_TOLERANCE = 5e-6
_CORRELATION_TOLERANCE = 2e-5
"""Errors that count alike; in a printed table each is well below half of the fourth decimal."""

_GOOD = 0.5
"""Cost, in squared tolerances, below which no pair of moves is looked for."""

_GAIN = 0.999
"""A move must bring the cost below this part of what it was."""

_MAX_MOVES = 400
_PAIRED = 160
"""How many of the best single moves are tried in pairs."""

_SMALLEST = 0x0080
"""Bits of the smallest normal BF16 number: values up to it are never moved."""


@dataclass(frozen=True, slots=True, eq=False)
class Pinned:
    """A vector before and after rounding.

    Args:
        wanted: its values before rounding, float64 of shape ``(hidden_size,)``: its statistics are the right ones.
        bits: the BF16 bits that stand for it, same shape.
    """

    wanted: Vector
    bits: Bits


def round_to_bf16(values: Vector) -> Bits:
    """The nearest BF16 numbers, ties to even, as bits; the values must be finite."""
    wide = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((wide + (np.uint32(0x7FFF) + ((wide >> 16) & 1))) >> 16).astype(np.uint16)


def from_bits(bits: Bits) -> Vector:
    """The numbers that BF16 bits stand for, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def fit(wanted: Vector, others: Sequence[Pinned]) -> Pinned:
    """Round a vector so that its mean, its spread and its correlations with others come out as before rounding.

    Args:
        wanted: values before rounding, shape ``(hidden_size,)``, not all equal.
        others: vectors that were fitted before and stay as they are.
    """
    goal = _Goal.of(wanted, others)
    bits = round_to_bf16(wanted)
    errors = goal.errors(from_bits(bits))
    for _ in range(_MAX_MOVES):
        steps, moved = _neighbours(bits)
        effects = goal.effects(from_bits(bits), steps)
        chosen = _choose(errors, effects, steps != 0)
        if not chosen:
            break
        for move in chosen:
            bits[move % len(bits)] = moved[move]
            errors = [error + float(effect[move]) for error, effect in zip(errors, effects, strict=True)]
    return Pinned(wanted, bits)


@dataclass(frozen=True, slots=True, eq=False)
class _Goal:
    """The statistics to keep, as linear forms of the vector (and one square), each in units of its tolerance."""

    mean: float
    spread: float
    forms: tuple[Vector, ...]
    values: tuple[float, ...]

    @classmethod
    def of(cls, wanted: Vector, others: Sequence[Pinned]) -> _Goal:
        mean, centred, spread = _moments(wanted)
        size = len(wanted)
        forms = [np.full(size, 1 / (size * math.sqrt(mean * mean + spread * spread) * _MEAN_TOLERANCE))]
        values = [0.0]
        for other in others:
            other_mean, other_centred, other_spread = _moments(other.wanted)
            unit = size * spread * other_spread * _CORRELATION_TOLERANCE
            forms.append((from_bits(other.bits) - other_mean) / unit)
            values.append(exact_dot(centred, other_centred) / unit)
        return cls(mean, spread, tuple(forms), tuple(values))

    @property
    def _square(self) -> float:
        """Unit of the sum of squares about the mean."""
        return 2 * len(self.forms[0]) * self.spread * self.spread * _SPREAD_TOLERANCE

    def errors(self, values: Vector) -> list[float]:
        """How far each statistic of the values is from what it should be."""
        centred = values - self.mean
        spread = exact_dot(centred, centred) / self._square - 1 / (2 * _SPREAD_TOLERANCE)
        return [
            spread,
            *(exact_dot(centred, form) - value for form, value in zip(self.forms, self.values, strict=True)),
        ]

    def effects(self, values: Vector, steps: Vector) -> list[Vector]:
        """How each statistic changes with each move, arrays of the moves' shape ``(2 * hidden_size,)``."""
        centred = np.concatenate([values - self.mean] * 2)
        square = (2 * centred * steps + steps * steps) / self._square
        return [square, *(np.concatenate([form, form]) * steps for form in self.forms)]


def _moments(values: Vector) -> tuple[float, Vector, float]:
    """Mean, the values about it, and their standard deviation (of the population)."""
    mean = math.fsum(values.tolist()) / len(values)
    centred = values - mean
    return mean, centred, math.sqrt(exact_dot(centred, centred) / len(values))


def _neighbours(bits: Bits) -> tuple[Vector, Bits]:
    """What every value gains by one step away from zero, then by one step towards it, and the bits after the step.

    The step is 0 where the value is too small to be moved.
    """
    moved = np.concatenate([bits + np.uint16(1), bits - np.uint16(1)])
    movable = np.concatenate([(bits & 0x7FFF) > _SMALLEST] * 2)
    start = from_bits(bits)
    return np.where(movable, from_bits(np.where(movable, moved, 0)) - np.concatenate([start, start]), 0.0), moved


def _choose(errors: Sequence[float], effects: Sequence[Vector], possible: npt.NDArray[np.bool_]) -> list[int]:
    """The single move that helps most, else the best pair of moves, else none."""
    now = math.fsum(error * error for error in errors)  # the built-in sum rounds otherwise from Python 3.12 on
    cost = np.zeros(len(possible))
    for error, effect in zip(errors, effects, strict=True):
        cost += (error + effect) * (error + effect)
    cost[~possible] = np.inf
    best = int(np.argmin(cost))
    if cost[best] < _GAIN * now:
        return [best]
    return _choose_pair(cost, effects, now) if now > _GOOD else []


def _choose_pair(cost: Vector, effects: Sequence[Vector], now: float) -> list[int]:
    near = np.argsort(cost, kind="stable")[:_PAIRED]
    near = near[np.isfinite(cost[near])]
    together = cost[near][:, None] + cost[near][None, :] - now
    for effect in effects:
        together += 2 * effect[near][:, None] * effect[near][None, :]
    channel = near % (len(cost) // 2)
    together[channel[:, None] == channel[None, :]] = np.inf
    first, second = divmod(int(np.argmin(together)), len(near))
    return [int(near[first]), int(near[second])] if together[first, second] < _GAIN * now else []

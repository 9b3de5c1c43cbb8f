"""This module makes random patterns that are the same bits on every machine.

NumPy promises the bit stream of PCG64, not what its distributions make of it, and no two maths libraries agree on the
last bit of a logarithm or of a long sum. So a pattern is a sum of eight integers from the raw stream (close to a
Gaussian, within 4.9 standard deviations), scaled by one constant; every later step uses only additions,
multiplications, divisions and square roots value by value, which IEEE 754 fixes to the bit, and sums by ``math.fsum``,
which are exact before one rounding. Neither BLAS nor SIMD nor the number of threads can then show.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

__all__ = ["Vector", "draw", "exact_dot", "standardised", "stream"]

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

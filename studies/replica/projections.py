"""This module makes projection matrices: uncorrelated, of mean 0 and of given lengths.

A value is a sum of four random bytes: 1021 different numbers, so that a matrix is one look-up in a small table of BF16
bits, and its length can be counted exactly before it is made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from studies.replica.grid import Bits, round_to_bf16
from studies.replica.noise import stream
from studies.replica.values import Calibration, Projection

__all__ = ["matrices_of"]

_PARTS = 4
_LEVELS = np.arange(_PARTS * 255 + 1, dtype=np.int64) - _PARTS * 255 // 2
"""The sums less their mean: whole numbers from -510 to 510."""


def matrices_of(calibration: Calibration, key: str) -> dict[str, Bits]:
    """The matrices of one model as BF16 bits by tensor name; empty when the calibration has none."""
    return {
        name: _matrix(calibration.seed, f"{key}/{name}", projection.shape, norm)
        for projection in calibration.projections
        if projection.model == key
        for name, norm in _named(projection)
    }


def _named(projection: Projection) -> Iterator[tuple[str, float]]:
    for layer, norm in projection.norms.items():
        yield projection.name.format(layer=layer), norm


def _matrix(seed: int, label: str, shape: tuple[int, int], norm: float) -> Bits:
    size = shape[0] * shape[1]
    sums = _sums(stream(seed, label, _PARTS * size))
    counts = np.bincount(sums, minlength=len(_LEVELS))
    scale = norm / math.sqrt(int((counts * _LEVELS * _LEVELS).sum()))
    table = round_to_bf16(scale * _LEVELS.astype(np.float64))
    return table[sums].reshape(shape)


def _sums(parts: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    quarter = len(parts) // _PARTS
    total = np.zeros(quarter, dtype=np.uint16)
    for part in range(_PARTS):
        total += parts[part * quarter : (part + 1) * quarter]
    return total

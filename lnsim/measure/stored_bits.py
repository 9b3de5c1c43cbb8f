"""This module compares what two checkpoints store, bit by bit: an equal value in another dtype is not the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import RoleVectors

__all__ = ["same_bits"]


def same_bits(a: RoleVectors, b: RoleVectors) -> bool:
    """Whether both have the same layers, and weights and biases of the same stored bits."""
    if not np.array_equal(a.layers, b.layers) or (a.stored_bias is None) != (b.stored_bias is None):
        return False
    return _equal(a.stored, b.stored) and _equal(a.stored_bias, b.stored_bias)


def _equal(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()

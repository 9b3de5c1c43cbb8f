"""This module compares what two checkpoints store, bit by bit: an equal value in another dtype is not the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import RoleVectors

__all__ = ["same_bits", "why_not_bits"]


def why_not_bits(a: RoleVectors, b: RoleVectors) -> str:
    """Why there are no bits to compare, or an empty text."""
    for side, one in (("a", a), ("b", b)):
        if one.dtypes:
            return f"the layers of {side} are stored in {' and '.join(sorted(set(one.dtypes)))}"
    if a.offset != b.offset:
        return "one stores γ and the other γ minus one"
    return "" if a.stored.dtype == b.stored.dtype else f"a is stored as {a.stored.dtype}, b as {b.stored.dtype}"


def same_bits(a: RoleVectors, b: RoleVectors) -> bool:
    """Whether both have the same layers, and weights and biases of the same stored bits that mean the same γ."""
    if not np.array_equal(a.layers, b.layers) or (a.stored_bias is None) != (b.stored_bias is None):
        return False
    if (a.offset, a.dtypes) != (b.offset, b.dtypes):
        return False
    return _equal(a.stored, b.stored) and _equal(a.stored_bias, b.stored_bias)


def _equal(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()

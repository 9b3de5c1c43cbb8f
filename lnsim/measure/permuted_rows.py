"""This module computes the correlation of every layer under every permutation of the channels.

The mean over layers needs only one sum a permutation (``lnsim.measure.permutation``); the maximum needs each layer by
itself. What that costs is memory traffic: one of the stacks is gathered anew for each permutation. A block of channels
and a few permutations at a time keep what is gathered in the processor's cache, and the sums over channels are left to
the matrix product of BLAS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Orders", "layer_values"]

Floats = npt.NDArray[np.float64]

Orders = npt.NDArray[np.unsignedinteger[Any]]
"""Permutations of the channels, one a column: ``permutation.channel_orders`` makes them."""

_CHANNELS = 256
"""Channels at a time."""

_VALUES = 48_000
"""Values gathered at a time: 384 kB, less than half of a core's own cache."""


def layer_values(unit_a: Floats, unit_b: Floats, orders: Orders) -> Floats:
    """Correlation of each layer of a with the same layer of b, the channels of b permuted.

    Args:
        unit_a: rows without their means and of length 1, shape ``(n_layers, hidden_size)``.
        unit_b: the same of the other model, same shape.
        orders: shape ``(hidden_size, n_permutations)``.

    Returns:
        Shape ``(n_permutations, n_layers)``; for 9,999 permutations and 46 layers 3.7 MB.
    """
    channels_a, channels_b = np.ascontiguousarray(unit_a.T), np.ascontiguousarray(unit_b.T)
    found = np.empty((orders.shape[1], unit_a.shape[0]))
    step = max(1, _VALUES // (min(_CHANNELS, len(channels_a)) * len(unit_a)))
    for start in range(0, len(found), step):
        block = np.ascontiguousarray(orders[:, start : start + step].T)
        found[start : start + step] = _block(channels_a, channels_b, block.astype(np.intp))
    return found


def _block(channels_a: Floats, channels_b: Floats, orders: npt.NDArray[np.intp]) -> Floats:
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

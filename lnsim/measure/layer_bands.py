"""This module sets the r of each layer of two models beside the range that permuted channels give it.

The range is that of each layer by itself. Some layers of strangers lie outside: of 40 about two, and neighbours that
resemble each other do so together. Whether a pair stands out as a whole is the question of ``measure.permutation``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise
from lnsim.measure.nulls import centred_unit
from lnsim.measure.permutation import Orders, channel_orders
from lnsim.measure.permuted_rows import layer_values

__all__ = ["RANGE", "layer_bands"]

RANGE = (0.025, 0.975)
"""Quantiles of the permutations between which a layer's band lies."""


def layer_bands(a: NormVectors, b: NormVectors, roles: Iterable[str], n_permutations: int, seed: int) -> pd.DataFrame:
    """The layers that two models have in common, one row a role and layer.

    Args:
        a: one model.
        b: the other, of the same hidden size in these roles.
        roles: roles that both have.
        n_permutations: of b's channels; the same ones for all roles of a width.
        seed: of the permutations.

    Returns:
        Columns ``role``, ``layer``, ``r`` (Pearson), ``null_low`` and ``null_high`` (RANGE of the permutations). A
        layer whose r is not defined, for a constant vector, is left out.

    Raises:
        ComparisonError: when no layer is left, or there is no permutation.
    """
    orders: dict[int, Orders] = {}
    frames = []
    for role in roles:
        size = a[role].hidden_size
        if size not in orders:
            orders[size] = channel_orders(size, n_permutations, seed)
        frames.append(_role_bands(a[role], b[role], orders[size]).assign(role=role))
    found = pd.concat([frame for frame in frames if len(frame)], ignore_index=True) if any(map(len, frames)) else None
    if found is None:
        raise ComparisonError(
            f"Setting '{a.source}' and '{b.source}' beside permuted channels: no common layer has a defined r."
        )
    return found[["role", "layer", "r", "null_low", "null_high"]]


def _role_bands(a: RoleVectors, b: RoleVectors, orders: Orders) -> pd.DataFrame:
    layers, rows_a, rows_b = np.intersect1d(a.layers, b.layers, assume_unique=True, return_indices=True)
    r = np.diag(pairwise(a.scale[rows_a], b.scale[rows_b], "pearson"))
    defined = np.isfinite(r)
    if not defined.any():
        return pd.DataFrame()
    unit_a, unit_b = (
        centred_unit(one.scale[rows[defined]].astype(np.float64)) for one, rows in ((a, rows_a), (b, rows_b))
    )
    low, high = np.quantile(layer_values(unit_a, unit_b, orders), RANGE, axis=0)
    return pd.DataFrame({"layer": layers[defined], "r": r[defined], "null_low": low, "null_high": high})

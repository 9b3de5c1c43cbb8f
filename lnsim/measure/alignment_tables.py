"""This module tabulates how much of each alignment chance would give, and from which pieces an alignment is made.

One row judges one measure of one pair of stacks twice: against shuffled layers of one model, and against shuffled
channels; ``lnsim.measure.layer_nulls`` says what either breaks.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lnsim.measure.alignment_pieces import fewest_pieces, partner_counts
from lnsim.measure.layer_nulls import layer_nulls, pattern_nulls
from lnsim.measure.permutation import Orders, channel_orders
from lnsim.measure.stacks import StackPair

__all__ = ["MOST_CHANNEL_ORDERS", "nulls_table", "pieces_table"]

MOST_CHANNEL_ORDERS = 199
"""Permutations of the channels at most: each makes a whole matrix anew."""


def nulls_table(stacks: Sequence[StackPair], n_permutations: int, seed: int) -> pd.DataFrame:
    """Best offset, alignment rate, margin and one-to-one match of every pair beside both nulls.

    Args:
        stacks: as ``stack_pairs`` gives them.
        n_permutations: orders of the layers; of the channels as many, but at most MOST_CHANNEL_ORDERS.
        seed: of both.

    Returns:
        Columns ``pair``, ``group``, ``role``, ``measure``, ``value``, ``p_layers`` and ``p_channels`` (one-sided),
        ``layer_orders`` and ``channel_orders`` (how many). ``match_mean`` does not depend on the order of the layers
        and has no ``p_layers``.
    """
    orders: dict[int, Orders] = {}
    n_channels = min(n_permutations, MOST_CHANNEL_ORDERS)
    rows = []
    for stack in stacks:
        matrix, size = stack.matrices["r"], stack.a.hidden_size
        if size not in orders:
            orders[size] = channel_orders(size, n_channels, seed)
        layers = layer_nulls(matrix, n_permutations, seed)
        for measure, null in pattern_nulls(stack.a.scale, stack.b.scale, matrix, orders[size]).items():
            by_layers = layers[measure].pvalue if measure in layers else float("nan")
            chance = {"value": null.statistic, "p_layers": by_layers, "p_channels": null.pvalue}
            rows.append({**stack.name, "measure": measure, **chance})
    return pd.DataFrame(rows).assign(layer_orders=n_permutations, channel_orders=n_channels)


def pieces_table(stacks: Sequence[StackPair]) -> pd.DataFrame:
    """Which layers of each pair go together, piece by piece; a pair without any partner has one row that says so.

    Returns:
        Columns ``pair``, ``group``, ``role``; ``shorter`` (layers of the shorter stack) and how many of them have their
        best partner at the ``same`` number, ``elsewhere``, or are ``without`` one; then of each piece
        ``layers_first`` and ``layers_second`` (as text) and the mean ``r``.
    """
    rows = []
    for stack in stacks:
        counts = partner_counts(stack.matrices["r"])
        first = {**stack.name, "shorter": counts.pop("layers"), **counts}
        found, other_way = fewest_pieces(stack.matrices["r"])
        for piece in found:
            sides = {"layers_first": piece.of_a, "layers_second": piece.of_b}
            sides = {"layers_first": piece.of_b, "layers_second": piece.of_a} if other_way else sides
            rows.append({**first, **sides, "r": piece.r})
        if not found:
            rows.append({**first, "layers_first": "none", "layers_second": "none", "r": float("nan")})
    return pd.DataFrame(rows)

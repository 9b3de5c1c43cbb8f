"""This module runs what costs too much for every pair on some: all related ones, and strangers drawn from the rest.

That is the alignment of layers beside its two nulls (``lnsim.measure.layer_nulls``), and the verdict
(``lnsim.measure.verdict``) that a reader of a report would see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.cells import adjusted
from lnsim.measure.cells import tests as measured
from lnsim.measure.layer_nulls import layer_nulls, pattern_nulls
from lnsim.measure.metrics import pairwise
from lnsim.measure.permutation import channel_orders
from lnsim.measure.verdict_table import verdicts, with_partners

__all__ = ["alignment_pvalues", "sampled_pairs", "verdict_keys"]

_BY_LAYERS, _BY_CHANNELS = "layers permuted, ", "channels permuted, "


def sampled_pairs(truth: pd.DataFrame, n_sampled: int, seed: int) -> pd.DataFrame:
    """All related pairs, and so many strangers of the same design, drawn without replacement, in the order of `truth`.

    Strangers of the same design are the hard ones: what else differs between two models tells them apart anyway.
    """
    strangers = np.flatnonzero((truth["group"] == "independent") & truth["same_design"])
    drawn = np.random.default_rng(seed).permutation(strangers)[:n_sampled]
    kin = np.flatnonzero(truth["group"] != "independent")
    return truth.iloc[np.sort(np.concatenate([kin, drawn]))]


def alignment_pvalues(
    models: Mapping[str, NormVectors], pairs: pd.DataFrame, role: str, n_permutations: int, seed: int
) -> pd.DataFrame:
    """The p-value of every measure of alignment under both its nulls, one row a pair; NaN where a layer is constant.

    Args:
        models: vectors by key, of one hidden size.
        pairs: columns ``a`` and ``b``.
        role: the norm whose layers are aligned.
        n_permutations: of the layers, and of the channels.
        seed: of both.
    """
    orders = channel_orders(next(iter(models.values())).hidden_size, n_permutations, seed)
    rows: list[dict[str, float]] = []
    for a, b in zip(pairs["a"], pairs["b"], strict=True):
        one, other = models[a][role], models[b][role]
        matrix = pd.DataFrame(pairwise(one.scale, other.scale, "pearson"), index=one.layers, columns=other.layers)
        if matrix.isna().to_numpy().any():
            rows.append({})
            continue
        by_layers = layer_nulls(matrix, n_permutations, seed)
        by_channels = pattern_nulls(one.scale, other.scale, matrix, orders)
        named = chain(
            ((_BY_LAYERS + name, null.pvalue) for name, null in by_layers.items()),
            ((_BY_CHANNELS + name, null.pvalue) for name, null in by_channels.items()),
        )
        rows.append(dict(named))
    return pd.DataFrame(rows, index=pairs.index)


def verdict_keys(
    models: Mapping[str, NormVectors], pairs: pd.DataFrame, roles: Sequence[str], n_permutations: int, seed: int
) -> pd.Series:
    """The key of the verdict's sentence on each pair, judged by itself: p is adjusted over its own tests alone.

    Args:
        models: vectors by key.
        pairs: columns ``a`` and ``b``.
        roles: norms tested, each with its equal.
        n_permutations: of the channels.
        seed: of the permutations.
    """
    both = list(zip(pairs["a"], pairs["b"], strict=True))
    tests = with_partners(models, measured(models, both, roles, n_permutations, seed))
    groups = tests.assign(norms=tests["role"]).groupby(["a", "b"], sort=False)
    found = {pair: verdicts(adjusted(rows.copy()), n_permutations)["verdict"].iloc[0] for pair, rows in groups}
    return pd.Series([found[pair] for pair in both], index=pairs.index)

"""This module gives the three frames that experiments are made of: one row a vector, a comparison, or a pair of models.

They are plain data frames: what is computed from them, and how, stands in the notebook that does so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.comparable import matched_layers, obstacle, obstacle_to_test, two_roles, why_not_bits
from lnsim.measure.metrics import METRICS, pairwise
from lnsim.measure.nulls import centred_unit, holm
from lnsim.measure.permutation import Orders, channel_orders, layer_values, matched_null
from lnsim.measure.rows import Matrix, row_statistics

Models = Mapping[str, NormVectors]
Pair = tuple[str, str] | Sequence[str]
Role = str | tuple[str, str] | Sequence[str]  # a role of both models, or one of each
_RANGE = (0.025, 0.975)


def statistics(models: Models, roles: Sequence[str] | None = None) -> pd.DataFrame:
    """One row a vector of these models, by name, and of these roles, as far as a model has them; of all where None.

    Columns are ``model``, ``role``, ``layer``, ``channels``, ``norm_type``; ``mean``, ``std`` (ddof 0), ``norm``,
    ``min`` and ``max`` over the channels of the effective γ; ``share``, its mean over its root mean square;
    ``negative``, the share of channels below 0; ``name``, the tensor's. ComparisonError where there is no row.

    >>> import lnsim
    >>> frame = statistics({"smollm2": lnsim.load("smollm2-135m-instruct")}, ["pre_attention"])
    >>> frame[frame.layer < 2].share.round(3).tolist()
    [0.027, 0.944]
    """
    frames = []
    for key, vectors in models.items():
        for role, one in vectors.roles.items():
            if roles is None or role in roles:
                found = row_statistics(one.scale)
                where = {"model": key, "role": one.role, "layer": one.layers, "channels": one.hidden_size}
                values = {name: getattr(found, name) for name in ("mean", "std", "norm", "min", "max", "share")}
                values |= {"negative": (one.scale < 0).mean(axis=1), "name": list(one.names)}
                frames.append(pd.DataFrame({**where, "norm_type": one.norm_type, **values}))
    if not frames:
        raise ComparisonError(
            f"Taking statistics: none of {len(models)} models has a norm of {', '.join(roles or ())}."
        )
    return pd.concat(frames, ignore_index=True)


def cells(
    models: Models,
    pairs: Iterable[Pair],
    roles: Iterable[Role],
    metrics: Sequence[str] = ("cosine", "pearson"),
    layers: Iterable[int] | None = None,
) -> pd.DataFrame:
    """One row a comparison of two vectors: every layer of one model with every layer of the other.

    Pairs name two models; a model beside itself compares its layers with one another. A role is that of both, or two
    are named, one of each; a pair that lacks one, or of two widths, has no rows. `layers` are the numbers wanted on
    either side, as far as a model has them; all where None.

    Columns are ``a``, ``b``, ``role`` (or ``role_a × role_b``), ``layer_a``, ``layer_b``, ``offset`` (b less a), one a
    metric, ``share_a`` and ``share_b`` (mean over root mean square), and ``mean_term``, their product: the cosine that
    the means alone would give. ``changed_ratio`` is NaN where there are no bits to compare. ComparisonError for a
    metric that there is not, or when no pair has a row.

    >>> import lnsim
    >>> one = {"smollm2": lnsim.load("smollm2-135m-instruct")}
    >>> frame = cells(one, [("smollm2", "smollm2")], ["pre_attention"])
    >>> frame[(frame.layer_a == 0) & (frame.layer_b == 10)].cosine.round(3).tolist()
    [0.035]
    """
    if unknown := [name for name in metrics if name not in METRICS]:
        raise ComparisonError(f"There is no metric '{unknown[0]}'; the known ones are {', '.join(METRICS)}.")
    wanted = [_two(role) for role in roles]
    only = None if layers is None else list(layers)
    frames = []
    for (a, b), names in product(pairs, wanted):
        if not obstacle(models, a, b, names):
            one, other = _only(models[a][names[0]], only), _only(models[b][names[1]], only)
            if len(one.layers) and len(other.layers):
                frames.append(_cells((a, b), names, one, other, metrics))
    if not frames:
        raise ComparisonError(
            f"Comparing layers: no pair has norms of {', '.join(map(two_roles, wanted))} of one width."
        )
    return pd.concat(frames, ignore_index=True)


def _cells(
    pair: tuple[str, str], roles: tuple[str, str], a: RoleVectors, b: RoleVectors, metrics: Sequence[str]
) -> pd.DataFrame:
    shares = [row_statistics(one.scale).share for one in (a, b)]
    rows, columns = (grid.ravel() for grid in np.meshgrid(a.layers, b.layers, indexing="ij"))
    found: dict[str, Any] = {"a": pair[0], "b": pair[1], "role": two_roles(roles), "layer_a": rows, "layer_b": columns}
    found["offset"] = columns - rows
    found |= {name: _measured(a, b, name) for name in metrics}
    found |= {"share_a": np.repeat(shares[0], len(b.layers)), "share_b": np.tile(shares[1], len(a.layers))}
    return pd.DataFrame({**found, "mean_term": np.outer(*shares).ravel()})


def _only(one: RoleVectors, layers: list[int] | None) -> RoleVectors:
    if layers is None:
        return one
    rows = np.flatnonzero(np.isin(one.layers, layers))
    names = tuple(one.names[row] for row in rows)
    dtypes = tuple(one.dtypes[row] for row in rows) if one.dtypes else ()
    kept = {name: getattr(one, name)[rows] for name in ("layers", "scale", "stored")}
    return replace(one, **kept, names=names, dtypes=dtypes, bias=None, stored_bias=None, bias_names=())


def _measured(a: RoleVectors, b: RoleVectors, metric: str) -> Matrix:
    if metric != "changed_ratio":
        return pairwise(a.scale, b.scale, metric).ravel()
    if why_not_bits(a, b):
        return np.full(len(a.layers) * len(b.layers), np.nan)
    return pairwise(a.stored, b.stored, metric).ravel()


def tests(
    models: Models, pairs: Iterable[Pair], roles: Iterable[Role], n_permutations: int = 9999, seed: int = 0
) -> pd.DataFrame:
    """One row a pair and role: the mean r of matched layers under permutations of the channels.

    Pairs and roles are named as for ``cells``. The permutations of the channels of b are shared by all layers, and by
    all pairs of one width; p is one-sided, for large r.

    Columns are ``a``, ``b``, ``role``, ``obstacle`` (why it is not tested, else empty), ``layers`` (matched),
    ``channels``; ``r`` and its null's ``null_mean``, ``null_std``, ``null_low`` and ``null_high`` (its middle 95 %),
    ``pvalue``; ``rank_r`` and ``p_ranks``, the same by ranks; ``p_holm`` and ``p_ranks_holm``, adjusted over all rows.
    ComparisonError when no pair was given.

    >>> import lnsim
    >>> both = {name: lnsim.load(name) for name in ("all-minilm-l6-v2", "sre-minilm-l6")}
    >>> tests(both, [list(both)], ["post_mlp"], n_permutations=99)[["layers", "pvalue"]].values.tolist()
    [[6.0, 0.01]]
    """
    orders: dict[int, Orders] = {}
    rows = []
    for (a, b), names in product(pairs, map(_two, roles)):
        why_not = obstacle_to_test(models, a, b, names)
        found: dict[str, Any] = {"a": a, "b": b, "role": two_roles(names), "obstacle": why_not}
        if not why_not:
            one, other = models[a][names[0]], models[b][names[1]]
            size = one.hidden_size
            if size not in orders:
                orders[size] = channel_orders(size, n_permutations, seed)
            found |= _tested(one, other, orders[size])
        rows.append(found)
    if not rows:
        raise ComparisonError("Testing pairs: none was given, or none has the vectors of both its models.")
    return adjusted(pd.DataFrame(rows).reindex(columns=["a", "b", "role", "obstacle", *_TESTED]))


tests.__test__ = False  # type: ignore[attr-defined]  # its name is not for pytest


_TESTED = (
    "layers", "channels", "r", "null_mean", "null_std", "null_low", "null_high", "pvalue", "rank_r", "p_ranks",
)  # fmt: skip


def _tested(a: RoleVectors, b: RoleVectors, orders: Orders) -> dict[str, Any]:
    _, rows_a, rows_b = matched_layers(a, b)
    matched = a.scale[rows_a], b.scale[rows_b]
    null, ranks = (matched_null(*matched, orders, correlation=kind) for kind in ("pearson", "spearman"))
    low, high = np.quantile(null.null_distribution, _RANGE)
    values = (len(rows_a), a.hidden_size, null.statistic, null.null_mean, null.null_std, low, high, null.pvalue)
    return dict(zip(_TESTED, (*values, ranks.statistic, ranks.pvalue), strict=True))


def layer_bands(a: NormVectors, b: NormVectors, roles: Iterable[str], n_permutations: int, seed: int) -> pd.DataFrame:
    """The r of each layer that two models have in common, beside the range that permuted channels give it.

    The range is that of each layer by itself. Some layers of strangers lie outside: of 40 about two, and neighbours
    that resemble each other do so together. Whether a pair stands out as a whole is what ``tests`` asks.

    Columns ``role``, ``layer``, ``r`` (Pearson), ``null_low`` and ``null_high``: the middle 95 % under permutations of
    b's channels, the same ones for all roles of a width. A layer whose r is not defined, for a constant vector, is left
    out; ComparisonError where none is left.
    """
    roles = list(roles)
    orders = {size: channel_orders(size, n_permutations, seed) for size in {a[role].hidden_size for role in roles}}
    found = [frame for role in roles if len(frame := _role_bands(role, a[role], b[role], orders))]
    if not found:
        raise ComparisonError(
            f"Setting '{a.source}' and '{b.source}' beside permuted channels: no common layer has a defined r."
        )
    return pd.concat(found, ignore_index=True)


def _role_bands(role: str, a: RoleVectors, b: RoleVectors, orders: Mapping[int, Orders]) -> pd.DataFrame:
    layers, rows_a, rows_b = matched_layers(a, b)
    r = np.diag(pairwise(a.scale[rows_a], b.scale[rows_b], "pearson"))
    defined = np.isfinite(r)
    if not defined.any():
        return pd.DataFrame()
    unit_a, unit_b = (
        centred_unit(one.scale[rows[defined]].astype(np.float64)) for one, rows in ((a, rows_a), (b, rows_b))
    )
    values = layer_values(unit_a, unit_b, orders[a.hidden_size])
    low, high = np.quantile(values, _RANGE, axis=0)
    return pd.DataFrame({"role": role, "layer": layers[defined], "r": r[defined], "null_low": low, "null_high": high})


def adjusted(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with ``p_holm`` and ``p_ranks_holm``: adjusted over those without an ``obstacle``, NaN in the others."""
    tested = frame["obstacle"] == ""
    for name, column in (("pvalue", "p_holm"), ("p_ranks", "p_ranks_holm")):
        frame[column] = np.nan
        frame.loc[tested, column] = holm(frame.loc[tested, name].tolist())
    return frame


def _two(role: Role) -> tuple[str, str]:
    return (role, role) if isinstance(role, str) else (role[0], role[1])

"""This module compares the pairs that a study lists by kind of norm, also where the two norms have different roles.

A norm before the attention in one model may face the norm on the attention output of another. Each comparison stands
beside what chance gives: its cosine beside the cosine of the means alone, its r beside permuted channels, and the
same test once more on ranks and without the most extreme channels of either model, since a few of them can carry r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.influence import carrying_channels, extreme_channels, without_extremes
from lnsim.measure.matched import MatchedRows
from lnsim.measure.model_pairs import PAIR_GROUPS
from lnsim.measure.nulls import Floats, NullResult, holm
from lnsim.measure.permutation import Orders, channel_orders, matched_null

__all__ = ["KnownRelation", "ListedPair", "comparable", "listed_pairs", "pairs_of"]

_RANGE = (0.025, 0.975)

_FEW = 8
"""More channels than these are not named: what so many carry is no matter of a few."""


class KnownRelation(Protocol):
    """What a study says of two models; ``lnsim.study.catalog.Relation`` is one."""

    @property
    def kind(self) -> str:
        """What the relation is, for example ``fine_tune``."""

    @property
    def group(self) -> str:
        """One of PAIR_GROUPS."""


@dataclass(frozen=True, slots=True)
class ListedPair:
    """Two models and the role of each that is compared.

    Args:
        a: key of one model.
        b: key of the other.
        role_a: the role taken from the first.
        role_b: the role taken from the other.
        norms: what readers see of the two roles together, for example ``encoder attention``.
    """

    a: str
    b: str
    role_a: str
    role_b: str
    norms: str

    def __post_init__(self) -> None:
        if self.a == self.b or not self.norms.strip():
            raise ComparisonError(f"Listing '{self.a}' with '{self.b}': expected two models and a name for the norms.")


def pairs_of(comparisons: Mapping[str, Mapping[str, Any]]) -> tuple[ListedPair, ...]:
    """The pairs that a study lists, those of two models side by side.

    Args:
        comparisons: by the name of the norms, ``roles`` (one of each model) and ``pairs`` (of keys, in that order).
    """
    found = []
    for norms, table in comparisons.items():
        role_a, role_b = table["roles"]
        found += [ListedPair(a, b, role_a, role_b, norms) for a, b in table["pairs"]]
    order = list(dict.fromkeys((one.a, one.b) for one in found))
    return tuple(sorted(found, key=lambda one: order.index((one.a, one.b))))


def listed_pairs(
    models: Mapping[str, NormVectors],
    pairs: Sequence[ListedPair],
    relation: Callable[[str, str], KnownRelation],
    labels: Mapping[str, str],
    n_permutations: int,
    seed: int,
) -> pd.DataFrame:
    """Every listed pair over its common layers, the related ones first.

    Args:
        models: vectors by key; a pair is left out where they lack one of its models or roles.
        pairs: in the order in which readers meet them.
        relation: what is known of two keys.
        labels: what readers see of each key.
        n_permutations: of the channels, one shared by all layers of a pair; the same ones for every pair of a size.
        seed: of the permutations.

    Returns:
        Columns ``pair``, ``norms``, ``relation``, ``group``, ``layers`` (how many are common); means over them:
        ``cosine``, ``mean_term`` (the cosine that the means alone give) and ``r``; ``null_low`` and ``null_high`` (95 %
        of the permutations), ``pvalue`` and ``p_ranks`` (both one-sided), and ``p_holm``, the former adjusted within
        its group. ``r_without`` and ``p_without``: the same test without the ``extremes`` most extreme channels, 1 %
        of either model's, chosen in each model by itself. ``carriers``: the fewest channels, one after the other,
        without which r is within one standard deviation of its null, as text; ``many`` where eight (or as many as
        `extremes`, if these are fewer) do not do, ``none`` where r is there with all channels.

    Raises:
        ComparisonError: when no pair can be compared, or a layer is constant.
    """
    orders: dict[int, Orders] = {}
    rows = []
    for one, role_a, role_b in comparable(models, pairs):
        a, b, size = MatchedRows.of(role_a), MatchedRows.of(role_b), role_a.hidden_size
        if size not in orders:
            orders[size] = channel_orders(size, n_permutations, seed)
        known = relation(one.a, one.b)
        words = {"pair": f"{labels[one.a]} × {labels[one.b]}", "norms": one.norms}
        rows.append(words | {"relation": known.kind, "group": known.group} | _measured(a, b, orders[size]))
    if not rows:
        raise ComparisonError(f"Comparing {len(pairs)} listed pairs: the models read have the roles of none of them.")
    frame = pd.DataFrame(rows).sort_values("group", key=lambda names: names.map(PAIR_GROUPS.index), kind="stable")
    frame["p_holm"] = frame.groupby("group")["pvalue"].transform(lambda values: holm(values.tolist()))
    return frame.reset_index(drop=True)


def comparable(
    models: Mapping[str, NormVectors], pairs: Sequence[ListedPair]
) -> Iterator[tuple[ListedPair, RoleVectors, RoleVectors]]:
    """Each pair with the vectors of its two roles; one is left out where the models or roles are not there."""
    for one in pairs:
        have = all(
            key in models and role in models[key].roles for key, role in ((one.a, one.role_a), (one.b, one.role_b))
        )
        if have and models[one.a].hidden_size == models[one.b].hidden_size:
            yield one, models[one.a][one.role_a], models[one.b][one.role_b]


def _measured(a: MatchedRows, b: MatchedRows, orders: Orders) -> dict[str, Any]:
    values = a.against(b)
    rows_a, rows_b = (one.unit[np.isin(one.layers, values["layer"])] for one in (a, b))
    null: NullResult = matched_null(rows_a, rows_b, orders)
    low, high = (float(edge) for edge in np.quantile(null.null_distribution, _RANGE))
    return {
        "layers": len(values),
        **{name: float(values[name].mean()) for name in ("cosine", "mean_term", "r")},
        "null_low": low,
        "null_high": high,
        "pvalue": null.pvalue,
        "p_ranks": matched_null(rows_a, rows_b, orders, correlation="spearman").pvalue,
        **_without(rows_a, rows_b, orders, null.exact_std),
    }


def _without(a: Floats, b: Floats, orders: Orders, std: float) -> dict[str, Any]:
    extremes = len({*extreme_channels(a), *extreme_channels(b)})
    null = matched_null(without_extremes(a), without_extremes(b), orders)
    carried = carrying_channels(a, b, below=std, most=min(extremes, _FEW))
    few = ", ".join(str(channel) for channel in sorted(carried.channels)) or "none"
    return {
        "r_without": null.statistic,
        "p_without": null.pvalue,
        "extremes": extremes,
        "carriers": few if abs(carried.r_without) <= std else "many",
    }

"""This module asks how far two related models may drift apart before the permutation test no longer finds them.

A model is drawn from a template, and a second one is made from it in one of three ways. The share of such pairs that
the test finds at a level is its power there. Everything is synthetic; only the template was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.drawn_models import Template
from lnsim.measure.nulls import Floats
from lnsim.measure.permutation import Orders, channel_orders, matched_null

__all__ = ["CHANGES", "NOISE", "UPDATES", "amounts", "farthest_found", "power_curve", "power_curves"]

UPDATES = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 1.0)
"""Shares of the pattern that are replaced."""

NOISE = (4.0, 8.0, 16.0, 32.0, 64.0)
"""Noise in units of the layer's spread."""

_ENOUGH = 0.9
"""Share of pairs that must be found for a change to count as found."""

_SEARCHES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "mean r": MappingProxyType({}),
        "mean r of ranks": MappingProxyType({"correlation": "spearman"}),
        "largest r": MappingProxyType({"statistic": "max"}),
    }
)


def _updated(template: Template, pattern: Floats, amount: float, generator: np.random.Generator) -> Floats:
    """A part of the pattern is replaced by that of another model of the same template."""
    return (1 - amount) * pattern + amount * template.patterns(pattern.shape[1], generator)


def _noisy(template: Template, pattern: Floats, amount: float, generator: np.random.Generator) -> Floats:
    """Normal noise is added, independent for every value."""
    return pattern + amount * generator.standard_normal(pattern.shape)


def _partly_copied(template: Template, pattern: Floats, amount: float, generator: np.random.Generator) -> Floats:
    """A share of the layers, chosen at random, is kept; the others are those of another model of the template."""
    other = template.patterns(pattern.shape[1], generator)
    kept = generator.permutation(len(pattern))[: round(amount * len(pattern))]
    other[kept] = pattern[kept]
    return other


CHANGES: Mapping[str, Callable[[Template, Floats, float, np.random.Generator], Floats]] = MappingProxyType(
    {"share of update": _updated, "added noise": _noisy, "share of layers": _partly_copied}
)
"""How the second model is made: the amount is the share replaced, the noise in units of spread, the share kept."""


def power_curve(
    template: Template,
    change: str,
    amounts: Sequence[float],
    n_channels: int,
    n_draws: int,
    n_permutations: int,
    seed: int,
    level: float = 0.01,
) -> pd.DataFrame:
    """The share of pairs found, by how much the second model was changed.

    Args:
        template: of the first model.
        change: one of CHANGES.
        amounts: of the change, in the order in which they are tried.
        n_channels: of the drawn models.
        n_draws: pairs for each amount.
        n_permutations: of each test, the same ones for all pairs.
        seed: of the draws and permutations.
        level: at which a pair counts as found.

    Returns:
        One row an amount and search (mean r, mean r of ranks, largest r): ``change``, ``amount``, ``search``,
        ``found`` (share of the pairs), and ``low`` and ``high``, its 95 % interval (Wilson).

    Raises:
        ComparisonError: for an unknown change, no draw, or a level that so few permutations cannot reach.
    """
    if change not in CHANGES or n_draws < 1 or level < 1 / (1 + n_permutations):
        raise ComparisonError(
            f"Looking for the power after '{change}': expected one of {', '.join(CHANGES)}, at least 1 draw (found "
            f"{n_draws}), and a level that {n_permutations} permutations can reach (found {level:g})."
        )
    generator, orders = np.random.default_rng(seed), channel_orders(n_channels, n_permutations, seed)
    rows = []
    for amount in amounts:
        hits = dict.fromkeys(_SEARCHES, 0)
        for _ in range(n_draws):
            pattern = template.patterns(n_channels, generator)
            changed = CHANGES[change](template, pattern, amount, generator)
            for search, p in _searched(pattern, changed, orders).items():
                hits[search] += p <= level
        rows += [
            {"change": change, "amount": amount, "search": search} | _share(n, n_draws) for search, n in hits.items()
        ]
    return pd.DataFrame(rows)


def power_curves(
    template: Template,
    steps: Mapping[str, Sequence[float]],
    n_channels: int,
    n_draws: int,
    n_permutations: int,
    seed: int,
) -> pd.DataFrame:
    """``power_curve`` of several changes, one below the other; `steps` are the amounts by the change's name."""
    curves = [
        power_curve(template, change, tried, n_channels, n_draws, n_permutations, seed)
        for change, tried in steps.items()
    ]
    return pd.concat(curves, ignore_index=True)


def amounts(template: Template) -> dict[str, tuple[float, ...]]:
    """The amounts of every change that are tried: of the layers none to three, then half and all of them."""
    n = len(template.level)
    layers = sorted({*range(min(4, n)), n // 2, n})
    return {"share of update": UPDATES, "added noise": NOISE, "share of layers": tuple(one / n for one in layers)}


def farthest_found(curves: pd.DataFrame) -> pd.DataFrame:
    """For each change and search the last amount, from the likest pairs on, up to which nine in ten are found.

    Returns:
        Columns ``change``, ``search``, ``amount`` (NaN where not even the likest are found) and ``found`` there.
    """
    rows = []
    for (change, search), curve in curves.groupby(["change", "search"], sort=False):
        likest_first = curve.sort_values("amount", ascending=change != "share of layers")
        reached = likest_first[(likest_first["found"] >= _ENOUGH).cummin()]
        last = reached.iloc[-1] if len(reached) else {"amount": np.nan, "found": np.nan}
        rows.append({"change": change, "search": search, "amount": last["amount"], "found": last["found"]})
    return pd.DataFrame(rows)


def _searched(a: Floats, b: Floats, orders: Orders) -> dict[str, float]:
    return {search: matched_null(a, b, orders, **given).pvalue for search, given in _SEARCHES.items()}


def _share(hits: int, n: int) -> dict[str, float]:
    interval = stats.binomtest(hits, n).proportion_ci(method="wilson")
    return {"found": hits / n, "low": float(interval.low), "high": float(interval.high)}

"""This module sums a contest up: areas under ROC curves, what is found of each kind, how often strangers are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lnsim.measure.benchmark.contest import METHODS, Contest
from lnsim.measure.benchmark.level_rows import Floats
from lnsim.measure.benchmark.roc import ALL, EXPECTED, Chosen, areas, rates
from lnsim.measure.verdict import SIGNALS

__all__ = [
    "LEVELS",
    "area_table",
    "areas_by_kind",
    "detection",
    "distributions",
    "false_positives",
    "over_threshold",
    "stranger_sets",
    "verdict_counts",
]

LEVELS = (0.05, 0.01)
"""Levels at which tests are held to their word."""

_GROUPS = ("derived", "siblings", "independent")

_QUANTILES = {"low": 0.05, "median": 0.5, "high": 0.95}


def stranger_sets(truth: pd.DataFrame) -> dict[str, Chosen]:
    """The sets of strangers that related pairs are set against: all of them, and those of one design."""
    strangers = (truth["group"] == "independent").to_numpy()
    same = truth["same_design"].to_numpy(dtype=bool)
    return {"strangers of one design": strangers & same, "all strangers": strangers}


def area_table(found: Contest, weights: Floats) -> pd.DataFrame:
    """The area under the ROC curve of every method, for both sets of derived pairs and both sets of strangers.

    Args:
        found: what every method said.
        weights: as ``roc.lineage_weights`` gives them.

    Returns:
        One row a method and combination: ``method``, ``about``, ``pairs`` (ALL or EXPECTED), ``against`` (a set of
        strangers), ``n``, ``n_strangers``, ``undefined``, ``area``, ``low``, ``high``.
    """
    rows = []
    for method, about in METHODS.items():
        for against, strangers in stranger_sets(found.truth).items():
            table = _areas(found, weights, method, strangers)
            for pairs in (ALL, EXPECTED):
                row = table.loc[pairs]
                rows.append(
                    {"method": method, "about": about, "pairs": pairs, "against": against, "n": int(row["n"]),
                     "n_strangers": int((strangers & found.applicable(method)).sum()),
                     "undefined": int(row["undefined"]), **row[["area", "low", "high"]]}
                )  # fmt: skip
    return pd.DataFrame(rows)


def areas_by_kind(found: Contest, weights: Floats, methods: Sequence[str]) -> pd.DataFrame:
    """The area of some methods for every kind of related pair, against strangers of one design.

    Returns:
        One row a kind and method: ``kind``, ``blind``, ``method``, and the columns of ``roc.areas``.
    """
    strangers = next(iter(stranger_sets(found.truth).values()))
    blind = found.truth.groupby("kind")["blind"].first()
    frames = [_areas(found, weights, method, strangers).reset_index().assign(method=method) for method in methods]
    joined = pd.concat(frames, ignore_index=True)
    return joined.assign(blind=joined["kind"].map(blind).fillna(False).astype(bool))


def _areas(found: Contest, weights: Floats, method: str, strangers: Chosen) -> pd.DataFrame:
    """``roc.areas`` of a method over the pairs that it is a method for."""
    its = found.applicable(method)
    return areas(found.scores.loc[its, method].to_numpy(), found.truth[its], weights[:, its], strangers[its])


def detection(found: Contest, tests: Sequence[str], level: float) -> pd.DataFrame:
    """The share of the pairs of each kind that each test calls related at a level; an undefined p calls nothing.

    Returns:
        Index ``kind``; columns ``group``, ``blind``, ``n``, ``lineages`` (that the pairs come from), ``undefined`` (by
        the first test), and one for each test.
    """
    called = pd.DataFrame({test: (found.pvalues[test] <= level).where(found.applicable(test)) for test in tests})
    rows: dict[str, dict[str, Any]] = {}
    for kind, pairs in found.truth.groupby("kind", sort=False):
        rows[str(kind)] = {
            "group": pairs["group"].iloc[0],
            "blind": bool(pairs["blind"].iloc[0]),
            "n": len(pairs),
            "lineages": pd.unique(pairs[["lineage_a", "lineage_b"]].to_numpy().ravel()).size,
            "undefined": int(found.pvalues.loc[pairs.index, tests[0]].isna().sum()),
            **called.loc[pairs.index].astype(float).mean(),
        }
    in_order = sorted(rows, key=lambda kind: (_GROUPS.index(rows[kind]["group"]), rows[kind]["blind"]))
    return pd.DataFrame.from_dict(rows, orient="index").loc[in_order].rename_axis("kind")


def false_positives(found: Contest, weights: Floats, tests: Sequence[str]) -> pd.DataFrame:
    """How often strangers are called related, by test, set of strangers and level, with intervals over lineages.

    Returns:
        Columns ``test``, ``strangers``, ``n`` (pairs with a defined p), ``undefined``, ``level``, ``share``, ``low``,
        ``high`` and ``kept``: whether the interval does not lie above the level.
    """
    rows = []
    for test in tests:
        pvalues = found.pvalues[test].to_numpy()
        defined, its = ~np.isnan(pvalues), found.applicable(test)
        for name, chosen in stranger_sets(found.truth).items():
            for level in LEVELS:
                some = chosen & defined & its
                share, low, high = rates(pvalues <= level, weights, some) if some.any() else (np.nan,) * 3
                rows.append(
                    {"test": test, "strangers": name, "n": int(some.sum()),
                     "undefined": int((chosen & ~defined & its).sum()), "level": level, "share": share, "low": low,
                     "high": high, "kept": not low > level}
                )  # fmt: skip
    return pd.DataFrame(rows)


def over_threshold(found: Contest, threshold: float) -> pd.DataFrame:
    """The share of pairs whose mean cosine is at least a threshold: index ``kind``, columns ``n`` and ``share``.

    The last row repeats the strangers of one design, which are among all strangers.
    """
    over = found.scores["cosine"] >= threshold
    rows = {str(kind): over[pairs.index] for kind, pairs in found.truth.groupby("kind", sort=False)}
    name, chosen = next(iter(stranger_sets(found.truth).items()))
    rows[name] = over[chosen]
    frame = pd.DataFrame({"n": {kind: len(one) for kind, one in rows.items()}})
    return frame.assign(share={kind: one.mean() for kind, one in rows.items()}).rename_axis("kind")


def distributions(found: Contest) -> pd.DataFrame:
    """Every method's values over derived pairs and over strangers of either set: n, undefined, and quantiles.

    Returns:
        One row a method and set: ``method``, ``pairs``, ``n``, ``undefined``, ``low`` (5 %), ``median``, ``high`` (95
        %). Distances have their sign back, and tests show p.
    """
    derived = (found.truth["group"] == "derived").to_numpy()
    sets = {ALL: derived, EXPECTED: derived & ~found.truth["blind"].to_numpy(dtype=bool), **stranger_sets(found.truth)}
    rows = []
    for method in METHODS:
        values = found.scores[method] if method in ("cosine", "pearson", "spearman") else -found.scores[method]
        for name, chosen in sets.items():
            some = values[chosen & found.applicable(method)]
            edges = {edge: some.quantile(share) for edge, share in _QUANTILES.items()}
            rows.append({"method": method, "pairs": name, "n": len(some), "undefined": int(some.isna().sum()), **edges})
    return pd.DataFrame(rows)


def verdict_counts(pairs: pd.DataFrame, keys: pd.Series, order: Mapping[str, str]) -> pd.DataFrame:
    """How often each sentence was chosen, by kind of pair, and the share of those that speak of a signal.

    Args:
        pairs: as ``sampled.sampled_pairs`` gives them.
        keys: as ``sampled.verdict_keys`` gives them.
        order: the keys of the sentences, in the order of the columns.
    """
    counts = pd.crosstab(pairs["kind"], keys)
    counts = counts[[key for key in order if key in counts]].loc[list(dict.fromkeys(pairs["kind"]))]
    signal = keys.isin(SIGNALS).groupby(pairs["kind"]).mean()
    return counts.assign(n=counts.sum(axis=1), signal=signal).rename_axis("kind")

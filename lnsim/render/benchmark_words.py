"""This module words a contest of methods: the areas, and every place where one did worse, or better, than expected."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from lnsim.measure.benchmark.roc import ALL, EXPECTED
from lnsim.measure.benchmark.truth import STRANGERS
from lnsim.measure.nulls import LEVEL
from lnsim.render.words import listed, rounded

__all__ = ["NAMES", "area_rows", "areas_in_words", "call_rows", "stranger_rows", "surprises"]

NAMES: Mapping[str, str] = {
    "cosine": "raw cosine",
    "pearson": "Pearson’s r",
    "p, mean r": "permutation p",
    "p, best partners": "p of best partners",
}
"""The methods that figures show, by name, as readers see them: the one under dispute first."""

_MARGIN = 0.005
"""Areas that differ by less are called equal: they would be, at the two digits that readers see."""


def areas_in_words(table: pd.DataFrame, pairs: str, against: str, interval: bool = True) -> str:
    """The areas of the methods in NAMES (the first three), with their intervals, for one combination of sets."""
    rows = table[(table["pairs"] == pairs) & (table["against"] == against)].set_index("method")
    return listed(
        f"{name} {_with_interval(row['area'], row['low'], row['high']) if interval else rounded(row['area'], '.2f')}"
        for name, row in ((name, rows.loc[method]) for method, name in list(NAMES.items())[:3])
    )


def area_rows(areas: pd.DataFrame) -> pd.DataFrame:
    """The areas with their intervals, one row a method, one column a set of derived pairs and a set of strangers."""
    shown = areas.assign(value=[_with_interval(*ends) for ends in areas[["area", "low", "high"]].to_numpy()])
    table = shown.pivot(index="method", columns=["pairs", "against"], values="value")
    table = table[list(dict.fromkeys(zip(areas["pairs"], areas["against"], strict=True)))]
    table.columns = [f"{pairs}, {against}" for pairs, against in table.columns]
    return table.loc[list(dict.fromkeys(areas["method"]))].rename_axis("measure or test")


def stranger_rows(falses: pd.DataFrame) -> pd.DataFrame:
    """The shares of strangers called related, with their intervals: one row a test, one column a level and set."""
    ends = falses[["share", "low", "high"]].to_numpy()
    shown = falses.assign(value=[_with_interval(share, low, high, ".3f") for share, low, high in ends])
    table = shown.pivot(index="test", columns=["level", "strangers"], values="value")
    table = table[list(dict.fromkeys(zip(falses["level"], falses["strangers"], strict=True)))]
    table.columns = [f"at {level:g}, {strangers}" for level, strangers in table.columns]
    return table.loc[list(dict.fromkeys(falses["test"]))]


def _with_interval(value: float, low: float, high: float, spec: str = ".2f") -> str:
    if math.isnan(value):
        return "none"
    return f"{rounded(value, spec)} ({rounded(low, spec)} to {rounded(high, spec)})"


def surprises(
    areas: pd.DataFrame, by_kind: pd.DataFrame, called: pd.DataFrame, falses: pd.DataFrame, verdicts: pd.DataFrame
) -> list[str]:
    """Sentences on all that did not come out as a user of these tests would expect; none where all did.

    Args:
        areas: as ``benchmark.tables.area_table`` gives it.
        by_kind: as ``areas_by_kind``; it holds the methods of NAMES.
        called: as ``detection``, at the level of the sentences.
        falses: as ``false_positives``.
        verdicts: as ``verdict_counts``.
    """
    return [
        *_behind_cosine(areas, by_kind),
        *_missed(called),
        *_seen(called),
        *_broken(falses),
        *_false_signals(verdicts),
    ]


def _behind_cosine(areas: pd.DataFrame, by_kind: pd.DataFrame) -> list[str]:
    """Where the raw cosine ranks pairs better than Pearson's r does: which sets, and which kinds bring it about."""
    found = []
    for (pairs, against), rows in areas.groupby(["pairs", "against"], sort=False):
        area = rows.set_index("method")["area"]
        if area["cosine"] > area["pearson"] + _MARGIN:
            numbers = f"{rounded(area['cosine'], '.2f')} against {rounded(area['pearson'], '.2f')}"
            found.append(f"{pairs}, {against} ({numbers})")
    area = by_kind.pivot(index="kind", columns="method", values="area")
    kinds = [
        f"{kind} ({rounded(area['cosine'][kind], '.2f')} against {rounded(area['pearson'][kind], '.2f')})"
        for kind in dict.fromkeys(by_kind["kind"])
        if kind not in (ALL, EXPECTED) and area["cosine"][kind] > area["pearson"][kind] + _MARGIN
    ]
    if not found and not kinds:
        return []
    sets = f" over {listed(found)}" * bool(found)
    return [f"The raw cosine ranks better than Pearson’s r{sets}{'; by kind, for ' * bool(kinds)}{listed(kinds)}."]


def _missed(called: pd.DataFrame) -> list[str]:
    test = list(NAMES)[2]
    rows = called[(called["group"] == "derived") & ~called["blind"] & (called[test] < 1)]
    words = [f"{kind} ({_share(row[test], row['n'])})" for kind, row in rows.iterrows()]
    return (
        [f"The permutation test misses pairs of kinds that it was expected to see: found are {listed(words)}."]
        if words
        else []
    )


def _seen(called: pd.DataFrame) -> list[str]:
    test = list(NAMES)[2]
    rows = called[(called["group"] == "derived") & called["blind"] & (called[test] > 0.5)]
    words = [f"{kind} ({_share(row[test], row['n'])})" for kind, row in rows.iterrows()]
    return [f"It finds most pairs of a kind that it was not expected to see: {listed(words)}."] if words else []


def _broken(falses: pd.DataFrame) -> list[str]:
    rows = falses[~falses["kept"]]
    words = [
        f"{row['test']} ({rounded(100 * row['share'], '.1f')} % at {100 * row['level']:g} %, {row['strangers']})"
        for _, row in rows.iterrows()
    ]
    return (
        [f"Strangers are called related more often than the level, beyond the interval, by {listed(words)}."]
        if words
        else []
    )


def _false_signals(verdicts: pd.DataFrame) -> list[str]:
    """Strangers of whom a reader would have been told that they show a signal."""
    row = verdicts.loc[STRANGERS]
    n = round(row["signal"] * row["n"])
    if not n:
        return []
    return [
        f"The verdict speaks of a shared-origin signal for {_share(row['signal'], row['n'])} pairs of strangers; its "
        f"level is {LEVEL:g}, and these pairs share models."
    ]


def _share(share: float, n: int) -> str:
    return f"{round(share * n)} of {int(n)}"


def call_rows(called: pd.DataFrame, signal: pd.Series) -> pd.DataFrame:
    """What was called related, by kind, as readers see it: counts, and the share of verdicts with a signal.

    Args:
        called: as ``benchmark.tables.detection`` gives it.
        signal: by kind, the share of verdicts that speak of a signal.
    """
    tests = [column for column in called if column.startswith("p, ")]
    shown = pd.DataFrame(index=called.index)
    shown["n"], shown["lineages"], shown["undefined"] = called["n"], called["lineages"], called["undefined"]
    shown["expected"] = ["" if group == "independent" else "unseen" if blind else "seen" for group, blind in
                         zip(called["group"], called["blind"], strict=True)]  # fmt: skip
    for test in tests:
        shown[test] = called[test]
    return shown.assign(verdict=signal.reindex(called.index))

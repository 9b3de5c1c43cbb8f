"""This module joins the tests of each pair of models to one verdict, and sets the study's controls beside it.

The verdict comes from the tests alone. Only then is the known relation laid beside it, and the other pairs whose
relation is known say how the same procedure did where the answer is on record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from lnsim.measure.listed_pairs import KnownRelation
from lnsim.measure.verdict import SIGNALS, Evidence, NormTest, verdict

__all__ = ["verdicts", "with_controls"]


def verdicts(tests: pd.DataFrame, n_permutations: int) -> pd.DataFrame:
    """One row a pair, in the order of the tests.

    Args:
        tests: as ``verdict_tests.norm_tests`` gives them.
        n_permutations: of those tests; it bounds how small a p can be.

    Returns:
        Columns ``a``, ``b``, ``pair``; ``verdict`` (a key of ``verdict.RULES``); ``obstacle``; ``tested`` (kinds of
        norm, as text) and ``tests`` (how many); ``signals`` (how many both Pearson and ranks pass); ``layers_least``
        and ``layers_most`` (matched), ``channels``; of the strongest test, that of the smallest p, by r or by ranks:
        ``strongest`` (its norms), ``r``, ``null_low``, ``null_high``, ``pvalue``, ``p_holm``, ``p_ranks`` and
        ``p_ranks_holm``; and summed over all tests ``same``, ``elsewhere`` and ``without``.
    """
    least_p = min(1.0, int((tests["obstacle"] == "").sum()) / (1 + n_permutations))
    groups = tests.groupby(["a", "b"], sort=False)
    return pd.DataFrame([{"a": a, "b": b, **_judged(rows, least_p)} for (a, b), rows in groups])


def with_controls(found: pd.DataFrame, relation: Callable[[str, str], KnownRelation]) -> pd.DataFrame:
    """The verdicts with what is known of each pair, and with what the *other* pairs of known relation gave.

    Args:
        found: as ``verdicts`` gives it.
        relation: what is known of two keys.

    Returns:
        The same columns, and ``relation``, ``group``, ``related`` (other related pairs that were judged) and
        ``related_found`` (those with a signal), ``strangers`` and ``strangers_quiet`` (those without any).
    """
    known = [relation(a, b) for a, b in zip(found["a"], found["b"], strict=True)]
    frame = found.assign(relation=[one.kind for one in known], group=[one.group for one in known])
    judged = ~frame["verdict"].isin(["not_comparable", "undecided"])
    counted = {
        "related": (frame["group"] == "related") & judged,
        "related_found": (frame["group"] == "related") & frame["verdict"].isin(SIGNALS),
        "strangers": (frame["group"] == "independent") & judged,
        "strangers_quiet": (frame["group"] == "independent") & (frame["verdict"] == "none"),
    }
    return frame.assign(**{name: int(which.sum()) - which.astype(int) for name, which in counted.items()})


_STRONGEST = ("r", "null_low", "null_high", "pvalue", "p_holm", "p_ranks", "p_ranks_holm")


def _judged(rows: pd.DataFrame, least_p: float) -> dict[str, Any]:
    done = rows[rows["obstacle"] == ""]
    evidence = Evidence(tuple(_norm_test(row) for _, row in done.iterrows()), least_p)
    first = {"pair": rows["pair"].iloc[0], "verdict": verdict(evidence)}
    counts = {"tests": len(done), "signals": len(evidence.signals)}
    if done.empty:
        reasons = "; ".join(dict.fromkeys(rows["obstacle"]))
        return {**first, "obstacle": reasons, "tested": "none", **counts, "strongest": "none"}
    least = done[["pvalue", "p_ranks"]].min(axis=1)
    best = done.assign(least=least).sort_values(["least", "r"], ascending=[True, False], kind="stable").iloc[0]
    return {
        **first,
        "obstacle": "",
        "tested": ", ".join(done["norms"]),
        **counts,
        "layers_least": int(done["layers"].min()),
        "layers_most": int(done["layers"].max()),
        "channels": int(best["channels"]),
        "strongest": best["norms"],
        **{name: float(best[name]) for name in _STRONGEST},
        **{name: int(done[name].sum()) for name in ("same", "elsewhere", "without")},
    }


def _norm_test(row: pd.Series) -> NormTest:
    return NormTest(
        p_holm=float(row["p_holm"]),
        p_ranks_holm=float(row["p_ranks_holm"]),
        same=int(row["same"]),
        elsewhere=int(row["elsewhere"]),
        without=int(row["without"]),
        one_length=bool(row["one_length"]),
        identical=bool(row["identical"]),
    )

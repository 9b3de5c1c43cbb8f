"""This module joins the tests of each pair of models to one verdict.

The verdict comes from the tests alone: known relations take no part in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.layer_matrix import LayerMatrix
from lnsim.measure.metrics import pairwise
from lnsim.measure.stored_bits import same_bits
from lnsim.measure.verdict import Evidence, NormTest, verdict

__all__ = ["verdicts", "with_partners"]

_PARTNERS = ("same", "elsewhere", "without", "one_length", "identical")
_STRONGEST = ("r", "null_low", "null_high", "pvalue", "p_holm", "p_ranks", "p_ranks_holm")


def with_partners(models: Mapping[str, NormVectors], tests: pd.DataFrame) -> pd.DataFrame:
    """The tests with what a verdict rests on besides.

    Args:
        models: vectors by name.
        tests: as ``lnsim.tests`` gives them.

    Returns:
        The same rows with ``same``, ``elsewhere`` and ``without`` (see ``LayerMatrix.partner_counts``), ``one_length``
        and ``identical`` (see ``verdict.NormTest``); NaN where there is an obstacle.
    """
    rows: list[dict[str, Any]] = []
    for a, b, role, obstacle in tests[["a", "b", "role", "obstacle"]].itertuples(index=False):
        both = (role.split(" × ") * 2)[:2]
        rows.append({} if obstacle else _partners(models[a][both[0]], models[b][both[1]]))
    return tests.join(pd.DataFrame(rows, index=tests.index).reindex(columns=list(_PARTNERS)))


def _partners(a: RoleVectors, b: RoleVectors) -> dict[str, Any]:
    counts = LayerMatrix(pairwise(a.scale, b.scale, "pearson"), a.layers, b.layers).partner_counts()
    found = {"one_length": np.array_equal(a.layers, b.layers), "identical": same_bits(a, b)}
    return {name: counts[name] for name in _PARTNERS[:3]} | found


def verdicts(tests: pd.DataFrame, n_permutations: int) -> pd.DataFrame:
    """One row a pair, in the order of the tests.

    Args:
        tests: as ``with_partners`` gives them, and ``norms``, what readers see of the role.
        n_permutations: of those tests; it bounds how small a p can be.

    Returns:
        Columns ``a``, ``b``; ``verdict`` (a key of ``verdict.RULES``); ``obstacle``; ``tested`` (norms, as text) and
        ``tests`` (how many); ``signals`` (how many both Pearson and ranks pass); ``layers_least`` and ``layers_most``
        (matched), ``channels``; of the strongest test, that of the smallest p, by r or by ranks: ``strongest`` (its
        norms), ``r``, ``null_low``, ``null_high``, ``pvalue``, ``p_holm``, ``p_ranks`` and ``p_ranks_holm``; and
        summed over all tests ``same``, ``elsewhere`` and ``without``.
    """
    least_p = min(1.0, int((tests["obstacle"] == "").sum()) / (1 + n_permutations))
    groups = tests.groupby(["a", "b"], sort=False)
    return pd.DataFrame([{"a": a, "b": b, **_judged(rows, least_p)} for (a, b), rows in groups])


def _judged(rows: pd.DataFrame, least_p: float) -> dict[str, Any]:
    done = rows[rows["obstacle"] == ""]
    evidence = Evidence(tuple(_norm_test(row) for _, row in done.iterrows()), least_p)
    counts = {"tests": len(done), "signals": len(evidence.signals)}
    if done.empty:
        reasons = "; ".join(dict.fromkeys(rows["obstacle"]))
        return {"verdict": verdict(evidence), "obstacle": reasons, "tested": "none", **counts, "strongest": "none"}
    least = done[["pvalue", "p_ranks"]].min(axis=1)
    best = done.assign(least=least).sort_values(["least", "r"], ascending=[True, False], kind="stable").iloc[0]
    return {
        "verdict": verdict(evidence),
        "obstacle": "",
        "tested": ", ".join(done["norms"]),
        **counts,
        "layers_least": int(done["layers"].min()),
        "layers_most": int(done["layers"].max()),
        "channels": int(best["channels"]),
        "strongest": best["norms"],
        **{name: float(best[name]) for name in _STRONGEST},
        **{name: int(done[name].sum()) for name in _PARTNERS[:3]},
    }


def _norm_test(row: pd.Series) -> NormTest:
    same, elsewhere, without = (int(row[name]) for name in _PARTNERS[:3])
    one_length, identical = (bool(row[name]) for name in _PARTNERS[3:])
    p_holm, p_ranks_holm = float(row["p_holm"]), float(row["p_ranks_holm"])
    return NormTest(p_holm, p_ranks_holm, same, elsewhere, without, one_length, identical)

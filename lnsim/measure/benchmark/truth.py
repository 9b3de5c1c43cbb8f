"""This module lists every pair of a study's models with what is known of it: the truth that measures are judged by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Protocol

import pandas as pd

from lnsim.errors import ComparisonError

__all__ = ["REMOTE", "SIBLINGS", "STRANGERS", "Known", "Lineage", "lineages", "pair_truth"]

SIBLINGS, REMOTE, STRANGERS = "siblings", "siblings, one of a blind kind", "strangers"
"""Kinds of pairs of which neither was made from the other."""


class Known(Protocol):
    """What is known of two models; ``lnsim.study.catalog.Relation`` is one."""

    @property
    def a(self) -> str:
        """The origin, where one comes from the other."""

    @property
    def b(self) -> str:
        """The other."""

    @property
    def derived(self) -> bool:
        """Whether b comes from a."""

    @property
    def related(self) -> bool:
        """Whether the two share an origin."""


class Lineage(Protocol):
    """A study that made its models."""

    def relation(self, a: str, b: str) -> Known:
        """What is known of two models."""


def lineages(study: Lineage, keys: Sequence[str]) -> dict[str, str]:
    """The lineage of each model, named by its first model in the order given: models of one lineage are related."""
    found: dict[str, str] = {}
    for key in keys:
        found[key] = next((name for other, name in found.items() if study.relation(other, key).related), key)
    return found


def pair_truth(
    study: Lineage, derivations: Mapping[str, str], designs: Mapping[str, str], blind: Collection[str]
) -> pd.DataFrame:
    """Every pair once, with its kind.

    Args:
        study: it knows how any two of its models are related.
        derivations: by key, in the order of the models, how each was made from its parents; empty where it has none.
        designs: by key, what two strangers may have in common by design: architecture and first γ.
        blind: derivations that norm vectors are expected not to see.

    Returns:
        Columns ``a`` and ``b`` (keys), ``i`` and ``j`` (their positions), ``group`` (``derived``, ``siblings`` or
        ``independent``), ``kind`` (a derivation, SIBLINGS, REMOTE or STRANGERS), ``lineage_a``, ``lineage_b``,
        ``same_design``, and ``blind``: whether the kind is one that norm vectors are expected not to see.

    Raises:
        ComparisonError: when derived or independent pairs are lacking, or a blind kind is none of the derivations.
    """
    if unknown := sorted(set(blind) - set(derivations.values())):
        raise ComparisonError(f"Listing pairs: no model is of the blind kind '{unknown[0]}'.")
    keys = list(derivations)
    lineage = lineages(study, keys)
    rows = [
        {"a": a, "b": b, "i": i, "j": j, **_known(study.relation(a, b), derivations, blind),
         "lineage_a": lineage[a], "lineage_b": lineage[b], "same_design": designs[a] == designs[b]}
        for (i, a), (j, b) in combinations(enumerate(keys), 2)
    ]  # fmt: skip
    found = pd.DataFrame(rows)
    if found.empty or {"derived", "independent"} - set(found["group"]):
        raise ComparisonError(f"Listing pairs of {len(keys)} models: expected both derived and independent ones.")
    return found


def _known(relation: Known, derivations: Mapping[str, str], blind: Collection[str]) -> dict[str, str | bool]:
    if relation.derived:
        kind = derivations[relation.b]
        return {"group": "derived", "kind": kind, "blind": kind in blind}
    if relation.related:
        remote = derivations[relation.a] in blind or derivations[relation.b] in blind
        return {"group": "siblings", "kind": REMOTE if remote else SIBLINGS, "blind": remote}
    return {"group": "independent", "kind": STRANGERS, "blind": False}

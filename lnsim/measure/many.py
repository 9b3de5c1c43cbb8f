"""This module judges many models at once: one against the others, or every pair of them, best first.

Each pair is tested once, as ``judge`` does it, and p is adjusted over all pairs that were tested (Holm 1979). A search
among many is many questions: the more models are asked about, the smaller must p be before a pair stands out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.pair_test import MOST, STRONG
from lnsim.measure.verdict import Judgement, judge

STRENGTHS = ("identical", "strong", "border", "weak", "none", "not_decided", "not_comparable")
"""How strong a sentence is, the strongest first; pairs of the first four stand out."""

STANDS_OUT = STRENGTHS[:4]

Relation = dict[str, Any]
"""What was found of a pair: ``a``, ``b``, ``r``, ``pvalue``, ``p_adjusted``, ``strength``, ``sentence``, ``key``,
``n_permutations``, ``why_not`` (in few words, empty where the two were compared), and how many layers have their best
partner at the ``same`` number, ``elsewhere`` or are ``without``. What was not tested is None."""


def relatives(
    query: NormVectors, others: Mapping[str, NormVectors], most: int | None = None, seed: int = 0
) -> list[Relation]:
    """One model against each of the others, best first; arguments are those of ``matrix``."""
    return _judged([(query.source, query, name, one) for name, one in others.items()], most, seed, no_progress)


def matrix(
    models: Mapping[str, NormVectors],
    most: int | None = None,
    seed: int = 0,
    *,
    n_tests: int | None = None,
    progress: Progress = no_progress,
) -> list[Relation]:
    """Every pair of models, by the name that readers see: the strongest sentence first, of equal ones the largest r.

    A test may cost `most` permutations. Where none are named, these are 99,999, or those of ``parted_test`` where so
    many pairs are adjusted together that 99,999 could call none of them strong. `n_tests` is for models that a search
    over so many comparisons chose, as in ``judge``. `progress` is told how many are done.
    """
    return _judged([(*a, *b) for a, b in combinations(models.items(), 2)], most, seed, progress, n_tests)


def _judged(
    pairs: Sequence[tuple[str, NormVectors, str, NormVectors]],
    most: int | None,
    seed: int,
    progress: Progress,
    n_tests: int | None = None,
) -> list[Relation]:
    n_alike = sum(a.hidden_size == b.hidden_size for _, a, _, b in pairs)
    if most is None and n_tests is None and n_alike > STRONG * (1 + MOST):
        n_tests = n_alike
    verdicts = judge([(a, b) for _, a, _, b in pairs], most or MOST, seed, progress, n_tests)
    return best_first(
        relation(name_a, name_b, one, replica="replica" in a.provenance or "replica" in b.provenance)
        for (name_a, a, name_b, b), one in zip(pairs, verdicts, strict=True)
    )


def relation(a: str, b: str, judgement: Judgement, replica: bool = False) -> Relation:
    """What the verdict on two models of these names says."""
    measured = {name: getattr(judgement.test, name, None) for name in ("r", "pvalue", "n_permutations")}
    why = judgement.obstacle.partition("; ")[0].partition(". ")[0]  # without what each of the two has
    return (
        {"a": a, "b": b, "r": measured["r"], "pvalue": measured["pvalue"], "p_adjusted": judgement.p_adjusted}
        | {"strength": judgement.strength, "sentence": judgement.sentence(replica), "key": judgement.key}
        | measured | {"why_not": why} | dict.fromkeys(("same", "elsewhere", "without"), 0) | dict(judgement.rows.places)
    )  # fmt: skip


def best_first(found: Iterable[Relation]) -> list[Relation]:
    """The strongest sentence first, of equal ones the largest r."""
    return sorted(found, key=lambda one: (STRENGTHS.index(one["strength"]), -(one["r"] or 0.0)))

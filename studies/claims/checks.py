"""This module holds every published number against the other published ones, each by the rule that fits its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from studies.claims.arithmetic import ALONE, alone
from studies.claims.bounds import Lookup
from studies.claims.counting import COUNTS, counts
from studies.claims.evaluate import AGREES, CONTRADICTS, Finding, evaluate
from studies.claims.printed import PAIRWISE, SINGLE
from studies.claims.ranges import ranges
from studies.claims.rows import Claim

__all__ = ["NOTHING", "Beside", "beside", "findings_of"]

NOTHING = "nothing to compare"
"""What the other published numbers say of a claim where they say nothing, or nothing sharp enough."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A claim beside what is known of it from one side: the other published numbers, or vectors.

    Args:
        outcome: AGREES, CONTRADICTS or NOTHING.
        findings: those that the outcome rests on.
        n_compared: how many cells or statistics could be compared at all.
    """

    outcome: str
    findings: tuple[Finding, ...]
    n_compared: int


def findings_of(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> list[Finding]:
    """Everything that a lookup says of a claim, by the rule of its metric.

    Args:
        claim: any row.
        lookup: where numbers are known from.
        claims: all rows, for counts that must fit together.
        n_layers: decoder layers by model key.
    """
    if claim.members in ALONE and claim.metric != "words":
        return alone(claim, lookup)
    if claim.metric in COUNTS:
        return counts(claim, lookup, claims, n_layers)
    if claim.metric == "gamma":
        return ranges(claim, lookup, n_layers)
    if claim.metric in (*PAIRWISE, *SINGLE):
        return evaluate(claim, lookup, n_layers)
    return []


def beside(claim: Claim, lookup: Lookup, claims: Sequence[Claim], n_layers: Mapping[str, int]) -> Beside:
    """What a lookup says of a claim, taken together.

    Stored outputs, configs, figures and arithmetic come first: where any of them contradicts a claim, it is
    contradicted, and where any agrees, no other claim can take that back. Only where they are silent does a claim
    stand against the other claims. A number that is merely printed twice is not confirmed by that.
    """
    found = findings_of(claim, lookup, claims, n_layers)
    for firm in (True, False):
        for outcome in (CONTRADICTS, AGREES):
            of_this_kind = [one for one in found if one.bound.firm == firm and one.outcome == outcome]
            decisive = tuple(one for one in of_this_kind if outcome == CONTRADICTS or not _is_repeat(one))
            if decisive:
                return Beside(outcome, decisive, len(found))
    return Beside(NOTHING, (), len(found))


def _is_repeat(finding: Finding) -> bool:
    return not finding.bound.firm and finding.bound.how == "printed" and not finding.where

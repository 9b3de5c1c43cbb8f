"""This module says how two models are known to be related, and keeps a study's relations free of contradictions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

from lnsim.errors import StudyError

__all__ = ["KINDS", "RELATED_KINDS", "Relation", "check_relations"]

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "exact_copy": "the norms of b are those of a, bit for bit",
        "fine_tune": "b was trained further from a",
        "derived": "b was made from a, in a way that the study tells",
        "depth_expanded": "b has layers of a, some of them repeated",
        "shared_base": "both were trained further from one checkpoint",
        "common_ancestor": "both have layers that come from one checkpoint",
        "related": "a relation is documented or plain, its course is not",
        "disputed": "a relation is claimed and denied; the pair is no control",
        "independent": "no relation is known: presumed strangers",
    }
)
"""Kinds of relation with their meaning; a comes first where one model comes from the other."""

_DERIVED = ("exact_copy", "fine_tune", "derived", "depth_expanded")
RELATED_KINDS = tuple(kind for kind in KINDS if kind not in ("disputed", "independent"))
"""Kinds whose two models share an origin."""


@dataclass(frozen=True, slots=True)
class Relation:
    """The relation of two models.

    Args:
        a: key of one model; the origin, where the kind has one.
        b: key of the other.
        kind: one of KINDS.
        evidence: one sentence: who says so, or what shows it.
    """

    a: str
    b: str
    kind: str
    evidence: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise StudyError(
                f"Relation of '{self.a}' and '{self.b}': kind '{self.kind}' is none of {', '.join(KINDS)}."
            )
        if self.a == self.b:
            raise StudyError(f"key 'relations': '{self.a}' is related to itself; name two models.")

    @property
    def derived(self) -> bool:
        """True where b comes from a: a positive control with a direction."""
        return self.kind in _DERIVED

    @property
    def related(self) -> bool:
        """True where the two share an origin: a positive control."""
        return self.kind in RELATED_KINDS

    @property
    def independent(self) -> bool:
        """True where the two are presumed strangers: a negative control."""
        return self.kind == "independent"

    @property
    def group(self) -> str:
        """What the pair counts as in a table of pairs: ``related``, ``independent``, or ``disputed``, no control."""
        if self.related:
            return "related"
        return "independent" if self.independent else "disputed"


def check_relations(relations: Sequence[Relation], models: Collection[str]) -> None:
    """Raise StudyError for a relation to an unknown model, a pair listed twice, or a relation that others imply."""
    found: dict[frozenset[str], Relation] = {}
    for relation in relations:
        unknown = [key for key in (relation.a, relation.b) if key not in models]
        if unknown:
            raise StudyError(
                f"key 'relations': expected model keys of this study ({', '.join(models)}), found '{unknown[0]}'."
            )
        pair = frozenset((relation.a, relation.b))
        if pair in found:
            raise StudyError(f"key 'relations': the pair '{relation.a}' and '{relation.b}' is listed twice.")
        found[pair] = relation
    _check_implied(found)


def _check_implied(found: Mapping[frozenset[str], Relation]) -> None:
    """Two models related to a third are hardly strangers, so their own relation must be stated, whatever it is."""
    related = [pair for pair, relation in found.items() if relation.related]
    for one, other in combinations(related, 2):
        ends = one ^ other
        if len(ends) == 2 and ends not in found:
            a, b = sorted(ends)
            (middle,) = one & other
            raise StudyError(
                f"key 'relations': '{a}' and '{b}' are both related to '{middle}', expected their own relation too. "
                "Add it, if only as independent with the evidence for that."
            )

"""This module derives relations from a study's own record of descent: which model was made from which.

A study of found models states each relation with its evidence. Where the models were made for the purpose, their
parents are known, and every relation among them follows: stated one by one they would be hundreds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from lnsim.errors import StudyError
from lnsim.study.relations import Relation

__all__ = ["Descended", "ancestors", "relation_by_descent"]


class Descended(Protocol):
    """A model with a record of its descent."""

    @property
    def key(self) -> str:
        """Its key in the study."""

    @property
    def parents(self) -> tuple[str, ...]:
        """Keys of the models that it was made from; empty for one trained from random weights."""

    @property
    def derivation(self) -> str:
        """How it was made from them, in a phrase; empty where it has none."""


def ancestors(models: Sequence[Descended]) -> Mapping[str, frozenset[str]]:
    """Every model's ancestors by key, itself not among them.

    Args:
        models: parents before their children.

    Raises:
        StudyError: for a parent that does not stand before its child, or a derivation without parents or the reverse.
    """
    found: dict[str, frozenset[str]] = {}
    for model in models:
        if unknown := [key for key in model.parents if key not in found]:
            raise StudyError(
                f"key 'models.{model.key}.parents': expected keys of models listed before it, found '{unknown[0]}'."
            )
        if bool(model.parents) != bool(model.derivation):
            raise StudyError(
                f"key 'models.{model.key}': expected parents and derivation together or neither, found one of them."
            )
        found[model.key] = frozenset(model.parents).union(*(found[key] for key in model.parents))
    return MappingProxyType(found)


def relation_by_descent(
    models: Mapping[str, Descended], above: Mapping[str, frozenset[str]], a: str, b: str
) -> Relation:
    """How two models are related by their descent, in either order; independent where they share no ancestor.

    Args:
        models: by key.
        above: as ``ancestors`` gives it.
        a: key of one model.
        b: key of the other.
    """
    if a in above[b] or b in above[a]:
        origin, made = (a, b) if a in above[b] else (b, a)
        through = " and ".join(models[made].parents)
        return Relation(origin, made, "derived", f"Made here from {through}: {models[made].derivation}.")
    if shared := above[a] & above[b]:
        return Relation(a, b, "common_ancestor", f"Both were made here from {' and '.join(sorted(shared))}.")
    return Relation(a, b, "independent", "Made here from random weights of other seeds, without a common ancestor.")

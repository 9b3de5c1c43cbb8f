"""This module pairs models: which two can be compared, to which group they belong, and why some cannot be compared.

A pair belongs to one of three groups. ``related``: the two share an origin, a positive control. ``independent``:
presumed strangers, a negative control. ``disputed``: a relation is claimed and denied, so the pair is no control.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError

__all__ = [
    "PAIR_GROUPS",
    "ModelPair",
    "PairRelation",
    "having_role",
    "model_pairs",
    "not_comparable",
    "obstacles_in_words",
    "with_role",
]

PAIR_GROUPS = ("related", "disputed", "independent")
"""What a pair of models can be, as far as its relation is on record."""


class PairRelation(Protocol):
    """What a study says of two models, as far as it is needed here; ``lnsim.study.catalog.Relation`` is one."""

    @property
    def a(self) -> str:
        """Key of one model."""

    @property
    def b(self) -> str:
        """Key of the other."""

    @property
    def group(self) -> str:
        """One of PAIR_GROUPS."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models that are compared.

    Args:
        a: key of the model that comes first in the study.
        b: key of the other.
        label_a: what readers see of the first.
        label_b: what readers see of the other.
        group: one of PAIR_GROUPS.
    """

    a: str
    b: str
    label_a: str
    label_b: str
    group: str

    def __post_init__(self) -> None:
        if self.group not in PAIR_GROUPS or self.a == self.b:
            raise ComparisonError(
                f"Pairing '{self.a}' with '{self.b}': expected two models and a group among {', '.join(PAIR_GROUPS)}, "
                f"found '{self.group}'."
            )

    @property
    def label(self) -> str:
        """The pair as readers see it."""
        return f"{self.label_a} × {self.label_b}"


def model_pairs(
    models: Iterable[str], relations: Iterable[PairRelation], labels: Mapping[str, str]
) -> tuple[ModelPair, ...]:
    """Every pair of these models once, with its group.

    Args:
        models: keys, in the order in which readers meet them.
        relations: as ``Study.pairs`` gives them; a pair that is not among them is presumed independent.
        labels: what readers see of each key.
    """
    known = {frozenset((one.a, one.b)): one.group for one in relations}
    return tuple(
        ModelPair(a, b, labels[a], labels[b], known.get(frozenset((a, b)), "independent"))
        for a, b in combinations(models, 2)
    )


def with_role(models: Mapping[str, NormVectors], pairs: Sequence[ModelPair], role: str) -> tuple[ModelPair, ...]:
    """The pairs of which both models have this role, in the same number of channels."""
    have = having_role(models, role)
    return tuple(
        pair
        for pair in pairs
        if pair.a in have and pair.b in have and have[pair.a].hidden_size == have[pair.b].hidden_size
    )


def not_comparable(models: Mapping[str, NormVectors], pairs: Sequence[ModelPair], roles: Sequence[str]) -> pd.DataFrame:
    """The pairs that cannot be compared in a role that at least one of the two has, with the reason.

    Returns:
        Columns ``pair``, ``role`` and ``reason``; no rows where nothing stands in the way.
    """
    rows = [
        (pair.label, role, _obstacle(models, pair, role))
        for role in roles
        for comparable in (with_role(models, pairs, role),)
        for pair in pairs
        if pair not in comparable and {pair.a, pair.b} & set(having_role(models, role))
    ]
    return pd.DataFrame(rows, columns=["pair", "role", "reason"])


def obstacles_in_words(frame: pd.DataFrame) -> str:
    """``not_comparable`` as one sentence a reason, each with its pairs; says so where there is none."""
    if frame.empty:
        return "Every pair of these models can be compared."
    pairs = frame.groupby("reason", sort=False)["pair"].unique()
    return " ".join(f"Not compared, since {reason}: {', '.join(names)}." for reason, names in pairs.items())


def having_role(models: Mapping[str, NormVectors], role: str) -> dict[str, RoleVectors]:
    """The vectors of one role, by the keys of the models that have it."""
    return {key: vectors[role] for key, vectors in models.items() if role in vectors.roles}


def _obstacle(models: Mapping[str, NormVectors], pair: ModelPair, role: str) -> str:
    """Why two models cannot be compared in a role."""
    sizes = sorted((models[pair.a].hidden_size, models[pair.b].hidden_size))
    if sizes[0] != sizes[1]:
        return f"their hidden sizes are {sizes[0]} and {sizes[1]}, and no channel of one is a channel of the other"
    lacking = pair.label_a if role not in models[pair.a].roles else pair.label_b
    return f"{lacking} has no norm of this role"

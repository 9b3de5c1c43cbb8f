"""This module holds what a study file says: the models and, for each notebook, what it gets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import Any

from lnsim.errors import StudyError
from lnsim.study.descent import ancestors, relation_by_descent
from lnsim.study.parameters import GROUPINGS, check_parameters
from lnsim.study.relations import RELATED_KINDS, Relation, check_relations

__all__ = ["COLOUR", "KEY", "MODEL_KINDS", "SOURCES", "Experiment", "Model", "Study"]

SOURCES: tuple[str, ...] = ("stored", "hub", "replica")
"""Where a study's vectors may come from."""

MODEL_KINDS: tuple[str, ...] = ("dense", "moe")

_KIND_WORDS: Mapping[str, str] = MappingProxyType({"moe": "MoE"})

Experiment = Mapping[str, Any]
"""The parameters of one notebook by name, as the study file gives them."""

KEY = r"[a-z][a-z0-9_]*"
COLOUR = r"#[0-9a-f]{6}"


@dataclass(frozen=True, slots=True)
class Model:
    """One model of a study.

    Args:
        key: short name, the one that parameters, tables and relations use.
        label: the name that readers see.
        repo_id: repo on the Hub, or None where the model has none.
        revision: what to ask the Hub for: a commit where one is on record, else a branch; None without a repo.
        stored: name of the stored extract; the repo id where the extract comes from the Hub.
        colour: ``#rrggbb``, the model's own in every figure.
        family: the architecture, in a reader's words.
        kind: ``dense`` or ``moe``.
        note: anything that a reader of its numbers must know; may be empty.
        parents: keys of the models it was made from, in a study that made its models.
        derivation: how it was made from them, in a phrase; empty where it has no parents.
    """

    key: str
    label: str
    repo_id: str | None
    revision: str | None
    stored: str
    colour: str
    family: str
    kind: str
    note: str = ""
    parents: tuple[str, ...] = ()
    derivation: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(KEY, self.key) or not re.fullmatch(COLOUR, self.colour) or self.kind not in MODEL_KINDS:
            raise StudyError(
                f"Model '{self.key}': expected a key of small letters, a colour like #0b5fa5 and a kind among "
                f"{', '.join(MODEL_KINDS)}; found '{self.colour}' and '{self.kind}'."
            )


@dataclass(frozen=True, slots=True)
class Study:
    """What is compared with what.

    Args:
        name: the file's name without ``.toml``.
        title: heading that readers see.
        about: one sentence.
        sources: where its vectors may come from, the preferred one first.
        models: in the order of the file.
        relations: every relation on record; a pair that has none is presumed independent.
        experiments: parameters by notebook number.
        not_run: by notebook number, why this study does not run it; a phrase without a full stop.
    """

    name: str
    title: str
    about: str
    sources: tuple[str, ...]
    models: tuple[Model, ...]
    relations: tuple[Relation, ...]
    experiments: Mapping[str, Experiment]
    not_run: Mapping[str, str]
    _ancestors: Mapping[str, frozenset[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_once("models", "key", [model.key for model in self.models])
        _check_once("models", "label", [model.label for model in self.models])
        _check_once("models", "colour", [model.colour for model in self.models])
        keys = [model.key for model in self.models]
        object.__setattr__(self, "_ancestors", ancestors(self.models))
        if self.relations and self.has_descent:
            raise StudyError("key 'relations': expected none beside models with parents, from which all follow.")
        check_relations(self.relations, keys)
        checked = {number: check_parameters(number, given, keys) for number, given in self.experiments.items()}
        object.__setattr__(self, "experiments", MappingProxyType(checked))
        object.__setattr__(self, "not_run", MappingProxyType(dict(self.not_run)))
        if both := sorted(set(self.experiments) & set(self.not_run)):
            raise StudyError(f"key 'not_run.{both[0]}': notebook {both[0]} also has parameters; keep one of the two.")
        _check_controls(self)

    @property
    def has_descent(self) -> bool:
        """True where the study made its models, so that every relation follows from their parents."""
        return any(model.parents for model in self.models)

    @property
    def labels(self) -> Mapping[str, str]:
        """What readers see of each model, by key."""
        return MappingProxyType({model.key: model.label for model in self.models})

    @property
    def colours(self) -> Mapping[str, str]:
        """The colour of each model, by the label that readers see."""
        return MappingProxyType({model.label: model.colour for model in self.models})

    def kinds(self, by: str) -> Mapping[str, str]:
        """What each model is counted as where models are grouped, by key, in a reader's words.

        Args:
            by: ``kind`` or ``family``.

        Raises:
            StudyError: for anything else.
        """
        if by not in GROUPINGS:
            raise StudyError(f"Grouping the models of '{self.name}': expected {' or '.join(GROUPINGS)}, found '{by}'.")
        return MappingProxyType(
            {model.key: _KIND_WORDS.get(getattr(model, by), getattr(model, by)) for model in self.models}
        )

    def model(self, key: str) -> Model:
        """The model of a key; StudyError names the keys there are."""
        for model in self.models:
            if model.key == key:
                return model
        known = ", ".join(model.key for model in self.models)
        raise StudyError(f"Study '{self.name}' has no model '{key}'; its models are {known}.")

    def relation(self, a: str, b: str) -> Relation:
        """How two models are related, in either order: by descent where the study made its models, else as it states.

        A pair without a stated relation is presumed independent.

        Raises:
            StudyError: when a key is unknown, or both are the same.
        """
        if self.model(a) == self.model(b):
            raise StudyError(f"Study '{self.name}': '{a}' has no relation to itself; name two models.")
        if self.has_descent:
            return relation_by_descent({model.key: model for model in self.models}, self._ancestors, a, b)
        for relation in self.relations:
            if {relation.a, relation.b} == {a, b}:
                return relation
        return Relation(a, b, "independent", "No relation is on record: presumed independent.")

    def pairs(self) -> tuple[Relation, ...]:
        """Every pair of the study's models once, in the order of the file."""
        keys = [model.key for model in self.models]
        return tuple(self.relation(a, b) for a, b in combinations(keys, 2))


def _check_once(key: str, what: str, values: list[str]) -> None:
    repeated = [value for index, value in enumerate(values) if value in values[:index]]
    if repeated:
        raise StudyError(f"key '{key}': expected each {what} once, found '{repeated[0]}' twice.")


def _check_controls(study: Study) -> None:
    """Pairs called copies, derived or controls must be on record as such: no label without its evidence."""
    allowed = {"copies": ("exact_copy",), "derived": RELATED_KINDS, "controls": ("independent",)}
    for number, given in study.experiments.items():
        for name, kinds in allowed.items():
            for index, (a, b) in enumerate(given.get(name, [])):
                relation = study.relation(a, b)
                if relation.kind not in kinds:
                    raise StudyError(
                        f"key 'experiments.{number}.{name}[{index}]': expected a pair whose relation is "
                        f"{' or '.join(kinds)}, found '{a}' and '{b}', which are on record as {relation.kind}."
                    )

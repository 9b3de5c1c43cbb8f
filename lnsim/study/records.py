"""This module looks up what the studies at hand have on record about two models, for whoever compares others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import SourceError
from lnsim.paths import find_stored
from lnsim.study.relations import Relation
from lnsim.study.values import Model, Study

__all__ = ["Records"]


@dataclass(frozen=True, slots=True)
class Records:
    """The relations that studies state, and the models they speak of.

    Args:
        studies: in the order in which they are asked.
        paths: by the study's name and the model's key, the stored extract of those models that have one.
    """

    studies: Sequence[Study]
    paths: Mapping[tuple[str, str], Path]

    @classmethod
    def of(cls, studies: Sequence[Study]) -> Records:
        """Look for the extract of every model of these studies."""
        found = {}
        for study in studies:
            for model in study.models:
                try:
                    found[study.name, model.key] = find_stored(model.stored)
                except SourceError:
                    continue  # this model was not read yet
        return cls(studies, found)

    def models(self, vectors: NormVectors) -> list[tuple[Study, Model]]:
        """The entries of a model, known by its extract or its repo, in every study that has it."""
        repo_id = vectors.provenance.get("repo_id")
        return [
            (study, model)
            for study in self.studies
            for model in study.models
            if (vectors.path is not None and self.paths.get((study.name, model.key)) == vectors.path)
            or (repo_id is not None and model.repo_id == repo_id)
        ]

    def relation(self, a: NormVectors, b: NormVectors) -> tuple[str, str, str] | None:
        """Kind and evidence of a relation that a study states, and a text that says which study; None where none does.

        A pair that a study merely leaves out is not on record.
        """
        for (study, one), (other_study, other) in product(self.models(a), self.models(b)):
            if study is other_study and one is not other:
                stated = _stated(study, one.key, other.key)
                if stated is not None:
                    return stated.kind, stated.evidence, study.name
        return None


def _stated(study: Study, a: str, b: str) -> Relation | None:
    if study.has_descent:
        return study.relation(a, b)
    return next((relation for relation in study.relations if {relation.a, relation.b} == {a, b}), None)

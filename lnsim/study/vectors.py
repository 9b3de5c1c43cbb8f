"""This module gives a study its vectors, from the source that was asked for.

A notebook never touches the network: ``hub`` here means extracts that were read from the Hub before, by
``run_all.py --source hub`` or ``lnsim extract``, and lie in ``data/vectors`` since. Nor does it make a replica:
``run_all.py`` does that, before the first notebook runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lnsim.checkpoint.extract import load
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import SourceError, StudyError
from lnsim.paths import find_stored, replica_dir
from lnsim.study.catalog import Model, Study

# What a user may ask for; ``auto`` is stored vectors, never the network and never a replica.
SOURCES = ("auto", "stored", "hub", "replica")


@dataclass(frozen=True, slots=True)
class StudyVectors:
    """The vectors of a study's models by key, in its order; where they come from, and why there are none of a model."""

    kind: str
    vectors: Mapping[str, NormVectors]
    missing: Mapping[str, str]


def fetch_command(study: Study) -> str:
    """The command that brings a study's vectors: from the Hub, by training its models, or out of the repository."""
    if "hub" in study.sources:
        return f"python run_all.py --study {study.name} --source hub"
    return "python -m studies.zoo" if study.has_descent else f"git checkout -- data/vectors/{study.name}"


def study_vectors(
    study: Study, source: str = "auto", keys: Iterable[str] | None = None, evidence: bool = False
) -> StudyVectors:
    """The vectors of a study's models, or of these `keys`, as they lie on disk, without any network.

    With `evidence`, the matrix rows that were kept come along. StudyError for a source or a model key that the study
    does not have, or a replica that was not made.
    """
    kind = source_kind(study, source)
    models = study.models if keys is None else [study.model(key) for key in keys]
    if kind == "replica":
        return _replica_vectors(study, models)
    found: dict[str, NormVectors] = {}
    missing: dict[str, str] = {}
    for model in models:
        try:
            vectors = load(find_stored(model.stored), evidence)
        except SourceError as error:
            missing[model.key] = str(error)
            continue
        if kind == "hub" and vectors.commit is None:
            missing[model.key] = (
                f"The stored extract of '{model.key}' was not read from the Hub: no commit is on record."
            )
        else:
            found[model.key] = vectors
    return StudyVectors(kind, found, missing)


def source_kind(study: Study, source: str) -> str:
    """Where stored things are looked for: ``stored``, ``hub`` or ``replica``; StudyError where that is not allowed."""
    if source not in SOURCES:
        raise StudyError(f"Study '{study.name}': '{source}' is not a source; known are {', '.join(SOURCES)}.")
    if source in ("auto", "stored"):
        return "stored"
    if source not in study.sources:
        raise StudyError(
            f"Study '{study.name}': its file does not allow the source '{source}', only {', '.join(study.sources)}."
        )
    return source


def no_replica(study: Study, what: str) -> StudyError:
    """The error where a part of a study's replica, or all of it, is not on disk."""
    return StudyError(
        f"Study '{study.name}': {what} of its replica, which tests the code with synthetic numbers, are not made yet. "
        f"To have them: python run_all.py --study {study.name} --source replica"
    )


def _replica_vectors(study: Study, models: Iterable[Model]) -> StudyVectors:
    folder = replica_dir(study.name)
    paths = {model.key: folder / f"{model.key}.safetensors" for model in models}
    try:  # written last, so where it lies, the vectors do
        reasons: dict[str, str] = json.loads((folder / "missing.json").read_text("utf-8"))
        found = {key: load(path) for key, path in paths.items() if key not in reasons}
    except (OSError, ValueError, SourceError):
        raise no_replica(study, "the vectors") from None
    return StudyVectors("replica", found, {key: reasons[key] for key in paths if key in reasons})

"""This module reads how models were made, where a study made them: from the records in their extracts."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import StudyError
from lnsim.study.catalog import Study

__all__ = ["designs", "training_records"]

_FIELDS: Mapping[str, tuple[str, type]] = {
    "text": ("zoo_text", str),
    "first_gamma": ("zoo_gamma", str),
    "seed": ("zoo_seed", int),
    "steps": ("zoo_steps", int),
    "loss": ("zoo_loss", float),
    "unigram_loss": ("zoo_unigram_loss", float),
}
"""By column, the key of the extract's metadata that holds it and its type."""


def training_records(study: Study, models: Mapping[str, NormVectors]) -> pd.DataFrame:
    """How each model was made: index ``model`` (its label), in the order given.

    Args:
        study: whose models they are.
        models: vectors by key, read from extracts that the package ``zoo`` wrote.

    Returns:
        Columns ``derivation`` (``none`` where trained from random weights), ``parents`` (labels), ``architecture``,
        ``text``, ``first_gamma``, ``seed``, ``steps`` (of its own), ``loss`` and ``unigram_loss`` (nats a byte, on
        held-out text), ``layers``, ``vectors``, and ``file`` (the extract's).

    Raises:
        StudyError: when an extract lacks a part of its record.
    """
    rows = {}
    for key, vectors in models.items():
        model = study.model(key)
        rows[model.label] = {
            "derivation": model.derivation or "none",
            "parents": " and ".join(study.model(parent).label for parent in model.parents) or "none",
            "architecture": model.family,
            **{column: kind(_recorded(vectors, field)) for column, (field, kind) in _FIELDS.items()},
            "layers": max(len(one.layers) for one in vectors.roles.values()),
            "vectors": vectors.n_vectors,
            "file": f"{model.stored}.safetensors",
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def designs(study: Study, models: Mapping[str, NormVectors]) -> dict[str, str]:
    """What two models may have in common without a common origin, by key: architecture and first γ."""
    return {key: f"{study.model(key).family}, γ {_recorded(vectors, 'zoo_gamma')}" for key, vectors in models.items()}


def _recorded(vectors: NormVectors, field: str) -> str:
    if field not in vectors.provenance:
        raise StudyError(
            f"Reading how '{vectors.source}' was made: its extract has no '{field}' in its metadata. Only "
            "extracts that `python -m zoo` wrote tell it."
        )
    return vectors.provenance[field]

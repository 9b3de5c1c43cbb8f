"""This module tells how the models of a study were made, where a study made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.initialisation import TrainingRecord
from lnsim.study.catalog import Study

__all__ = ["designs", "training_records"]


def training_records(study: Study, models: Mapping[str, NormVectors]) -> pd.DataFrame:
    """How each model was made: index ``model`` (its label), in the order given.

    Args:
        study: whose models they are.
        models: vectors by key, read from extracts that the package ``studies.zoo`` wrote.

    Returns:
        Columns ``derivation`` (``none`` where trained from random weights), ``parents`` (labels), ``architecture``,
        ``text``, ``first_gamma``, ``seed``, ``steps`` (of its own), ``loss`` and ``unigram_loss`` (nats a byte, on
        held-out text), ``layers``, ``vectors``, and ``file`` (the extract's).

    Raises:
        ComparisonError: when an extract lacks a part of its record.
    """
    rows = {}
    for key, vectors in models.items():
        model, record = study.model(key), asdict(TrainingRecord.of(vectors))
        rows[model.label] = {
            "derivation": model.derivation or "none",
            "parents": " and ".join(study.model(parent).label for parent in model.parents) or "none",
            "architecture": model.family,
            "text": record["text"],
            "first_gamma": record["gamma"],
            **{name: record[name] for name in ("seed", "steps", "loss", "unigram_loss")},
            "layers": max(len(one.layers) for one in vectors.roles.values()),
            "vectors": vectors.n_vectors,
            "file": f"{model.stored}.safetensors",
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def designs(study: Study, models: Mapping[str, NormVectors]) -> dict[str, str]:
    """What two models may have in common without a common origin, by key: architecture and first γ."""
    return {key: f"{study.model(key).family}, γ {TrainingRecord.of(vectors).gamma}" for key, vectors in models.items()}

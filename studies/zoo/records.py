"""This module reads how a model was trained and how its γ began, from the record that its extract keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.study.catalog import Study

__all__ = ["FIRST_GAMMAS", "FirstGamma", "TrainingRecord", "designs", "training_records"]

_NAMES: Mapping[str, str] = MappingProxyType({"llama": "Llama", "gpt2": "GPT-2"})


@dataclass(frozen=True, slots=True)
class FirstGamma:
    """A distribution that every γ of a model is drawn from before training.

    Args:
        words: what readers see.
        mean: of the distribution.
        std: of the distribution; 0 where every channel begins with the same value.
    """

    words: str
    mean: float
    std: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.mean) or not self.std >= 0 or self.mean == self.std == 0:
            raise ComparisonError(
                f"A first γ of mean {self.mean:g} and standard deviation {self.std:g}: expected numbers, the second "
                "not negative, and not both zero, since a norm that is zero gives out nothing."
            )


_OF_ABSOLUTE = math.sqrt(2 / math.pi)

FIRST_GAMMAS: Mapping[str, FirstGamma] = MappingProxyType(
    {
        "ones": FirstGamma("1", 1.0, 0.0),
        "two": FirstGamma("2", 2.0, 0.0),
        "near_one": FirstGamma("N(1, 0.1)", 1.0, 0.1),
        "absolute": FirstGamma("|N(0, 1)|", _OF_ABSOLUTE, math.sqrt(1 - 2 / math.pi)),
        "normal": FirstGamma("N(0, 1)", 0.0, 1.0),
    }
)
"""By the name in a model's record; N takes a mean and a standard deviation. The order is that of tables and figures."""


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """How one model was trained, as its extract has it on record.

    Args:
        architecture: what readers see of it.
        gamma: one of FIRST_GAMMAS.
        text: name of the text.
        seed: of the first weights and the batches.
        steps: of the training.
        loss: on held-out bytes, nats a byte.
        unigram_loss: the loss there of one who knows how frequent each byte is, and no more.
    """

    architecture: str
    gamma: str
    text: str
    seed: int
    steps: int
    loss: float
    unigram_loss: float

    def __post_init__(self) -> None:
        if self.gamma not in FIRST_GAMMAS:
            raise ComparisonError(
                f"Reading a record of training: γ begins as '{self.gamma}'; expected one of {', '.join(FIRST_GAMMAS)}."
            )

    @classmethod
    def of(cls, vectors: NormVectors) -> TrainingRecord:
        """The record of a model.

        Raises:
            ComparisonError: when the extract has no such record, or one that cannot be read.
        """
        try:
            kept = {name: vectors.provenance[f"zoo_{name}"] for name in cls.__dataclass_fields__}
            seed, steps = int(kept["seed"]), int(kept["steps"])
            loss, unigram_loss = float(kept["loss"]), float(kept["unigram_loss"])
        except (KeyError, ValueError) as error:
            raise ComparisonError(
                f"Reading how '{vectors.source}' was trained: its extract should have 'zoo_gamma', 'zoo_loss' and the "
                f"rest on record, and does not ({error}). Give a model that the package zoo made."
            ) from None
        architecture = _NAMES.get(kept["architecture"], kept["architecture"])
        return cls(architecture, kept["gamma"], kept["text"], seed, steps, loss, unigram_loss)


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

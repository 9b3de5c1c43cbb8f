"""This module says what γ of a trained model owes to how it began, from the record that its extract keeps.

Where the channels of two vectors are drawn one by one, their cosine tends to c_a c_b as the channels become many, with
c = mean / rms of what they are drawn from. That needs no training and no weights, so it can be said beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.rows import Matrix

__all__ = ["FIRST_GAMMAS", "FirstGamma", "TrainingRecord", "moved", "predicted_cosine", "stacked", "trained"]

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

    @property
    def share(self) -> float:
        """Mean over root mean square: how much of γ points along (1, 1, ..., 1)."""
        return self.mean / math.hypot(self.mean, self.std)


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


def predicted_cosine(a: str, b: str) -> float:
    """The cosine of two untrained γ with many channels, by the names of their distributions: c_a c_b.

    >>> [round(predicted_cosine(name, name), 4) for name in ("ones", "near_one", "absolute", "normal")]
    [1.0, 0.9901, 0.6366, 0.0]

    Raises:
        ComparisonError: for a name that is not among FIRST_GAMMAS.
    """
    if unknown := [name for name in (a, b) if name not in FIRST_GAMMAS]:
        raise ComparisonError(f"There is no first γ '{unknown[0]}'; known are {', '.join(FIRST_GAMMAS)}.")
    return FIRST_GAMMAS[a].share * FIRST_GAMMAS[b].share


def stacked(vectors: NormVectors, roles: Sequence[str]) -> Matrix:
    """γ of these roles, one below the other, float64, shape ``(n_roles * n_layers, hidden_size)``."""
    return np.concatenate([vectors[role].scale for role in roles]).astype(np.float64)


def trained(models: Mapping[str, NormVectors], roles: Sequence[str], labels: Mapping[str, str]) -> pd.DataFrame:
    """What became of each model, one row a model.

    Returns:
        Columns ``model``, ``architecture``, ``first_gamma`` (in words), ``text``, ``seed``, ``steps``, ``loss``,
        ``unigram_loss``, ``gain`` (the latter less the former); ``mean``, ``std`` (within a norm, root mean square over
        the norms), ``least`` and ``most`` of γ after training.

    Raises:
        ComparisonError: when a model has no record of its training.
        RoleError: when a model has no norms of a role.
    """
    rows = []
    for key, vectors in models.items():
        record, gamma = TrainingRecord.of(vectors), stacked(vectors, roles)
        row = {"model": labels[key], "architecture": record.architecture}
        row |= {"first_gamma": FIRST_GAMMAS[record.gamma].words}
        row |= {name: getattr(record, name) for name in ("text", "seed", "steps", "loss", "unigram_loss")}
        values = {"mean": gamma.mean(), "std": _spread(gamma), "least": gamma.min(), "most": gamma.max()}
        rows.append({**row, "gain": record.unigram_loss - record.loss, **values})
    return pd.DataFrame(rows)


def moved(models: Mapping[str, NormVectors], roles: Sequence[str], labels: Mapping[str, str]) -> pd.DataFrame:
    """How far γ went from where it began, one row a model whose γ began with one value in every channel.

    Of the others the first values are not on record: they were drawn, and only the seed was kept.

    Returns:
        Columns ``model``, ``architecture``, ``first_gamma``, ``moved`` (root mean square of γ less its first value),
        ``shift`` (mean of the same), ``std`` (spread of γ after training, within a norm), ``moved_in_spreads`` (moved
        over std) and ``moved_relative`` (moved over the first value). Norm by norm, the square of what is moved is that
        of the spread plus that of the shift. No row where no γ began so.
    """
    rows: list[dict[str, Any]] = []
    for key, vectors in models.items():
        record = TrainingRecord.of(vectors)
        first = FIRST_GAMMAS[record.gamma]
        if first.std > 0:
            continue
        change = stacked(vectors, roles) - first.mean
        distance, spread = float(np.sqrt((change**2).mean())), _spread(change)
        names = {"model": labels[key], "architecture": record.architecture, "first_gamma": first.words}
        found = {"moved": distance, "shift": float(change.mean()), "std": spread}
        rows.append({**names, **found, "moved_in_spreads": distance / spread, "moved_relative": distance / first.mean})
    columns = ("moved", "shift", "std", "moved_in_spreads", "moved_relative")
    return pd.DataFrame(rows, columns=["model", "architecture", "first_gamma", *columns])


def _spread(gamma: Matrix) -> float:
    """Standard deviation over the channels of a norm, root mean square over the norms."""
    return float(np.sqrt(gamma.var(axis=1).mean()))

"""This module says what a recipe is: everything that decides one model of the zoo.

A recipe is complete: the same recipe, texts and library versions on the same kind of processor give the same weights.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType

__all__ = ["ARCHITECTURES", "GAMMA_INITS", "KINDS", "SAME_FUNCTION", "UNTRAINED", "Recipe", "Size"]

ARCHITECTURES: Mapping[str, str] = MappingProxyType(
    {
        "llama": "LlamaForCausalLM: RMSNorm before attention and MLP, no bias, input and output tables apart",
        "gpt2": "GPT2LMHeadModel: LayerNorm with bias before attention and MLP, one table for input and output",
    }
)

GAMMA_INITS: Mapping[str, str] = MappingProxyType(
    {
        "ones": "one",
        "normal": "normal, mean 0, standard deviation 1",
        "near_one": "normal, mean 1, standard deviation 0.1",
        "absolute": "absolute values of a normal with mean 0 and standard deviation 1",
        "two": "two",
    }
)
"""How γ of every norm begins; β begins at zero."""

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "root": "trained from random weights",
        "light": "trained further for a short time at a tenth of the rate",
        "heavy": "trained further for as long as the root and at its rate",
        "other_text": "trained further on the other text",
        "high_rate": "trained further at three times the root's rate",
        "expanded": "every layer twice, then trained further",
        "dropped": "every second layer only, then trained further",
        "frozen": "trained further on the other text with all norms held fixed",
        "reinitialised": "all norms set to their first values, then trained further",
        "distilled": "trained from random weights to give the parent's probabilities",
        "permuted": "hidden channels renumbered; the same function",
        "rescaled": "γ multiplied by random factors, the matrices behind it divided by them; the same function",
        "folded": "γ and β worked into the matrices behind them, γ = 1 and β = 0; the same function",
        "rounded": "every weight rounded to BF16",
        "merged": "the mean of two children's weights",
    }
)
"""How a model came from its parents."""

SAME_FUNCTION = ("permuted", "rescaled", "folded")
"""Kinds that compute what the parent computes, up to rounding."""

UNTRAINED = (*SAME_FUNCTION, "rounded", "merged")
"""Kinds that are made without training."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a zoo's models.

    Args:
        hidden: hidden size, channels of each norm.
        layers: blocks of a root.
        heads: attention heads.
        mlp: width of the MLP; GPT-2's, which has no gate, gets half as much again.
        context: bytes in a row.
        batch: rows a step.
        steps: steps of a root.
        rate: highest learning rate of a root.
    """

    hidden: int = 192
    layers: int = 6
    heads: int = 6
    mlp: int = 384
    context: int = 128
    batch: int = 8
    steps: int = 360
    rate: float = 4e-3


@dataclass(frozen=True, slots=True)
class Recipe:
    """One model of the zoo.

    Args:
        name: its name, also of its extract.
        architecture: one of ARCHITECTURES.
        kind: one of KINDS.
        text: name of the text it is trained on last.
        seed: of the first weights, the batches, and any permutation or factor.
        steps: training steps of its own.
        rate: highest learning rate of its own training.
        size: see Size.
        parents: names of the models it is made from.
        gamma: one of GAMMA_INITS; the root's, for a model with parents.
    """

    name: str
    architecture: str
    kind: str
    text: str
    seed: int
    steps: int
    rate: float
    size: Size
    parents: tuple[str, ...] = ()
    gamma: str = "ones"

    def __post_init__(self) -> None:
        wrong = [
            f"{what} '{value}' is none of {', '.join(known)}"
            for what, value, known in (
                ("architecture", self.architecture, ARCHITECTURES),
                ("kind", self.kind, KINDS),
                ("gamma", self.gamma, GAMMA_INITS),
            )
            if value not in known
        ]
        if wrong:
            raise ValueError(f"Recipe '{self.name}': {'; '.join(wrong)}.")
        n_parents = {"root": 0, "merged": 2}.get(self.kind, 1)
        if len(self.parents) != n_parents:
            raise ValueError(f"Recipe '{self.name}': kind {self.kind} needs {n_parents} parents, not {self.parents}.")
        if (self.steps == 0) != (self.kind in UNTRAINED):
            raise ValueError(f"Recipe '{self.name}': kind {self.kind} does not go with {self.steps} steps.")

    def fingerprint(self, parents: Mapping[str, str], texts: Mapping[str, str]) -> str:
        """A hash of all that decides the model: this recipe, its parents' fingerprints and the texts' hashes."""
        content = {"recipe": asdict(self), "parents": [parents[name] for name in self.parents], "texts": dict(texts)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

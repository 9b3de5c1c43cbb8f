"""Made models with a record of training, for tests of how γ began: first values drawn, then moved a little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from made_vectors import made

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.initialisation import FIRST_GAMMAS

__all__ = ["LABELS", "ROLES", "trained_model", "zoo_of"]

ROLES = ("pre_attention", "pre_mlp")
LABELS = {name: name.upper() for name in "abcdefghij"}


def trained_model(
    seed: int, gamma: str = "ones", architecture: str = "llama", moved: float = 0.04, size: int = 256, **record: str
) -> NormVectors:
    """A model of two roles with four layers, its γ drawn as `gamma` says and moved by normal steps."""
    generator, first = np.random.default_rng(seed), FIRST_GAMMAS[gamma]
    drawn = {
        "ones": lambda: np.ones((4, size)),
        "two": lambda: np.full((4, size), 2.0),
        "near_one": lambda: generator.normal(first.mean, first.std, (4, size)),
        "absolute": lambda: np.abs(generator.normal(size=(4, size))),
        "normal": lambda: generator.normal(size=(4, size)),
    }
    stacks = {role: made(drawn[gamma]() + moved * generator.normal(size=(4, size)), role=role) for role in ROLES}
    kept = {"architecture": architecture, "gamma": gamma, "text": "prose", "seed": str(seed), "steps": "360"}
    kept |= {"loss": "2.0", "unigram_loss": "3.0", **record}
    roles = {role: stacks[role][role] for role in ROLES}
    return replace(stacks[ROLES[0]], roles=roles, provenance={f"zoo_{name}": value for name, value in kept.items()})


def zoo_of(gammas: Sequence[str], architecture: str = "llama") -> dict[str, NormVectors]:
    """Models by the first letters, one a first γ named."""
    return {
        key: trained_model(place, gamma, architecture)
        for place, (key, gamma) in enumerate(zip(LABELS, gammas, strict=False))
    }

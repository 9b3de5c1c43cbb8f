"""Made norm vectors for tests: a model of one role, its rows given or drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors, RoleVectors

__all__ = ["LABELS", "drawn", "made"]

LABELS = {"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"}


def made(scale: npt.ArrayLike, layers: Sequence[int] | None = None, role: str = "pre_mlp") -> NormVectors:
    """A model of one role whose rows are these."""
    wide = np.asarray(scale, dtype=np.float32)
    numbers = list(range(len(wide))) if layers is None else list(layers)
    names = tuple(f"model.layers.{layer}.norm.weight" for layer in numbers)
    one = RoleVectors(role, np.array(numbers), wide, None, wide, None, names, "rmsnorm")
    return NormVectors("made", None, "llama", "rmsnorm", wide.shape[1], {role: one})


def drawn(seed: int, layers: Sequence[int] = range(5), size: int = 64, role: str = "pre_mlp") -> NormVectors:
    """A model of one role with rows drawn around 1."""
    generator = np.random.default_rng(seed)
    return made(generator.normal(1.0, 0.3, size=(len(layers), size)), layers, role)

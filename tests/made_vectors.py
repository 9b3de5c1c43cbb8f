"""Made models for tests: of one role, rows given or drawn; stacks of layers; a small zoo of known lineage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.metrics import pairwise

__all__ = ["LABELS", "ROLES", "drawn", "made", "made_models", "matrix", "noisy", "stack"]

ROLES = ("pre_attention", "pre_mlp")
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


def stack(n_layers: int, seed: int = 0, hidden_size: int = 256) -> np.ndarray:
    """Layers that each have r of about 0.9 with the next."""
    generator = np.random.default_rng(seed)
    layers = [generator.normal(size=hidden_size)]
    for _ in range(n_layers - 1):
        layers.append(0.9 * layers[-1] + np.sqrt(1 - 0.81) * generator.normal(size=hidden_size))
    return 1 + 0.1 * np.stack(layers)


def noisy(rows: np.ndarray, size: float = 0.01) -> np.ndarray:
    """The same with noise on every value, a tenth of the spread of a layer where not said."""
    return rows + size * np.random.default_rng(99).normal(size=rows.shape)


def matrix(a: np.ndarray, b: np.ndarray, layers_b: list[int] | None = None) -> pd.DataFrame:
    """r of every layer with every layer."""
    columns = pd.Index(layers_b if layers_b is not None else range(len(b)), name="b")
    return pd.DataFrame(pairwise(a, b, "pearson"), index=pd.RangeIndex(len(a), name="a"), columns=columns)


def made_models(seed: int = 0, size: int = 48) -> dict[str, NormVectors]:
    """Two roles of three layers: a root, models made from it in several ways, and strangers."""
    rng = np.random.default_rng(seed)
    root = rng.normal(1.0, 0.1, (2, 3, size))
    rows = {
        "root": root,
        "child": root + rng.normal(0, 0.01, root.shape),
        "grandchild": root + rng.normal(0, 0.02, root.shape),
        "hidden": root[:, :, rng.permutation(size)],
        "flat": np.ones_like(root),
        "deep": np.repeat(root, 2, axis=1) + rng.normal(0, 0.01, (2, 6, size)),
        **{key: rng.normal(1.0, 0.1, root.shape) for key in ("other", "third")},
        "odd": rng.normal(0.0, 1.0, root.shape),
    }
    found = {key: _model(values) for key, values in rows.items()}
    biased = {
        role: replace(one, bias=one.scale - 1, stored_bias=one.scale - 1) for role, one in found["odd"].roles.items()
    }
    return found | {"odd": replace(found["odd"], roles=biased)}


def _model(values: np.ndarray) -> NormVectors:
    models = [made(block, role=role) for role, block in zip(ROLES, values, strict=True)]
    return replace(models[0], roles={role: one for model in models for role, one in model.roles.items()})

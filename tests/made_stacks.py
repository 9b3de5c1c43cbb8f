"""Made stacks of layers for tests: they follow from one another, as those of a model do."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lnsim.measure.metrics import pairwise

__all__ = ["matrix", "noisy", "stack"]


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

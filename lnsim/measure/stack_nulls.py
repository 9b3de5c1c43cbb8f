"""This module sets whole stacks against Gaussian nulls: the published one, and one with each layer's own moments.

A Gaussian null draws every channel of every layer by itself. That is what makes it easy, in closed form too, and what
is wrong with it: it knows nothing of how the layers of one model resemble each other, so that its mean over layers
strays less than that of permuted channels, and a mean of 1 with a standard deviation of 0.1 is that of no real norm.
The exact spread under permuted channels stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.baselines import Draws, Gaussian, draw
from lnsim.measure.listed_pairs import ListedPair, comparable
from lnsim.measure.metrics import pairwise, row_statistics
from lnsim.measure.nulls import Floats
from lnsim.measure.permutation import shared_null_std

__all__ = ["PUBLISHED", "stack_nulls"]

PUBLISHED = (1.0, 0.1)
"""Mean and standard deviation of the random vectors of document 001."""


def stack_nulls(
    models: Mapping[str, NormVectors],
    pairs: Sequence[ListedPair],
    labels: Mapping[str, str],
    n_draws: int,
    seed: int,
) -> pd.DataFrame:
    """The mean cosine and mean r of each pair's common layers, and what Gaussian vectors in their place would give.

    Args:
        models: vectors by key; a pair is left out where they lack one of its models or roles.
        pairs: as ``listed_pairs.pairs_of`` gives them.
        labels: what readers see of each key.
        n_draws: pairs of stacks simulated, the layers independent of each other.
        seed: of the draws; pairs of one hidden size and number of layers share them.

    Returns:
        Columns ``pair``, ``norms``, ``layers``, ``cosine``, ``r``; for the published moments and for the pair's own,
        ``cosine_published`` and ``cosine_own`` with ``_std`` (both closed form) and ``_simulated``; of r, whose mean is
        0 under all nulls, ``r_std_gaussian`` (closed form), ``r_std_simulated`` and ``r_std_permuted`` (exact, layers
        as they are).
    """
    rows: list[dict[str, Any]] = []
    drawn: dict[tuple[int, int], list[Draws]] = {}
    for one, a, b in comparable(models, pairs):
        _, rows_a, rows_b = np.intersect1d(a.layers, b.layers, assume_unique=True, return_indices=True)
        size = len(rows_a), a.hidden_size
        if size not in drawn:
            drawn[size] = list(draw(size[1], n_draws * size[0], seed).parts(size[0]))
        words = {"pair": f"{labels[one.a]} × {labels[one.b]}", "norms": one.norms}
        rows.append(words | _beside(a.scale[rows_a], b.scale[rows_b], drawn[size]))
    return pd.DataFrame(rows)


def _beside(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32], draws: Sequence[Draws]) -> dict[str, float]:
    n_layers, hidden_size = a.shape
    own = _of_layers(a, b)
    mean, std = PUBLISHED
    published = [Gaussian(mean, std, mean, std, hidden_size)] * n_layers
    found: dict[str, float] = {"layers": n_layers}
    found |= {
        name: float(np.diag(pairwise(a, b, kind)).mean()) for name, kind in (("cosine", "cosine"), ("r", "pearson"))
    }
    for name, layers in (("published", published), ("own", own)):
        expected, spread = _closed(layers, "cosine")
        found |= {f"cosine_{name}": expected, f"cosine_{name}_std": spread}
        found |= {f"cosine_{name}_simulated": float(_simulated(layers, draws, "cosine").mean())}
    found["r_std_gaussian"] = _closed(own, "r")[1]
    found["r_std_simulated"] = float(_simulated(own, draws, "r").std(ddof=1))
    return found | {"r_std_permuted": shared_null_std(a, b)}


def _of_layers(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> list[Gaussian]:
    """Gaussian vectors with the moments of each layer."""
    of_a, of_b = row_statistics(a), row_statistics(b)
    moments = zip(of_a.mean.tolist(), of_a.std.tolist(), of_b.mean.tolist(), of_b.std.tolist(), strict=True)
    return [Gaussian(mean_a, std_a, mean_b, std_b, a.shape[1]) for mean_a, std_a, mean_b, std_b in moments]


def _closed(layers: Sequence[Gaussian], measure: str) -> tuple[float, float]:
    """Mean and standard deviation of the mean over independent layers."""
    closed = [layer.closed() for layer in layers]
    variance = sum(one[f"{measure}_std"] ** 2 for one in closed)
    return float(np.mean([one[measure] for one in closed])), float(np.sqrt(variance) / len(closed))


def _simulated(layers: Sequence[Gaussian], draws: Sequence[Draws], measure: str) -> Floats:
    """The mean over layers of each simulated stack, every layer with draws of its own."""
    return np.asarray(np.mean([one.values(part)[measure] for one, part in zip(layers, draws, strict=True)], axis=0))

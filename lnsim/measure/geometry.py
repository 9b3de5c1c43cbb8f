"""This module measures what the mean of γ does to a cosine, and shows it on few enough numbers to look at.

Let c = mean / rms of a vector. Shuffling the channels of one of two vectors changes r and neither c. Over all shuffles
the cosine has the mean ``c_a c_b`` and the standard deviation ``sqrt((1 - c_a²)(1 - c_b²) / (n - 1))``, exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.matched import matched_rows, pair_label
from lnsim.measure.metrics import cosine_terms
from lnsim.measure.permutation import shared_null_std
from lnsim.measure.similarity import cosine as row_cosines

__all__ = [
    "SAMPLED",
    "TOY",
    "best_layers",
    "channel_bars",
    "mean_removal",
    "pair_curves",
    "pair_means",
    "sample_channels",
]

TOY: Mapping[str, tuple[float, float, float]] = {"A": (0.95, 0.7, 0.72), "B": (0.7, 1.05, 0.72)}
"""The two vectors of figure 0 of the published analysis (sionic-ai/solar-vs-glm at ff47427)."""

SAMPLED = 50
"""Channels of a picture that shows channels one by one, as in the published figures."""


def mean_removal(vectors: Mapping[str, Sequence[float]], steps: npt.ArrayLike = (0.0, 1.0)) -> pd.DataFrame:
    """Two vectors of three channels while their means are taken away.

    Args:
        vectors: by name.
        steps: shares of the mean taken away, 0 to 1.

    Returns:
        Columns ``step``, ``vector``, ``x``, ``y``, ``z``, ``cosine`` of the two and ``angle`` in degrees; one row a
        step and vector. At step 1 the cosine is Pearson's r.
    """
    raw = np.array([list(values) for values in vectors.values()], dtype=np.float64)
    if raw.shape != (2, 3):
        raise ComparisonError(f"Taking the mean from example vectors: expected two of three channels, got {raw.shape}.")
    rows: list[dict[str, Any]] = []
    for step in np.asarray(steps, dtype=np.float64):
        left = raw - step * raw.mean(axis=1, keepdims=True)
        cosine = float(row_cosines(left[:1], left[1:])[0, 0])
        both = {"step": float(step), "cosine": cosine, "angle": float(np.degrees(np.arccos(cosine)))}
        rows += [
            {**both, "vector": name, "x": at[0], "y": at[1], "z": at[2]} for name, at in zip(vectors, left, strict=True)
        ]
    return pd.DataFrame(rows)


def pair_curves(
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    roles: Sequence[str],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """Every pair at equal layer numbers.

    Returns:
        Columns ``pair``, ``role``, ``layer``, ``cosine``, ``r``, ``expected`` (mean of the cosine over all shuffles of
        the channels), ``expected_std`` (its standard deviation), ``null_std`` (that of r, 1 / sqrt(n - 1)) and ``n``.
    """
    if not pairs:
        raise ComparisonError("Comparing pairs at equal layer numbers: no pair has the vectors of both of its models.")
    frames = []
    for a, b in pairs:
        for role in roles:
            layers, rows_a, rows_b = matched_rows(models[a][role], models[b][role])
            terms = cosine_terms(models[a][role].scale[rows_a], models[b][role].scale[rows_b])
            n = models[a][role].hidden_size
            spread = np.sqrt((1 - terms.share_a**2) * (1 - terms.share_b**2))
            values = {"cosine": np.diag(terms.cosine), "r": np.diag(terms.r), "expected": np.diag(terms.mean_term)}
            nulls = {"expected_std": spread / np.sqrt(n - 1), "null_std": 1 / np.sqrt(n - 1), "n": n}
            names = {"pair": pair_label(a, b, labels), "role": role, "layer": layers}
            frames.append(pd.DataFrame({**names, **values, **nulls}))
    return pd.concat(frames, ignore_index=True)


def best_layers(curves: pd.DataFrame) -> pd.DataFrame:
    """The layer of the highest cosine of each pair and role; ``layers`` says among how many it was chosen.

    Args:
        curves: as ``pair_curves`` gives it.
    """
    groups = curves.groupby(["pair", "role"], sort=False)
    chosen = curves.loc[groups["cosine"].idxmax()].copy()
    chosen.insert(3, "layers", groups["layer"].size().to_numpy())
    return chosen.reset_index(drop=True)


def pair_means(
    curves: pd.DataFrame,
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """Mean cosine and mean r of each pair and role over its layers, beside what shuffled channels give.

    Args:
        curves: as ``pair_curves`` gives it for these pairs and models.
        pairs: model keys.
        models: vectors by key.
        labels: what readers see of each key.

    Returns:
        Columns ``pair``, ``role``, ``layers``, ``cosine_mean``, ``cosine_expected`` (over all shuffles), ``r_mean`` and
        ``r_null_std``: its exact standard deviation when one shuffle is shared by all layers, which are dependent.
    """
    groups, rows = dict(list(curves.groupby(["pair", "role"], sort=False))), []
    for a, b in pairs:
        pair = pair_label(a, b, labels)
        for role in dict.fromkeys(curves["role"]):
            one = groups[pair, role]
            _, rows_a, rows_b = matched_rows(models[a][role], models[b][role])
            std = shared_null_std(models[a][role].scale[rows_a], models[b][role].scale[rows_b])
            means = {"cosine_mean": one["cosine"].mean(), "cosine_expected": one["expected"].mean()}
            row = {"layers": len(one), **means, "r_mean": one["r"].mean(), "r_null_std": std}
            rows.append({"pair": pair, "role": role, **row})
    return pd.DataFrame(rows)


def sample_channels(a: npt.ArrayLike, b: npt.ArrayLike, n: int, seed: int) -> npt.NDArray[np.int64]:
    """`n` channels, as equally many as can be from each quarter by the mean of two vectors, in the order of that mean.

    Quarters are cut by rank, so that equal values cannot put one channel into two of them.

    Raises:
        ComparisonError: when the vectors have different lengths or fewer than `n` channels.
    """
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 1 or n > one.size:
        raise ComparisonError(f"Sampling {n} channels of vectors of shape {one.shape} and {other.shape}.")
    order = np.argsort(one + other, kind="stable")
    generator = np.random.default_rng(seed)
    quarters = np.array_split(order, 4)
    wanted = [len(part) for part in np.array_split(np.arange(n), 4)]
    ranks = np.empty(one.size, dtype=np.int64)
    ranks[order] = np.arange(one.size)
    chosen = [generator.choice(quarter, size, replace=False) for quarter, size in zip(quarters, wanted, strict=True)]
    found = np.concatenate(chosen).astype(np.int64)
    return found[np.argsort(ranks[found])]


def channel_bars(
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    best: pd.DataFrame,
    role: str,
    labels: Mapping[str, str],
    seed: int,
) -> pd.DataFrame:
    """γ of some channels of both models of each pair, at the layer that `best` gives for this role.

    Returns:
        Columns ``pair``, ``model``, ``place`` (0 to SAMPLED - 1, in the order of the two models' mean), ``channel``,
        ``gamma`` and ``centred``: less the model's mean over all of its channels, not over the sample.
    """
    layers = best[best["role"] == role].set_index("pair")["layer"]
    frames = []
    for a, b in pairs:
        pair = pair_label(a, b, labels)
        rows = {key: models[key][role].scale[models[key][role].row(int(layers[pair]))] for key in (a, b)}
        channels = sample_channels(rows[a], rows[b], SAMPLED, seed)
        for key, row in rows.items():
            wide = row.astype(np.float64)
            frame = {"channel": channels, "gamma": wide[channels], "centred": wide[channels] - wide.mean()}
            frames.append(pd.DataFrame({"pair": pair, "model": labels[key], "place": np.arange(SAMPLED), **frame}))
    return pd.concat(frames, ignore_index=True)

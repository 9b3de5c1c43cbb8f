"""This module breaks the pattern of layers on purpose, and says what a mean r over layers a distance apart is then.

Both keep every value of every layer. ``shuffled_layers`` gives each layer an order of channels of its own;
``null_by_distance`` says exactly how far a mean r strays from 0 over all permutations that there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.metrics import pairwise
from lnsim.measure.model_pairs import ModelPair, having_role, with_role

__all__ = ["null_by_distance", "shuffled_layers"]


def null_by_distance(
    models: Mapping[str, NormVectors], pairs: Sequence[ModelPair], roles: Sequence[str], labels: Mapping[str, str]
) -> pd.DataFrame:
    """How far a mean r strays from 0 when channels are permuted: the exact standard deviation over all permutations.

    Between two models one permutation is shared by all layers of the second, so that layers which resemble each other
    count for what they are. Within a model every layer has a permutation of its own. For unit vectors without their
    mean, ``Cov(a.Pb, c.Pd) = (a.c)(b.d) / (n - 1)`` over all permutations P of n channels, and the mean is 0.

    Returns:
        Columns ``name``, ``group``, ``role``, ``distance`` and ``null_std``.
    """
    frames = []
    for role in roles:
        within = {key: pairwise(one.scale, one.scale, "pearson") for key, one in having_role(models, role).items()}
        for key in within:
            frames.append(_named(_null_within(models[key][role]), labels[key], "within", role))
        for pair in with_role(models, pairs, role):
            null = _null_between(models[pair.a][role], models[pair.b][role], within[pair.a], within[pair.b])
            frames.append(_named(null, pair.label, pair.group, role))
    return pd.concat(frames, ignore_index=True)


def _named(null: pd.DataFrame, name: str, group: str, role: str) -> pd.DataFrame:
    return null.assign(name=name, group=group, role=role)[["name", "group", "role", "distance", "null_std"]]


def shuffled_layers(models: Mapping[str, NormVectors], roles: Sequence[str], seed: int) -> dict[str, NormVectors]:
    """The same models with the channels of every layer shuffled, each on its own; means and spreads stay.

    Args:
        models: vectors by key; every other role is left as it is.
        roles: roles shuffled, where a model has them.
        seed: of the generator; every model and role has its own stream, so leaving one out changes no other.
    """
    return {
        key: replace(vectors, roles={**vectors.roles, **_shuffled(vectors, [*key.encode()], roles, seed)})
        for key, vectors in models.items()
    }


def _shuffled(vectors: NormVectors, stream: list[int], roles: Sequence[str], seed: int) -> dict[str, RoleVectors]:
    found = {}
    for role in roles:
        if role in vectors.roles:
            generator = np.random.default_rng([seed, *stream, *role.encode()])
            found[role] = replace(vectors[role], scale=generator.permuted(vectors[role].scale, axis=1))
    return found


def _null_within(one: RoleVectors) -> pd.DataFrame:
    distances = np.abs(one.layers[:, None] - one.layers[None, :])[np.triu_indices(len(one.layers), 1)]
    found, counts = np.unique(distances, return_counts=True)
    null = 1 / np.sqrt((one.hidden_size - 1) * counts)
    return pd.DataFrame({"distance": found, "null_std": null})


def _null_between(
    a: RoleVectors, b: RoleVectors, within_a: npt.NDArray[np.float64], within_b: npt.NDArray[np.float64]
) -> pd.DataFrame:
    distances = np.abs(a.layers[:, None] - b.layers[None, :])
    found = np.unique(distances)
    variances = [_variance_of_mean(np.nonzero(distances == one), within_a, within_b) for one in found]
    null = np.sqrt(np.array(variances) / (a.hidden_size - 1))
    return pd.DataFrame({"distance": found, "null_std": null})


def _variance_of_mean(
    cells: tuple[npt.NDArray[np.intp], ...], within_a: npt.NDArray[np.float64], within_b: npt.NDArray[np.float64]
) -> float:
    """Variance of the mean r of these cells over all shared permutations, times n - 1."""
    rows, columns = cells
    return float((within_a[np.ix_(rows, rows)] * within_b[np.ix_(columns, columns)]).mean())

"""This module measures layers by how far apart they are, within one model and between two at the same offset.

A pair of layers of one model is a fair yardstick for a pair of layers of two models only if both are the same distance
apart. So layer i of one model meets layer j of another at the distance ``|i - j|``, whichever of the two is deeper.
Pairs that share a layer are dependent, so the number of pairs is no number of independent observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.cells import LayerCells
from lnsim.measure.metrics import pairwise
from lnsim.measure.model_pairs import ModelPair, having_role, with_role

__all__ = [
    "at_layers",
    "at_place",
    "beside",
    "by_distance",
    "layer_pairs",
    "null_by_distance",
    "overall",
    "shuffled_layers",
]

_KEYS = ["name", "group", "role"]


def layer_pairs(
    models: Mapping[str, NormVectors], pairs: Sequence[ModelPair], roles: Sequence[str], labels: Mapping[str, str]
) -> pd.DataFrame:
    """Every pair of layers within each model, and every layer of one model with every layer of another.

    Args:
        models: vectors by key.
        pairs: the pairs of models; where two cannot be compared in a role, they are left out of it.
        roles: roles compared; one that a model lacks is left out for it.
        labels: what readers see of each key.

    Returns:
        Columns ``name`` (a model or a pair of models), ``group`` (``within`` or that of the pair), ``role``,
        ``layer_a``, ``layer_b``, ``distance``, ``cosine``, ``mean_term`` (the cosine that the means alone give) and
        ``r`` (Pearson over the channels). Within a model ``layer_a < layer_b``.
    """
    frames = []
    for role in roles:
        cells = LayerCells.of(models, role)
        for key in cells.place:
            frame = _by_pair(cells, key, key)
            frames.append(_named(frame[frame["layer_a"] < frame["layer_b"]], labels[key], "within", role))
        for pair in with_role(models, pairs, role):
            frames.append(_named(_by_pair(cells, pair.a, pair.b), pair.label, pair.group, role))
    return pd.concat(frames, ignore_index=True)


def by_distance(frame: pd.DataFrame) -> pd.DataFrame:
    """The pairs of layers grouped by distance, every distance there is.

    Args:
        frame: as ``layer_pairs`` gives it.

    Returns:
        One row a name, role and distance: ``n`` pairs of layers; ``cosine_mean``, ``cosine_std`` (ddof 0),
        ``cosine_min``, ``cosine_max``, the same of ``r``, and ``mean_term`` (its mean).
    """
    return _aggregated(frame, [*_KEYS, "distance"])


def overall(frame: pd.DataFrame) -> pd.DataFrame:
    """All distances together: one row a name and role, with the columns of ``by_distance``."""
    return _aggregated(frame, _KEYS)


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


def at_layers(frame: pd.DataFrame, layers: Sequence[int]) -> pd.DataFrame:
    """The pairs of which both layers are among these, in their order."""
    return frame[frame["layer_a"].isin(list(layers)) & frame["layer_b"].isin(list(layers))].reset_index(drop=True)


def at_place(frame: pd.DataFrame, place: str) -> pd.DataFrame:
    """The rows whose role stands at a place of the block: ``attention`` or ``mlp``, before it or on its output."""
    return frame[frame["role"].str.endswith(place)]


def beside(frame: pd.DataFrame, distances: Sequence[int]) -> pd.DataFrame:
    """Mean cosine and mean r by distance, all names of one group together.

    Args:
        frame: as ``layer_pairs`` gives it.
        distances: those wanted; one that no pair has is left out.

    Returns:
        One row a distance; columns (group, ``n`` or ``cosine`` or ``r``). A group without any such pair of layers
        has 0 and NaN there.
    """
    wanted = frame[frame["distance"].isin(list(distances))].groupby(["distance", "group"])
    found = wanted.agg(n=("r", "size"), cosine=("cosine", "mean"), r=("r", "mean")).unstack("group")
    found = found.swaplevel(axis=1)
    order = [group for group in ("within", "related", "disputed", "independent") if group in found.columns]
    columns = [(group, value) for group in order for value in ("n", "cosine", "r")]
    counts = {column: 0 for column in columns if column[1] == "n"}
    return found[columns].fillna(counts).astype({column: int for column in counts})


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


def _by_pair(cells: LayerCells, a: str, b: str) -> pd.DataFrame:
    """One row a pair of layers, layers of `a` slowest."""
    layer_a, layer_b = np.meshgrid(cells.layers[a], cells.layers[b], indexing="ij")
    values = {name: cells.values(name, a, b).ravel() for name in ("cosine", "mean_term", "r")}
    layers = {"layer_a": layer_a.ravel(), "layer_b": layer_b.ravel()}
    return pd.DataFrame({**layers, "distance": np.abs(layer_a - layer_b).ravel(), **values})


def _named(frame: pd.DataFrame, name: str, group: str, role: str) -> pd.DataFrame:
    found = frame.reset_index(drop=True)
    for place, (column, value) in enumerate((("name", name), ("group", group), ("role", role))):
        found.insert(place, column, value)
    return found


def _aggregated(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row a group, groups in the order of the rows but for distances, which ascend."""
    groups = frame.sort_values("distance", kind="stable").groupby(keys, sort=False)
    found = groups[["cosine", "r"]].agg(["mean", "min", "max"])
    found.columns = [f"{column}_{statistic}" for column, statistic in found.columns]
    for column in ("cosine", "r"):
        found.insert(found.columns.get_loc(f"{column}_mean") + 1, f"{column}_std", groups[column].std(ddof=0))
    found.insert(0, "n", groups.size())
    found["mean_term"] = groups["mean_term"].mean()
    names = pd.MultiIndex.from_frame(frame[keys[:3]].drop_duplicates()).tolist()
    place = {name: number for number, name in enumerate(names)}
    order = [place[name[:3]] for name in found.index]
    return found.reset_index().iloc[np.argsort(order, kind="stable")].reset_index(drop=True)


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

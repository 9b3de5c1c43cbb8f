"""This module measures layers by how far apart they are, within one model and between two at the same offset.

A pair of layers of one model is a fair yardstick for a pair of layers of two models only if both are the same distance
apart. So layer i of one model meets layer j of another at the distance ``|i - j|``, whichever of the two is deeper.
Pairs that share a layer are dependent, so the number of pairs is no number of independent observations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.layer_cells import LayerCells
from lnsim.measure.model_pairs import ModelPair, with_role

__all__ = [
    "at_layers",
    "at_place",
    "beside",
    "beside_shuffled",
    "by_distance",
    "contrast",
    "layer_pairs",
    "named",
    "overall",
    "steps",
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
            frames.append(named(frame[frame["layer_a"] < frame["layer_b"]], labels[key], "within", role))
        for pair in with_role(models, pairs, role):
            frames.append(named(_by_pair(cells, pair.a, pair.b), pair.label, pair.group, role))
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


def contrast(frame: pd.DataFrame, group: str = "independent") -> pd.DataFrame:
    """Layers of one model beside layers of two models of one group, at every role and distance that both have.

    Args:
        frame: as ``layer_pairs`` gives it.
        group: of the pairs of models; where none is of this group, all rows of ``within`` stay alone.

    Returns:
        One row a group, role and distance: columns ``group``, ``role``, ``distance``, ``n``, ``cosine``, ``r``, means
        over all pairs of layers.
    """
    some = frame[frame["group"].isin(["within", group])].groupby(["group", "role", "distance"])
    found = some.agg(n=("r", "size"), cosine=("cosine", "mean"), r=("r", "mean")).reset_index()
    sides = found.groupby(["role", "distance"])["group"].transform("size")
    return found[sides == found["group"].nunique()].reset_index(drop=True)


def steps(frame: pd.DataFrame, role: str, layers: Sequence[int]) -> pd.DataFrame:
    """From each of these layers to each deeper one: one row a name, columns (``10 to 20``, ``cosine`` or ``r``)."""
    some = at_layers(frame[(frame["role"] == role) & (frame["layer_a"] < frame["layer_b"])], layers)
    step = some["layer_a"].astype(str) + " to " + some["layer_b"].astype(str)
    wide = some.assign(step=step).pivot(index="name", columns="step", values=["cosine", "r"]).swaplevel(axis=1)
    return wide.loc[
        list(dict.fromkeys(some["name"])), [(one, value) for one in sorted(set(step)) for value in ("cosine", "r")]
    ]


def beside_shuffled(frame: pd.DataFrame, shuffled: pd.DataFrame) -> pd.DataFrame:
    """What was measured beside the same with shuffled channels, all distances together.

    Args:
        frame: as ``layer_pairs`` gives it.
        shuffled: the same of the models that ``shuffled_layers`` gives.

    Returns:
        One row a group and role: ``n``, ``cosine_mean``, ``cosine_shuffled``, ``r_mean``, ``r_shuffled`` (means) and
        ``r_largest_shuffled`` (the largest ``|r|`` of any pair of layers).
    """
    keys = ["group", "role"]
    here = frame.groupby(keys, sort=False).agg(n=("r", "size"), cosine_mean=("cosine", "mean"), r_mean=("r", "mean"))
    there = shuffled.assign(size=shuffled["r"].abs()).groupby(keys, sort=False)
    here.insert(2, "cosine_shuffled", there["cosine"].mean())
    return here.assign(r_shuffled=there["r"].mean(), r_largest_shuffled=there["size"].max()).reset_index()


def _by_pair(cells: LayerCells, a: str, b: str) -> pd.DataFrame:
    """One row a pair of layers, layers of `a` slowest."""
    layer_a, layer_b = np.meshgrid(cells.layers[a], cells.layers[b], indexing="ij")
    values = {name: cells.values(name, a, b).ravel() for name in ("cosine", "mean_term", "r")}
    layers = {"layer_a": layer_a.ravel(), "layer_b": layer_b.ravel()}
    return pd.DataFrame({**layers, "distance": np.abs(layer_a - layer_b).ravel(), **values})


def named(frame: pd.DataFrame, name: str, group: str, role: str) -> pd.DataFrame:
    """The frame with these three as its first columns."""
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

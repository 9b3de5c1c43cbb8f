"""This module measures all pairs of models layer by layer, and sums them up by the kinds of the two models.

Pairs that share a model are dependent, and so are layers of one pair: n counts values, not independent observations.
Every standard deviation has ddof 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.matched import MatchedRows
from lnsim.measure.model_pairs import ModelPair, having_role, with_role

__all__ = [
    "at_layer",
    "by_kinds",
    "by_layer",
    "model_matrix",
    "over_layers",
    "pairs_beside",
    "pairs_by_layer",
    "pairs_summed",
]


def pairs_by_layer(
    models: Mapping[str, NormVectors], pairs: Sequence[ModelPair], roles: Sequence[str], kinds: Mapping[str, str]
) -> pd.DataFrame:
    """Every pair of models at every layer number that both have.

    Args:
        models: vectors by key.
        pairs: pairs of models; one that cannot be compared in a role is left out of it.
        roles: roles compared.
        kinds: by model key, what it is counted as, for example ``dense``.

    Returns:
        Columns ``pair``, ``a`` and ``b`` (keys), ``group`` (of the pair), ``kinds`` (of the two, in the order in which
        kinds first appear), ``role``, ``layer``, ``cosine``, ``mean_term`` (the cosine that the means alone give) and
        ``r`` (Pearson over the channels).
    """
    frames = []
    for role in roles:
        rows = {key: MatchedRows.of(one) for key, one in having_role(models, role).items()}
        for pair in with_role(models, pairs, role):
            frames.append(_pair_frame(rows[pair.a].against(rows[pair.b]), pair, role, kinds))
    if not frames:
        raise ComparisonError(
            f"Comparing {len(models)} models: no two of them have a role among {', '.join(roles)} in common."
        )
    return pd.concat(frames, ignore_index=True)


def at_layer(frame: pd.DataFrame, layer: int) -> pd.DataFrame:
    """The rows of one layer; ComparisonError where no pair has it."""
    found = frame[frame["layer"] == layer].reset_index(drop=True)
    if found.empty:
        raise ComparisonError(f"Comparing models at layer {layer}: no pair of them has such a layer in common.")
    return found


def pairs_summed(frame: pd.DataFrame, layer: int) -> pd.DataFrame:
    """One row a pair and role: its values at one layer, and over all common layers.

    Returns:
        Columns ``pair``, ``group``, ``kinds``, ``role``, ``cosine`` and ``r`` at the layer (NaN where it is not
        common), ``layers`` (how many are common), ``cosine_mean``, ``mean_term`` (mean over the layers) and ``r_mean``.
    """
    keys = ["pair", "group", "kinds", "role"]
    found = frame.groupby(keys, sort=False).agg(
        layers=("layer", "size"),
        cosine_mean=("cosine", "mean"),
        mean_term=("mean_term", "mean"),
        r_mean=("r", "mean"),
    )
    here = at_layer(frame, layer).set_index(keys)[["cosine", "r"]]
    return here.reindex(found.index).join(found).reset_index()


def by_kinds(frame: pd.DataFrame, sets: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Statistics over pairs by the kinds of their models, for several sets of models.

    Args:
        frame: rows of ``pairs_by_layer``, usually those of one layer.
        sets: by name, the keys of the models in it.

    Returns:
        One row a set, kinds and role, with the ``related`` pairs ``in`` and ``out``: ``n``, then
        ``cosine_mean``, ``cosine_std`` (ddof 0), ``cosine_median``, ``cosine_min``, ``cosine_max``; the same of ``r``.
    """
    return _of_sets(frame, sets, ["kinds", "role"])


def by_layer(frame: pd.DataFrame, sets: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The statistics of ``by_kinds`` at every layer; ``cosine_mean_plus_std`` is added.

    Where one of four models lies apart, three of the six pairs are low and three are high: mean plus one standard
    deviation is then where the high ones lie, and the mean is a value that no pair has.
    """
    found = _of_sets(frame, sets, ["kinds", "role", "layer"])
    place = found.columns.get_loc("cosine_std") + 1
    found.insert(place, "cosine_mean_plus_std", found["cosine_mean"] + found["cosine_std"])
    return found


def over_layers(frame: pd.DataFrame, sets: Mapping[str, Sequence[str]], layers: Sequence[int]) -> pd.DataFrame:
    """All pairs and layers together: once the layers listed, once every layer that all pairs of the set have.

    Returns:
        One row a choice of layers, set, related pairs in or out, kinds and role: columns of ``by_kinds``, ``layers``
        (their number) and ``layer_means_std``: the standard deviation (ddof 0) of the means of the layers.
    """
    listed = frame[frame["layer"].isin(list(layers))]
    parts = [_together(part, sets, which) for which, part in (("listed", listed), ("every common", _common(frame)))]
    return pd.concat(parts, ignore_index=True)


def pairs_beside(frame: pd.DataFrame, pairs: Sequence[str], layers: Sequence[int]) -> pd.DataFrame:
    """Some pairs side by side: one row a layer, columns (pair, ``cosine`` or ``r``).

    Args:
        frame: rows of ``pairs_by_layer``, of one role.
        pairs: labels; a pair that was not measured is left out.
        layers: those wanted; NaN where a pair lacks one that another has.
    """
    some = frame[frame["pair"].isin(list(pairs)) & frame["layer"].isin(list(layers))]
    wide = some.pivot(index="layer", columns="pair", values=["cosine", "r"]).swaplevel(axis=1)
    return wide[[(pair, value) for pair in pairs if pair in set(some["pair"]) for value in ("cosine", "r")]]


def model_matrix(frame: pd.DataFrame, value: str, labels: Mapping[str, str]) -> pd.DataFrame:
    """The mean of one value for every pair of models as a symmetric matrix.

    Args:
        frame: rows of ``pairs_by_layer``, of one role.
        value: ``cosine`` or ``r``.
        labels: what readers see of each key; the matrix has these models, in this order.

    Returns:
        Index and columns are labels; 1 on the diagonal, NaN where two models cannot be compared.
    """
    means = frame.groupby(["a", "b"])[value].mean()
    matrix = pd.DataFrame(np.nan, index=list(labels.values()), columns=list(labels.values()))
    for (a, b), mean in means.items():
        matrix.loc[labels[a], labels[b]] = matrix.loc[labels[b], labels[a]] = mean
    for label in labels.values():
        matrix.loc[label, label] = 1.0
    return matrix


def _pair_frame(values: pd.DataFrame, pair: ModelPair, role: str, kinds: Mapping[str, str]) -> pd.DataFrame:
    order = list(dict.fromkeys(kinds.values()))
    both = sorted((kinds[pair.a], kinds[pair.b]), key=order.index)
    known = {"pair": pair.label, "a": pair.a, "b": pair.b, "group": pair.group, "kinds": " × ".join(both), "role": role}
    for place, (column, value) in enumerate(known.items()):
        values.insert(place, column, value)
    return values


def _of_sets(frame: pd.DataFrame, sets: Mapping[str, Sequence[str]], keys: list[str]) -> pd.DataFrame:
    parts = []
    for name, models in sets.items():
        inside = frame[frame["a"].isin(list(models)) & frame["b"].isin(list(models))]
        for choice, rows in (("in", inside), ("out", inside[inside["group"] != "related"])):
            found = _statistics(rows, keys)
            found.insert(0, "models", name)
            found.insert(1, "related", choice)
            parts.append(found)
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _statistics(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    groups = frame.groupby(keys, sort=False)
    columns = {"n": groups.size()}
    for value in ("cosine", "r"):
        columns[f"{value}_mean"] = groups[value].mean()
        columns[f"{value}_std"] = groups[value].std(ddof=0)
        for statistic in ("median", "min", "max"):
            columns[f"{value}_{statistic}"] = groups[value].agg(statistic)
    return pd.DataFrame(columns).reset_index()


def _common(frame: pd.DataFrame) -> pd.DataFrame:
    """The layers that every pair of a role has: means over layers would otherwise rest on other pairs at each depth."""
    at_layer_number = frame.groupby(["role", "layer"])["pair"].transform("nunique")
    return frame[at_layer_number == frame.groupby("role")["pair"].transform("nunique")]


def _together(frame: pd.DataFrame, sets: Mapping[str, Sequence[str]], which: str) -> pd.DataFrame:
    keys = ["models", "related", "kinds", "role"]
    found = _of_sets(frame, sets, ["kinds", "role"]).set_index(keys)
    layers = by_layer(frame, sets).groupby(keys, sort=False)
    found.insert(1, "layers", layers.size())
    found.insert(2, "layer_means_std", layers["cosine_mean"].std(ddof=0))
    found = found.reset_index()
    found.insert(0, "which_layers", which)
    return found

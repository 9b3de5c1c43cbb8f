"""This module measures how one layer does as a baseline for the others of the same model.

Every table has one row a role and layer, so that figures and prose take their numbers from the same place. For two
vectors with the shares c = mean / rms and the Pearson correlation r,
``cos = c_a c_b + r sqrt(1 - c_a^2) sqrt(1 - c_b^2)``: the mean term plus the pattern term.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import cosine_terms, pairwise
from lnsim.measure.nulls import permute_coordinates, pvalue
from lnsim.measure.rows import row_statistics

__all__ = [
    "baseline_terms",
    "beside_by_role",
    "each_layer",
    "every_model",
    "layer_values",
    "over_layers",
    "role_summary",
    "sample_layers",
    "shuffled",
    "stands_apart",
]

_BAND = (2.5, 97.5)
"""Percentiles between which 95 % of the shuffles lie."""


def role_summary(vectors: NormVectors, roles: Sequence[str], baseline_layer: int) -> pd.DataFrame:
    """What was read of each role, and how its baseline layer differs from the others; one row a role."""
    rows: dict[str, dict[str, Any]] = {}
    for role in roles:
        one = vectors[role]
        share, own = _shares(one.scale), one.row(baseline_layer)
        others = np.delete(share, own)
        rows[role] = {
            "tensors": _pattern(one.names),
            "layers": len(one.layers),
            "channels": one.hidden_size,
            "norm_type": one.norm_type,
            "mean_over_rms_baseline": share[own],
            "mean_over_rms_others_min": others.min(),
            "mean_over_rms_others_max": others.max(),
            "negative_share_baseline": float((one.scale[own] < 0).mean()),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("role")


def sample_layers(layers: npt.ArrayLike, first: int, n: int = 5) -> list[int]:
    """`n` layers for a figure or table: `first`, the one after it, then evenly spread up to the last."""
    later = [int(layer) for layer in np.unique(np.asarray(layers)) if layer > first]
    places = np.linspace(0, len(later) - 1, n - 1).round().astype(int) if later else np.array([], dtype=int)
    return [first, *dict.fromkeys(later[place] for place in places)]


def layer_values(vectors: NormVectors, roles: Sequence[str], layers: Iterable[int]) -> pd.DataFrame:
    """Values of γ: one row a channel, columns (role, layer); a layer that a role lacks is left out."""
    wanted = list(layers)
    columns = {
        (role, layer): vectors[role].scale[vectors[role].row(layer)].astype(np.float64)
        for role in roles
        for layer in wanted
        if layer in vectors[role].layers
    }
    return pd.DataFrame(columns).rename_axis("channel")


def baseline_terms(vectors: NormVectors, roles: Sequence[str], baseline_layer: int) -> pd.DataFrame:
    """The baseline layer against every other layer.

    Returns:
        Columns ``model``, ``role``, ``layer``, ``cosine``, ``mean_term``, ``pattern_term``, ``r``, ``share`` (mean/rms
        of that layer), ``bound`` (the largest cosine that these two means allow) and ``cosine_elsewhere`` (mean cosine
        of that layer with all layers but the baseline).
    """
    frames = [
        _terms(vectors, role, baseline_layer).assign(cosine_elsewhere=_elsewhere(vectors[role], baseline_layer))
        for role in roles
    ]
    return pd.concat(frames, ignore_index=True)


def every_model(models: Mapping[str, NormVectors], labels: Mapping[str, str], baseline_layer: int) -> pd.DataFrame:
    """The baseline layer against every other layer, in every role of every model that has it.

    Args:
        models: vectors by key.
        labels: what readers see of each key.
        baseline_layer: number of the layer; a role that lacks it, or has fewer than three layers, is left out.

    Returns:
        ``model`` (the label), ``role``, ``layer``, ``cosine``, ``mean_term``, ``pattern_term``, ``r``, the ``mean``,
        ``std`` (ddof 0) and ``share`` (mean/rms) of that layer, and ``share_baseline``.
    """
    frames = []
    for key, vectors in models.items():
        for role, one in vectors.roles.items():
            if role.startswith("other/") or baseline_layer not in one.layers or len(one.layers) < 3:
                continue
            terms = _terms(vectors, role, baseline_layer).drop(columns="bound")
            found = row_statistics(np.delete(one.scale, one.row(baseline_layer), axis=0))
            own = float(_shares(one.scale)[one.row(baseline_layer)])
            frames.append(terms.assign(model=labels[key], mean=found.mean, std=found.std, share_baseline=own))
    if not frames:
        raise ComparisonError(f"Comparing layer {baseline_layer} with the others: no model has it in any role.")
    return pd.concat(frames, ignore_index=True)


def over_layers(every: pd.DataFrame, layers: Sequence[int]) -> pd.DataFrame:
    """One row a model and role: the cosine with the baseline over the listed layers and over all of them.

    Args:
        every: as ``every_model`` gives it.
        layers: numbers of the listed layers; those that a model lacks are left out of its mean.
    """
    groups = every.groupby(["model", "role"], sort=False)
    listed = every[every["layer"].isin(list(layers))].groupby(["model", "role"], sort=False)["cosine"].mean()
    found = groups.agg(
        layers=("layer", "size"),
        share_baseline=("share_baseline", "first"),
        cosine_mean=("cosine", "mean"),
        cosine_min=("cosine", "min"),
        cosine_max=("cosine", "max"),
        r_mean=("r", "mean"),
    )
    found.insert(2, "cosine_listed", listed.reindex(found.index))
    return found.reset_index("role")


def each_layer(vectors: NormVectors, roles: Sequence[str], baseline_layer: int) -> pd.DataFrame:
    """Every layer in turn as the baseline: columns ``model``, ``role``, ``layer``, ``cosine_mean``, ``is_baseline``.

    ``cosine_mean`` is the mean cosine with all other layers of the same role.
    """
    frames = []
    for role in roles:
        one = vectors[role]
        means = _mean_with_others(pairwise(one.scale, one.scale, "cosine"))
        frame = {"role": role, "layer": one.layers, "cosine_mean": means, "is_baseline": one.layers == baseline_layer}
        frames.append(pd.DataFrame({"model": vectors.source, **frame}))
    return pd.concat(frames, ignore_index=True)


def stands_apart(each: pd.DataFrame) -> pd.DataFrame:
    """Whether the baseline layer is unlike every other choice; one row a role.

    Args:
        each: as ``each_layer`` gives it.

    Returns:
        Columns ``baseline`` (its mean cosine), ``others_min``, ``others_max``, ``fence`` and ``apart``: True where the
        baseline lies below all others and below the fence, three quartile ranges under the others' lower quartile
        ("far out" in Tukey, Exploratory Data Analysis, 1977).
    """
    own = each[each["is_baseline"]].set_index("role")["cosine_mean"]
    others = each[~each["is_baseline"]].groupby("role", sort=False)["cosine_mean"]
    lower, upper = others.quantile(0.25), others.quantile(0.75)
    found = pd.DataFrame(
        {"baseline": own, "others_min": others.min(), "others_max": others.max(), "fence": lower - 3 * (upper - lower)}
    )
    return found.assign(apart=(found["baseline"] < found["others_min"]) & (found["baseline"] < found["fence"]))


def beside_by_role(frame: pd.DataFrame, columns: Sequence[str], layers: Sequence[int]) -> pd.DataFrame:
    """Some columns of a long frame side by side: one row a layer, columns (role, column)."""
    roles = list(dict.fromkeys(frame["role"]))
    wide = frame[frame["layer"].isin(list(layers))].pivot(index="layer", columns="role", values=list(columns))
    return wide.swaplevel(axis=1)[[(role, column) for role in roles for column in columns]]


def shuffled(
    vectors: NormVectors, roles: Sequence[str], baseline_layer: int, n_permutations: int, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The baseline layer beside what it gives with its channels shuffled.

    One permutation is shared by all layers, so that layers which resemble each other are not counted as independent.

    Returns:
        By layer, the columns of ``baseline_terms`` but the last, and ``null_low``, ``null_high``, the ends of the
        middle 95 % of the shuffled cosines; and one row a role with p two-sided for the mean r, one-sided for the
        largest ``|r|``.
    """
    bands, rows = [], {}
    for role in roles:
        null = _null(vectors[role], baseline_layer, n_permutations, seed)
        band = _band(_terms(vectors, role, baseline_layer), null)
        bands.append(band)
        rows[role] = _against(band, null)
    return pd.concat(bands, ignore_index=True), pd.DataFrame.from_dict(rows, orient="index").rename_axis("role")


def _band(terms: pd.DataFrame, null: npt.NDArray[np.float64]) -> pd.DataFrame:
    spread = (terms["bound"] - terms["mean_term"]).to_numpy()
    low, high = np.percentile(terms["mean_term"].to_numpy() + null * spread, _BAND, axis=0)
    return terms.assign(null_low=low, null_high=high)


def _against(band: pd.DataFrame, null: npt.NDArray[np.float64]) -> dict[str, float | int]:
    mean = pvalue(float(band["r"].mean()), null.mean(axis=1))
    largest = pvalue(float(band["r"].abs().max()), np.abs(null).max(axis=1), "greater")
    return {
        "layers": len(band),
        "inside_band": int(band["cosine"].between(band["null_low"], band["null_high"]).sum()),
        "cosine_mean": float(band["cosine"].mean()),
        "r_mean": mean.statistic,
        "null_std": mean.null_std,
        "p_r_mean": mean.pvalue,
        "r_largest": largest.statistic,
        "p_r_largest": largest.pvalue,
    }


def _terms(vectors: NormVectors, role: str, baseline_layer: int) -> pd.DataFrame:
    one = vectors[role]
    own = one.row(baseline_layer)
    if len(one.layers) < 3:
        raise ComparisonError(
            f"Comparing layer {baseline_layer} of '{vectors.source}' with the others: role '{role}' has only "
            f"{len(one.layers)} layers; at least 3 are needed."
        )
    others = np.delete(np.arange(len(one.layers)), own)
    terms = cosine_terms(one.scale[[own]], one.scale[others])
    shares = _shares(one.scale)
    spread = np.sqrt(1 - shares[own] ** 2) * np.sqrt(1 - shares[others] ** 2)
    return pd.DataFrame(
        {
            "model": vectors.source,
            "role": role,
            "layer": one.layers[others],
            "cosine": terms.cosine[0],
            "mean_term": terms.mean_term[0],
            "pattern_term": terms.pattern_term[0],
            "r": terms.r[0],
            "share": shares[others],
            "bound": terms.mean_term[0] + spread,
        }
    )


def _elsewhere(one: RoleVectors, baseline_layer: int) -> npt.NDArray[np.float64]:
    """Mean cosine of every other layer with all layers but the baseline."""
    others = np.delete(one.scale, one.row(baseline_layer), axis=0)
    return _mean_with_others(pairwise(others, others, "cosine"))


def _null(one: RoleVectors, baseline_layer: int, n_permutations: int, seed: int) -> npt.NDArray[np.float64]:
    own = one.row(baseline_layer)
    return permute_coordinates(one.scale[own], np.delete(one.scale, own, axis=0), n_permutations, seed)


def _mean_with_others(square: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Row means of a matrix without its diagonal."""
    return np.asarray((square.sum(axis=1) - np.diag(square)) / (len(square) - 1))


def _shares(scale: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Mean over root mean square of each row."""
    wide = scale.astype(np.float64)
    return np.asarray(wide.mean(axis=1) / np.sqrt(np.mean(np.square(wide), axis=1)))


def _pattern(names: Sequence[str]) -> str:
    """The tensor names of one role as one name, from the layer number on, which is a star."""
    patterns = {re.sub(r"^.*?\.\d+\.", "*.", name) for name in names}
    return ", ".join(sorted(patterns))

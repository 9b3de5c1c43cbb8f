"""This module lists what was compared, pair by pair and model by model, and counts what stands out from its null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.nulls import LEVEL

__all__ = ["LEVEL", "beside_pair", "models_listed", "null_summary"]


def models_listed(
    models: Mapping[str, NormVectors],
    missing: Mapping[str, str],
    kinds: Mapping[str, str],
    labels: Mapping[str, str],
    role: str,
) -> pd.DataFrame:
    """Every model that was asked for, those without vectors too; one row a model.

    Args:
        models: vectors by key.
        missing: by label, why a model has no vectors.
        kinds: by key, what a model is counted as.
        labels: what readers see of each key.
        role: the role whose layers are counted.

    Returns:
        Index ``model``; columns ``loaded`` (``yes``, or why not), ``kind``, ``channels``, ``layers`` (with this role),
        0 where there are none, and ``norm_type``.
    """
    rows = {}
    for key, vectors in models.items():
        have = len(vectors[role].layers) if role in vectors.roles else 0
        rows[labels[key]] = ("yes", kinds[key], vectors.hidden_size, have, vectors.norm_type)
    by_label = {label: kinds[key] for key, label in labels.items()}
    for label, reason in missing.items():
        rows[label] = (reason, by_label[label], 0, 0, "none")
    columns = ["loaded", "kind", "channels", "layers", "norm_type"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("model")


def beside_pair(statistics: pd.DataFrame, frame: pd.DataFrame, pair: str) -> pd.DataFrame:
    """Statistics by layer with the cosine and r of one pair beside them.

    Args:
        statistics: rows of ``groups.by_layer``.
        frame: as ``groups.pairs_by_layer`` gives it.
        pair: label of a pair; where it was not measured, its columns are NaN.
    """
    one = frame.loc[frame["pair"] == pair, ["role", "layer", "cosine", "r"]]
    return statistics.merge(one, on=["role", "layer"], how="left")


def null_summary(frame: pd.DataFrame, keys: Sequence[str] = ("group", "role")) -> pd.DataFrame:
    """Related pairs, disputed ones and strangers against permuted channels.

    Args:
        frame: one row a pair and role: columns of ``groups.pairs_summed`` and of ``turns.mean_r_tests``.
        keys: what the rows are grouped by.

    Returns:
        One row a group and role: ``pairs``, ``cosine_mean``, ``cosine_permuted`` (what permuted channels give; means),
        ``cosine_gap`` (the largest difference of the two in a pair), ``r_least``, ``r_most``, ``null_std`` (the
        widest), ``p_least``, ``p_holm_least``, and ``below_level``, how many adjusted p-values are below LEVEL.
    """
    gaps = frame.assign(gap=(frame["cosine_mean"] - frame["mean_term"]).abs(), below=frame["p_holm"] < LEVEL)
    found = gaps.groupby(list(keys), sort=False).agg(
        pairs=("pair", "size"),
        cosine_mean=("cosine_mean", "mean"),
        cosine_permuted=("mean_term", "mean"),
        cosine_gap=("gap", "max"),
        r_least=("r_mean", "min"),
        r_most=("r_mean", "max"),
        null_std=("null_std", "max"),
        p_least=("pvalue", "min"),
        p_holm_least=("p_holm", "min"),
        below_level=("below", "sum"),
    )
    return found.reset_index()

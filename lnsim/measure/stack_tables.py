"""This module tabulates what ``lnsim.measure.alignment`` finds in the matrices of many pairs of stacks.

The tables come from the same arrays as the figures, so that no row can differ from what is drawn. Pairs that share a
model are dependent, and so are the layers of one model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure import alignment
from lnsim.measure.model_pairs import ModelPair
from lnsim.measure.nulls import NullResult, centred_unit, holm, pvalue
from lnsim.measure.permutation import shared_null_std
from lnsim.measure.similarity import ranks
from lnsim.measure.stacks import StackPair
from lnsim.measure.turns import turned_nulls

__all__ = [
    "alignment_table",
    "beside",
    "cell_table",
    "diagonal_table",
    "nearest_table",
    "offset_table",
    "statistics_table",
]


def diagonal_table(stacks: Sequence[StackPair]) -> pd.DataFrame:
    """Every matched layer: ``pair``, ``group``, ``role``, ``layer``, ``cosine``, ``r``."""
    return cell_table(stacks, [(layer, layer) for layer in sorted({int(i) for s in stacks for i in s.a.layers})]).drop(
        columns="layer_b"
    ).rename(columns={"layer_a": "layer"})  # fmt: skip


def beside(diagonal: pd.DataFrame, role: str, n: int = 10) -> pd.DataFrame:
    """Pairs side by side in one role: about `n` evenly spaced layers down, (pair, measure) across.

    Args:
        diagonal: as ``diagonal_table`` gives it.
        role: which norm.
        n: rows wanted; every second, third, ... layer is taken so that there are at most this many.

    A layer that a pair does not match has NaN there.
    """
    part = diagonal[diagonal["role"] == role]
    pairs = list(dict.fromkeys(part["pair"]))
    wide = part.pivot(index="layer", columns="pair", values=["cosine", "r"]).swaplevel(axis=1)
    return wide.iloc[:: -(-len(wide) // n)][[(pair, measure) for pair in pairs for measure in ("cosine", "r")]]


def cell_table(stacks: Sequence[StackPair], cells: Iterable[Sequence[int]]) -> pd.DataFrame:
    """Chosen cells: ``pair``, ``group``, ``role``, ``layer_a``, ``layer_b``, ``cosine``, ``r``.

    A cell whose layers a pair does not have is left out of that pair.
    """
    wanted = [(int(a), int(b)) for a, b in cells]
    rows = [
        {**stack.name, "layer_a": a, "layer_b": b, **{m: float(f.loc[a, b]) for m, f in stack.matrices.items()}}
        for stack in stacks
        for a, b in wanted
        if a in stack.a.layers and b in stack.b.layers
    ]
    return pd.DataFrame(rows)


def statistics_table(stacks: Sequence[StackPair]) -> pd.DataFrame:
    """Matched against unmatched cells: ``alignment.diagonal_statistics`` of each pair, role and measure."""
    frames = []
    for stack in stacks:
        for measure, matrix in stack.matrices.items():
            found = alignment.diagonal_statistics(matrix).rename_axis("cells").reset_index()
            frames.append(pd.DataFrame({**stack.name, "measure": measure}, index=found.index).join(found))
    return pd.concat(frames, ignore_index=True)


def offset_table(stacks: Sequence[StackPair]) -> pd.DataFrame:
    """Means over the cells of one offset, the layer of b minus the layer of a.

    Returns:
        Columns ``pair``, ``group``, ``role``, ``offset``, ``n``, ``cosine`` and ``r``.
    """
    frames = []
    for stack in stacks:
        means = {name: alignment.by_offset(matrix) for name, matrix in stack.matrices.items()}
        found = pd.DataFrame({"n": means["r"]["n"]} | {name: frame["mean"] for name, frame in means.items()})
        frames.append(found.reset_index().assign(**stack.name))
    return pd.concat(frames, ignore_index=True)[["pair", "group", "role", "offset", "n", "cosine", "r"]]


def nearest_table(stacks: Sequence[StackPair]) -> pd.DataFrame:
    """For each layer of b, the layer of a with the largest r: ``alignment.nearest`` of each pair and role."""
    return pd.concat(
        [alignment.nearest(stack.matrices["r"]).assign(**stack.name) for stack in stacks], ignore_index=True
    )


def alignment_table(
    stacks: Sequence[StackPair], models: Mapping[str, NormVectors], n_permutations: int, seed: int
) -> pd.DataFrame:
    """How the layers of each pair align, and what chance would give; one row a pair and role.

    Returns:
        Columns ``pair``, ``group``, ``role``; ``n`` (matched layers); ``r_mean`` (matched); ``offset`` (the best) and
        ``offset_r`` (its mean r); ``rate`` and ``rate_chance`` (one over the layers of b); ``margin``; ``match_mean``
        (mean r of the best one-to-one match); ``match_same`` (share of it at equal layer numbers); ``p_layers`` (layer
        labels permuted); ``p_channels`` (one permutation of the channels shared by all layers), ``p_holm`` (adjusted
        for all rows), ``null_std`` of the permutations and ``null_std_exact``; ``rank_mean`` and ``p_rank`` (mean of
        matched Spearman correlations, p by the normal approximation with the exact standard deviation). One-sided.
    """
    rows = []
    nulls = _channel_nulls(stacks, models, n_permutations, seed)
    for stack in stacks:
        channels = nulls[stack.role][stack.label]
        chance = {
            "p_layers": alignment.layer_null(stack.matrices["r"], n_permutations, seed).pvalue,
            "p_channels": pvalue(channels.statistic, channels.null_distribution, "greater").pvalue,
            "null_std": channels.null_std,
            "null_std_exact": shared_null_std(*stack.matched),
        }
        rows.append({**stack.name, **_aligned(stack.matrices["r"]), **chance, **_by_ranks(*stack.matched)})
    found = pd.DataFrame(rows)
    found.insert(found.columns.get_loc("p_channels") + 1, "p_holm", holm(found["p_channels"].tolist()))
    return found


def _channel_nulls(
    stacks: Sequence[StackPair], models: Mapping[str, NormVectors], n_permutations: int, seed: int
) -> dict[str, dict[str, NullResult]]:
    """By role and pair, the mean r of matched layers under permuted channels, one permutation for all layers."""
    by_role: dict[str, list[ModelPair]] = {}
    for stack in stacks:
        names = stack.matrices["r"]
        pair = ModelPair(*stack.keys, label_a=names.index.name, label_b=names.columns.name, group=stack.group)
        by_role.setdefault(stack.role, []).append(pair)
    return {role: turned_nulls(models, pairs, role, n_permutations, seed) for role, pairs in by_role.items()}


def _aligned(matrix: pd.DataFrame) -> dict[str, float]:
    offset, match = alignment.best_offset(matrix), alignment.best_match(matrix)
    return {
        "n": len(np.intersect1d(matrix.index, matrix.columns)),
        "r_mean": float(alignment.diagonal_statistics(matrix).loc["matched", "mean"]),
        "offset": offset,
        "offset_r": float(alignment.by_offset(matrix).loc[offset, "mean"]),
        "rate": alignment.alignment_rate(matrix),
        "rate_chance": 1 / matrix.shape[1],
        "margin": alignment.margin(matrix),
        "match_mean": float(match["value"].mean()),
        "match_same": float((match["layer_a"] == match["layer_b"]).mean()),
    }


def _by_ranks(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> dict[str, float]:
    ranks_a, ranks_b = ranks(a.astype(np.float64)), ranks(b.astype(np.float64))
    mean = float(np.sum(centred_unit(ranks_a) * centred_unit(ranks_b))) / len(a)
    z = mean / shared_null_std(ranks_a, ranks_b)
    return {"rank_mean": mean, "p_rank": math.erfc(z / math.sqrt(2)) / 2}

"""This module measures projection matrices (k_proj, v_proj) of several models, layer by layer.

Two matrices without any relation have a cosine near 0, of spread 1 / sqrt(n) over n independent entries. The relative
length of their difference is then ``sqrt(1 + (|b| / |a|)²)`` and says nothing but the ratio of their lengths. Entries
of a trained matrix are not independent, so a null that keeps each row whole stands beside it: rows are shuffled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import holm, pvalue
from lnsim.measure.streams import ROWS, Blocks, HalvesSwapped, PairSums, gram, joint_blocks, pair_sums

__all__ = ["all_pairs", "expected_rel_l2", "group_summary", "halves_swapped", "layer_pairs", "row_shuffles", "sizes"]

Matrices = Mapping[tuple[str, int], Blocks]
"""The matrices of one model by kind and layer."""

Floats = npt.NDArray[np.float64]

_BESIDE = ("cosine", "pearson", "norm_ratio", "rel_l2", "rel_l2_b", "rel_l2_symmetric", "mean_abs_diff",
           "p99_abs_diff", "max_abs_diff", "cv_diff")  # fmt: skip


def sizes(models: Mapping[str, Matrices]) -> pd.DataFrame:
    """What was opened: one row a model and kind, with layers, rows, columns and entries a matrix."""
    rows = []
    for model, matrices in models.items():
        for kind in dict.fromkeys(kind for kind, _ in matrices):
            (n_rows, n_columns), *_ = {matrices[place].shape for place in matrices if place[0] == kind}
            layers = [layer for other, layer in matrices if other == kind]
            row = {"kind": kind, "layers": len(layers), "rows": n_rows, "columns": n_columns}
            rows.append({"model": model, **row, "entries": n_rows * n_columns})
    return pd.DataFrame(rows)


def expected_rel_l2(norm_ratio: npt.ArrayLike) -> Floats:
    """``|a - b| / |a|`` of two uncorrelated matrices whose lengths have the ratio ``|b| / |a|``.

    >>> expected_rel_l2([1.0]).round(4).tolist()
    [1.4142]
    """
    return np.asarray(np.sqrt(1.0 + np.square(np.asarray(norm_ratio, dtype=np.float64))))


def layer_pairs(models: Mapping[str, Matrices], n_permutations: int, seed: int) -> pd.DataFrame:
    """Every pair of models at equal kind and layer.

    Args:
        models: by label, the matrices by kind and layer; a place that only one of two models has is left out.
        n_permutations: how often rows are shuffled.
        seed: of the shuffles; all pairs get the same ones.

    Returns:
        Columns ``kind``, ``layer``, ``pair``, ``n`` (entries), the measures of ``PairSums``, ``expected_rel_l2``,
        ``null_std`` (1 / sqrt(n)), ``z`` (cosine over it), ``null_std_rows`` (standard deviation of the cosine with
        rows shuffled, ddof 0), ``p_cosine`` (two-sided, against that null) and ``p_holm`` (for all rows of the table).

    Pairs that share a model are not independent of each other.
    """
    kinds = list(dict.fromkeys(kind for matrices in models.values() for kind, _ in matrices))
    pairs = list(combinations(models, 2))
    rows = [row for place in _places(models) for row in _at_place(models, *place, n_permutations, seed)]
    if not rows:
        raise ComparisonError(f"Comparing projection matrices: {', '.join(models)} share no kind and layer.")
    order = [f"{a} × {b}" for a, b in pairs]
    rows.sort(key=lambda row: (kinds.index(row["kind"]), order.index(row["pair"]), row["layer"]))
    frame = pd.DataFrame(rows)
    return frame.assign(p_holm=holm(frame["p_cosine"].tolist()))


def _places(models: Mapping[str, Matrices]) -> list[tuple[str, int]]:
    return list(dict.fromkeys(place for matrices in models.values() for place in matrices))


def _at_place(
    models: Mapping[str, Matrices], kind: str, layer: int, n_permutations: int, seed: int
) -> Iterator[dict[str, Any]]:
    """One row a pair of the models that have this matrix; every block is read once for all pairs."""
    there = {model: matrices[kind, layer] for model, matrices in models.items() if (kind, layer) in matrices}
    shapes = {matrix.shape for matrix in there.values()}
    found = {pair: (PairSums(next(iter(shapes))), np.zeros(n_permutations)) for pair in combinations(there, 2)}
    if not found:
        return
    orders = row_shuffles(next(iter(shapes))[0], n_permutations, seed)
    for blocks in joint_blocks(list(there.values())):
        block, order = dict(zip(there, blocks, strict=True)), next(orders)
        for (a, b), (sums, null) in found.items():
            sums.add(block[a], block[b])
            null += _shuffled_products(block[a], block[b], order)
    for (a, b), (sums, null) in found.items():
        yield {"kind": kind, "layer": layer, "pair": f"{a} × {b}", **_judged(sums, null)}


def _judged(sums: PairSums, null: Floats) -> dict[str, Any]:
    measures = sums.measures()
    scale = measures["norm_a"] * measures["norm_b"]
    judged = pvalue(measures["cosine"], null / scale if scale > 0 else np.full(len(null), np.nan))
    return {
        "n": sums.n,
        **{name: measures[name] for name in ("norm_a", "norm_b", *_BESIDE)},
        "expected_rel_l2": float(expected_rel_l2(measures["norm_ratio"])),
        "null_std": 1 / math.sqrt(sums.n),
        "z": measures["cosine"] * math.sqrt(sums.n),
        "null_std_rows": judged.null_std,
        "p_cosine": judged.pvalue,
        "mean_in_errors": max(sums.mean_in_standard_errors()),
    }


def row_shuffles(n_rows: int, n_permutations: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """Orders of the rows of one block after the other, each of shape ``(n_permutations, rows of the block)``.

    Rows change place within blocks of ROWS rows, so that no more than a block is needed at a time.
    """
    generator = np.random.default_rng(seed)
    for start in range(0, n_rows, ROWS):
        size = min(ROWS, n_rows - start)
        yield generator.permuted(np.tile(np.arange(size), (n_permutations, 1)), axis=1)


def _shuffled_products(a: Floats, b: Floats, orders: npt.NDArray[np.int64]) -> Floats:
    """Sum over rows of the inner product of row i of a with row order[i] of b, for each order."""
    products = a @ b.T
    return np.asarray(products[np.arange(len(a)), orders].sum(axis=1))


def halves_swapped(models: Mapping[str, Matrices], layer: int) -> pd.DataFrame:
    """Each matrix of one layer against itself with the two halves of its rows swapped: the same heads, renumbered.

    Returns:
        Columns ``model``, ``kind``, ``cosine``, ``pearson`` and ``rel_l2``. Renumbering the heads, together with the
        queries and outputs that go with them, leaves what a model computes as it is.
    """
    rows = []
    for model, matrices in models.items():
        for kind, matrix in ((kind, found) for (kind, number), found in matrices.items() if number == layer):
            found = pair_sums(matrix, HalvesSwapped(matrix)).measures()
            values = {name: found[name] for name in ("cosine", "pearson", "rel_l2")}
            rows.append({"model": model, "kind": kind, **values})
    if not rows:
        raise ComparisonError(f"Swapping rows of layer {layer}: no model has a matrix there.")
    return pd.DataFrame(rows)


def all_pairs(models: Mapping[str, Matrices]) -> pd.DataFrame:
    """Every matrix with every other of its kind, whatever model and layer.

    Returns:
        Columns ``kind``, ``a``, ``b``, ``layer_a``, ``layer_b``, ``group`` (``same layer, two models``, ``other layer,
        two models`` or ``one model, two layers``), ``cosine``, ``pearson`` and ``z`` (cosine times sqrt(n)).
    """
    kinds = dict.fromkeys(kind for matrices in models.values() for kind, _ in matrices)
    return pd.concat([_kind_pairs(models, kind) for kind in kinds], ignore_index=True)


def _kind_pairs(models: Mapping[str, Matrices], kind: str) -> pd.DataFrame:
    places = [(model, layer) for model, found in models.items() for other, layer in found if other == kind]
    matrices = [models[model][kind, layer] for model, layer in places]
    cosine, pearson = gram(matrices)
    n = matrices[0].shape[0] * matrices[0].shape[1]
    rows = []
    for i, j in combinations(range(len(places)), 2):
        (a, layer_a), (b, layer_b) = places[i], places[j]
        names = {"kind": kind, "a": a, "b": b, "layer_a": layer_a, "layer_b": layer_b}
        values = {"cosine": cosine[i, j], "pearson": pearson[i, j], "z": cosine[i, j] * math.sqrt(n)}
        rows.append({**names, "group": _group(a == b, layer_a == layer_b), **values})
    return pd.DataFrame(rows)


def _group(one_model: bool, one_layer: bool) -> str:
    if one_model:
        return "one model, two layers"
    return "same layer, two models" if one_layer else "other layer, two models"


def group_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Pairs by kind and group: how many, mean and standard deviation (ddof 0) of z, largest ``|cosine|`` and ``|r|``.

    Under independent entries z has mean 0 and standard deviation 1; pairs of one group share matrices.
    """
    absolute = frame.assign(cosine=frame["cosine"].abs(), pearson=frame["pearson"].abs())
    found = absolute.groupby(["kind", "group"], sort=False).agg(
        pairs=("z", "size"), z_mean=("z", "mean"), z_std=("z", lambda z: float(np.std(z))),
        largest_cosine=("cosine", "max"), largest_r=("pearson", "max"),
    )  # fmt: skip
    return found.reset_index("kind")

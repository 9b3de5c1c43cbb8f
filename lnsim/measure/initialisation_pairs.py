"""This module compares trained models of one architecture pair by pair, sorted by how their γ began.

A layer's cosine and r are taken at equal layer numbers. The test takes all layers and roles of a pair at once, with one
permutation of the channels for all, since the norms of one model resemble each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.initialisation import FIRST_GAMMAS, TrainingRecord, predicted_cosine, stacked
from lnsim.measure.matched import MatchedRows
from lnsim.measure.nulls import LEVEL, holm
from lnsim.measure.permutation import Orders, channel_orders, matched_null

__all__ = ["across_summary", "by_derivation", "by_first_gamma", "by_layer", "compared", "pairs_of_one_kind"]

_RANGE = (0.025, 0.975)
_MEASURES = ["cosine", "mean_term", "r"]


def pairs_of_one_kind(models: Mapping[str, NormVectors], same_gamma: bool) -> list[tuple[str, str]]:
    """Every two models of one architecture whose γ began alike, or of one architecture whose γ began otherwise.

    Raises:
        ComparisonError: when there are none, or a model has no record of its training.
    """
    records = {key: TrainingRecord.of(vectors) for key, vectors in models.items()}
    found = [
        (a, b)
        for a, b in combinations(models, 2)
        if records[a].architecture == records[b].architecture and (records[a].gamma == records[b].gamma) == same_gamma
    ]
    if not found:
        how = "began alike" if same_gamma else "began differently"
        raise ComparisonError(
            f"Comparing {len(models)} models by how γ began: no two of one architecture have a γ that {how}. Add some."
        )
    return found


def by_layer(
    models: Mapping[str, NormVectors],
    pairs: Sequence[tuple[str, str]],
    roles: Sequence[str],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """Every pair, role and layer number that both have.

    Returns:
        Columns ``pair``, ``architecture``, ``first_gamma`` (in words; both, where they differ), ``texts`` (``same`` or
        ``other``), ``role``, ``layer``, ``cosine``, ``mean_term`` (the cosine that the means of the trained γ alone
        give), ``r`` and ``predicted`` (the cosine that γ had before training, by ``initialisation.predicted_cosine``).

    Raises:
        ComparisonError: for different hidden sizes, or no layer in common.
        RoleError: when a model has no norms of a role.
    """
    prepared = {
        (key, role): MatchedRows.of(models[key][role])
        for key in {one for pair in pairs for one in pair}
        for role in roles
    }
    frames = []
    for (a, b), role in product(pairs, roles):
        values = prepared[a, role].against(prepared[b, role])
        first = {"pair": f"{labels[a]} × {labels[b]}", **_kinds(models[a], models[b])}
        frames.append(values.assign(**first, role=role))
    columns = ["pair", "architecture", "first_gamma", "texts", "role", "layer", *_MEASURES, "predicted"]
    return pd.concat(frames, ignore_index=True)[columns]


def compared(
    models: Mapping[str, NormVectors],
    pairs: Sequence[tuple[str, str]],
    roles: Sequence[str],
    labels: Mapping[str, str],
    n_permutations: int,
    seed: int,
) -> pd.DataFrame:
    """Every pair over all its layers and roles, with its permutation test.

    Args:
        models: by key, all with the same layers.
        pairs: of keys.
        roles: which norms.
        labels: what readers see of each key.
        n_permutations: of the channels; one permutation is shared by all rows of a pair, and by the pairs of a size.
        seed: of the permutations.

    Returns:
        Columns ``pair``, ``architecture``, ``first_gamma``, ``texts``, ``predicted``; ``rows`` (layers times roles) and
        ``channels``; means over the rows: ``cosine``, ``mean_term`` and ``r``; ``null_low`` and ``null_high`` (95 % of
        the permutations of r), ``pvalue`` (one-sided) and ``p_holm``, adjusted over all pairs of the table. Pairs are
        in the order of FIRST_GAMMAS.

    Raises:
        ComparisonError: as ``by_layer`` and ``permutation.permutation_test``.
    """
    orders: dict[int, Orders] = {}
    rows = []
    for a, b in pairs:
        stacks = stacked(models[a], roles), stacked(models[b], roles)
        size = stacks[0].shape[1]
        if size not in orders:
            orders[size] = channel_orders(size, n_permutations, seed)
        null = matched_null(*stacks, orders[size])
        low, high = (float(edge) for edge in np.quantile(null.null_distribution, _RANGE))
        found = {"rows": len(stacks[0]), "channels": size, "null_low": low, "null_high": high, "pvalue": null.pvalue}
        rows.append({"pair": f"{labels[a]} × {labels[b]}", **found})
    means = by_layer(models, pairs, roles, labels).groupby(["pair", *_KINDS], sort=False)[_MEASURES].mean()
    frame = means.reset_index().merge(pd.DataFrame(rows), on="pair", validate="one_to_one")
    frame["p_holm"] = holm(frame["pvalue"].tolist())
    columns = ["pair", *_KINDS, "rows", "channels", *_MEASURES, "null_low", "null_high", "pvalue", "p_holm"]
    return _in_order(frame[columns])


def by_first_gamma(pairs: pd.DataFrame) -> pd.DataFrame:
    """The pairs of ``compared`` summed up, one row an architecture and first γ.

    Returns:
        Columns ``architecture``, ``first_gamma``, ``pairs``, ``predicted``; ``cosine`` (mean), ``cosine_low``,
        ``cosine_high``, ``mean_term``, ``gap`` (largest distance of a cosine from its mean term); ``r`` (mean),
        ``r_low``, ``r_high``, and ``found`` (pairs whose adjusted p is below the level).
    """
    work = pairs.assign(gap=(pairs["cosine"] - pairs["mean_term"]).abs(), found=pairs["p_holm"] < LEVEL)
    return _summed(work, ["architecture", "first_gamma"], found=("found", "sum"))


def across_summary(layers: pd.DataFrame) -> pd.DataFrame:
    """Pairs whose γ began differently, as ``by_layer`` gives them, one row an architecture and two first γ.

    Returns:
        The columns of ``by_first_gamma`` without ``found``.
    """
    pairs = layers.groupby(["pair", *_KINDS], sort=False)[_MEASURES].mean().reset_index()
    return _summed(
        pairs.assign(gap=(pairs["cosine"] - pairs["mean_term"]).abs()), ["architecture", "first_gamma"]
    ).sort_values(["architecture", "predicted"], ascending=False, kind="stable", ignore_index=True)


def by_derivation(
    models: Mapping[str, NormVectors],
    children: Mapping[tuple[str, str], str],
    roles: Sequence[str],
    labels: Mapping[str, str],
) -> pd.DataFrame:
    """Parents beside their children, one row a way of making a child.

    Args:
        models: by key; a pair with a model that is not among them is left out.
        children: by the keys of parent and child, how the child was made.
        roles: which norms.
        labels: what readers see of each key.

    Returns:
        Columns ``derivation``, ``pairs``, ``cosine``, ``cosine_low``, ``cosine_high``, ``mean_term``, ``r``, ``r_low``
        and ``r_high``: mean, least and most of the pairs, each a mean over layers and roles.

    Raises:
        ComparisonError: when no pair has both its models.
    """
    there = [pair for pair in children if models.keys() >= set(pair)]
    if not there:
        raise ComparisonError(f"Comparing {len(children)} children with parents: no pair has the vectors of both.")
    names = {f"{labels[a]} × {labels[b]}": children[a, b] for a, b in there}
    layers = by_layer(models, there, roles, labels)
    pairs = layers.groupby(["pair", *_KINDS], sort=False)[_MEASURES].mean().reset_index()
    found = _summed(pairs.assign(derivation=pairs["pair"].map(names), gap=0.0), ["derivation"])
    return found.drop(columns=["gap", "predicted"])


_KINDS = ["architecture", "first_gamma", "texts", "predicted"]


def _kinds(a: NormVectors, b: NormVectors) -> dict[str, str | float]:
    one, other = TrainingRecord.of(a), TrainingRecord.of(b)
    words = [FIRST_GAMMAS[name].words for name in sorted({one.gamma, other.gamma}, key=list(FIRST_GAMMAS).index)]
    return {
        "architecture": one.architecture,
        "first_gamma": " × ".join(words),
        "texts": "same" if one.text == other.text else "other",
        "predicted": predicted_cosine(one.gamma, other.gamma),
    }


def _summed(pairs: pd.DataFrame, by: list[str], **more: tuple[str, str]) -> pd.DataFrame:
    return (
        pairs.groupby(by, sort=False)
        .agg(
            pairs=("pair", "size"),
            predicted=("predicted", "first"),
            cosine=("cosine", "mean"),
            cosine_low=("cosine", "min"),
            cosine_high=("cosine", "max"),
            mean_term=("mean_term", "mean"),
            gap=("gap", "max"),
            r=("r", "mean"),
            r_low=("r", "min"),
            r_high=("r", "max"),
            **more,
        )
        .reset_index()
    )


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Llama first, then in the order of FIRST_GAMMAS; pairs of one kind stay as they are."""
    words = [first.words for first in FIRST_GAMMAS.values()]
    place = frame["first_gamma"].map(lambda text: words.index(text) if text in words else len(words))
    order = frame.assign(place=place).sort_values(["architecture", "place"], ascending=[False, True], kind="stable")
    return frame.loc[order.index].reset_index(drop=True)

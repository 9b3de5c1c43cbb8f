"""This module tells how well a score parts related pairs from strangers: the ROC curve, its area, and intervals.

Pairs that share a model are dependent, and models of one lineage are: their number says little about certainty. So the
intervals come from drawing *lineages* anew (a cluster bootstrap, percentile interval), not pairs: a related pair counts
as often as its lineage was drawn, a pair of strangers as often as both of its lineages together. Lineages with and
without derived models are drawn apart. With few lineages such an interval is rough, and where every lineage gives the
same answer it has no width; neither is certainty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure.benchmark.level_rows import Floats

__all__ = ["ALL", "EXPECTED", "areas", "curve", "lineage_weights", "rates"]

Chosen = npt.NDArray[np.bool_]
"""One truth value a pair."""

ALL, EXPECTED = "all derived pairs", "derived, of kinds expected to be seen"
"""Names of the two sets of derived pairs that hold several kinds."""

_EDGES = (0.025, 0.975)


def lineage_weights(truth: pd.DataFrame, n_draws: int, seed: int) -> Floats:
    """Weights of the pairs in draws of lineages.

    Args:
        truth: as ``truth.pair_truth`` gives it.
        n_draws: how many draws.
        seed: of the draws.

    Returns:
        Shape ``(1 + n_draws, n_pairs)``: first once each, then how often each pair counts in every draw.
    """
    names = sorted(set(truth["lineage_a"]) | set(truth["lineage_b"]))
    places = {name: place for place, name in enumerate(names)}
    bearing = sorted({places[name] for name in truth.loc[truth["group"] != "independent", "lineage_a"]})
    barren = sorted(set(places.values()) - set(bearing))
    rng = np.random.default_rng(seed)
    drawn = np.zeros((n_draws, len(names)))
    for some in (bearing, barren):
        if some:
            drawn[:, some] = rng.multinomial(len(some), np.full(len(some), 1 / len(some)), size=n_draws)
    counts = np.concatenate([np.ones((1, len(names))), drawn])
    of_a, of_b = (counts[:, truth[side].map(places).to_numpy()] for side in ("lineage_a", "lineage_b"))
    same = (truth["lineage_a"] == truth["lineage_b"]).to_numpy()
    return np.asarray(np.where(same, of_a, of_a * of_b))


def areas(scores: Floats, truth: pd.DataFrame, weights: Floats, strangers: Chosen) -> pd.DataFrame:
    """The area under the ROC curve of a score, for each kind of related pair and for derived pairs together.

    The area is the share of all (related, independent) couples of pairs in which the related one has the larger score,
    ties counting half. A pair whose score is undefined ranks below all others: nothing was found.

    Args:
        scores: one a pair, larger for what is more alike.
        truth: as ``truth.pair_truth`` gives it.
        weights: as ``lineage_weights`` gives them.
        strangers: which pairs the related ones are set against, one truth value a pair.

    Returns:
        Index ``kind`` (ALL and EXPECTED first); columns ``n``, ``lineages``, ``undefined``, ``area``, ``low`` and
        ``high``.
    """
    ranked = np.where(np.isnan(scores), -np.inf, scores)
    kin = (truth["group"] != "independent").to_numpy()
    above = _shares_below(ranked[kin], ranked[strangers], weights[:, strangers])
    related, weight = truth[kin], weights[:, kin]
    rows = {}
    for kind, chosen in _kinds(related).items():
        each = _weighted_mean(above[:, chosen], weight[:, chosen])
        low, high = _interval(each[1:])
        rows[kind] = {
            "n": int(chosen.sum()),
            "lineages": related.loc[chosen, "lineage_a"].nunique(),
            "undefined": int(np.isnan(scores[kin][chosen]).sum()),
            "area": each[0],
            "low": low,
            "high": high,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("kind")


def curve(scores: Floats, related: Chosen, strangers: Chosen) -> pd.DataFrame:
    """The ROC curve of a score: columns ``false`` (share of the strangers at or above a score) and ``true``."""
    ranked = np.where(np.isnan(scores), -np.inf, scores)
    cuts = np.unique(ranked[related | strangers])[::-1]
    shares = [_at_least(np.sort(ranked[some]), cuts) for some in (strangers, related)]
    return pd.DataFrame({"false": np.concatenate([[0.0], shares[0]]), "true": np.concatenate([[0.0], shares[1]])})


def rates(hits: Chosen, weights: Floats, chosen: Chosen) -> tuple[float, float, float]:
    """The share of the chosen pairs that are hits, with the ends of its interval.

    Raises:
        ComparisonError: when no pair is chosen.
    """
    if not chosen.any():
        raise ComparisonError("Counting hits: no pair was chosen.")
    each = _weighted_mean(np.broadcast_to(hits[chosen], (len(weights), chosen.sum())), weights[:, chosen])
    return float(each[0]), *_interval(each[1:])


def _interval(draws: Floats) -> tuple[float, float]:
    """The middle 95 % of the draws that say something; NaN where none does."""
    some = draws[~np.isnan(draws)]
    low, high = np.quantile(some, _EDGES) if len(some) else (np.nan, np.nan)
    return float(low), float(high)


def _kinds(related: pd.DataFrame) -> dict[str, Chosen]:
    derived = (related["group"] == "derived").to_numpy()
    kinds = {ALL: derived, EXPECTED: derived & ~related["blind"].to_numpy(dtype=bool)}
    return kinds | {str(kind): (related["kind"] == kind).to_numpy() for kind in dict.fromkeys(related["kind"])}


def _shares_below(values: Floats, strangers: Floats, weight: Floats) -> Floats:
    """For each draw and value, the weighted share of strangers below it, ties counting half."""
    order = np.argsort(strangers, kind="stable")
    ranked = strangers[order]
    below = np.concatenate([np.zeros((len(weight), 1)), np.cumsum(weight[:, order], axis=1)], axis=1)
    left, right = (np.searchsorted(ranked, values, side=side) for side in ("left", "right"))
    total = below[:, -1:]
    total[total == 0] = np.nan  # a draw without any stranger says nothing
    return np.asarray((below[:, left] + below[:, right]) / 2 / total)


def _weighted_mean(values: Floats, weight: Floats) -> Floats:
    """Mean of each row; NaN where its weights are all zero: a draw without such a pair says nothing."""
    total = weight.sum(axis=1)
    return np.asarray(np.divide((values * weight).sum(axis=1), total, out=np.full(len(total), np.nan), where=total > 0))


def _at_least(ranked: Floats, cuts: Sequence[float] | Floats) -> Floats:
    return np.asarray(1 - np.searchsorted(ranked, cuts, side="left") / len(ranked))

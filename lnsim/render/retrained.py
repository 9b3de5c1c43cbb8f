"""This module puts models that were trained anew beside the stored ones, on the page of whoever asked for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.initialisation import trained
from lnsim.measure.initialisation_pairs import across_summary, by_layer, pairs_of_one_kind
from lnsim.render.initialisation_words import START_LABELS, learnt_in_words
from lnsim.render.page import Page
from lnsim.render.words import count, rounded

__all__ = ["beside_stored", "show_retrained"]


def show_retrained(
    page: Page, fresh: Mapping[str, NormVectors], stored: Mapping[str, NormVectors], roles: Sequence[str]
) -> None:
    """Losses and cosines of models trained now beside the stored ones; where there are none, how to get some.

    Args:
        page: where they are put.
        fresh: models trained now, by name; may be empty.
        stored: models of the repo, by key.
        roles: which norms.
    """
    if not fresh:
        page.say(
            "No model was trained for this page (`retrain` is False). `python -m studies.zoo --quick --out DIR` trains "
            "a small zoo, smaller and shorter than the stored one; with `retrain = True` this section shows it."
        )
        return
    names = {name: name for name in fresh}
    losses = trained(fresh, roles, names).assign(source="trained now")
    page.table(losses.set_index("model"), "retrained", f"Trained now. {learnt_in_words(losses)}", labels=START_LABELS)
    both = beside_stored(fresh, stored, roles)
    farthest = rounded((both["cosine, trained now"] - both["cosine"]).abs().max(), ".3f")
    page.table(
        both.set_index("first_gamma"),
        "retrained_pairs",
        f"Strangers by how their γ began: models trained now are within {farthest} of the stored ones.",
        f"Cosines and r are means over pairs, layers and roles; {count(int(both['pairs, trained now'].sum()), 'pair')} "
        "of models trained now. Those models are smaller.",
        labels=START_LABELS,
    )


def beside_stored(
    fresh: Mapping[str, NormVectors], stored: Mapping[str, NormVectors], roles: Sequence[str]
) -> pd.DataFrame:
    """Every two ways in which γ may begin, for the architectures of which several models were trained now.

    Returns:
        Columns ``architecture``, ``first_gamma``, ``predicted``, then ``pairs``, ``cosine`` and ``r`` of the stored
        models, and the same of those trained now.
    """
    kinds = ["architecture", "first_gamma", "predicted"]
    found = [_all_pairs(models, roles)[[*kinds, "pairs", "cosine", "r"]] for models in (fresh, stored)]
    both = found[0].merge(found[1], on=kinds, suffixes=(", trained now", ""))
    order = ["pairs", "cosine", "r"]
    return both[[*kinds, *order, *(f"{name}, trained now" for name in order)]]


def _all_pairs(models: Mapping[str, NormVectors], roles: Sequence[str]) -> pd.DataFrame:
    labels = {key: key for key in models}
    pairs = [pair for same in (True, False) for pair in pairs_of_one_kind(models, same)]
    return across_summary(by_layer(models, pairs, roles, labels))

"""This module says in words and rows what trained models owe to how their γ began; every number comes from a frame."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from lnsim.measure.initialisation import FIRST_GAMMAS
from lnsim.measure.nulls import LEVEL
from lnsim.render.words import count, listed, rounded, span

__all__ = [
    "START_LABELS",
    "answer_in_words",
    "beside_printed",
    "claim_in_words",
    "cosines_in_words",
    "found_in_words",
    "learnt_in_words",
    "moved_in_words",
    "outside_in_words",
    "predictions_in_words",
    "relatives_in_words",
    "sentence",
    "start_rows",
]

START_LABELS: Mapping[str, str] = {
    "first_gamma": "γ began as",
    "predicted": "cosine before training",
    "mean_term": "means alone",
    "cosine_low": "cosine, least",
    "cosine_high": "cosine, most",
    "r": "Pearson r",
    "r_low": "r, least",
    "r_high": "r, most",
    "gap": "largest distance",
    "found": "found",
    "null_low": "null from",
    "null_high": "to",
    "pvalue": "permutation p",
    "unigram_loss": "unigram loss",
    "moved_in_spreads": "moved / spread",
    "moved_relative": "moved / first value",
    "std": "spread",
}
"""What heads the columns of this notebook's tables."""

_NEAR = 0.1
"""A cosine is said to follow the first γ where it is at most so far from what the first γ gives."""

_BEYOND_TWO = math.erfc(math.sqrt(2))
"""Share of a normal distribution that lies more than two standard deviations from its middle."""


def learnt_in_words(trained: pd.DataFrame) -> str:
    """How many models there are and how far they are below the loss of unigrams."""
    return (
        f"{count(len(trained), 'model')}: held-out loss {span(trained['loss'])} nats a byte, "
        f"{span(trained['gain'])} below that of unigrams."
    )


def cosines_in_words(pairs: pd.DataFrame) -> str:
    """Mean cosine of the pairs of each first γ: ``0.998 from 1, 0.99 from N(1, 0.1) and 0.00 from N(0, 1)``."""
    means = pairs.groupby("first_gamma", sort=False)["cosine"].mean()
    return listed(f"{rounded(value)} where γ began as {start}" for start, value in means.items())


def predictions_in_words(pairs: pd.DataFrame) -> str:
    """What the first γ gives before training, in the order of ``cosines_in_words``."""
    return listed(rounded(value) for value in pairs.groupby("first_gamma", sort=False)["predicted"].first())


def found_in_words(pairs: pd.DataFrame) -> str:
    """How many pairs of strangers the adjusted test calls related, and the smallest raw p."""
    found = int((pairs["p_holm"] < LEVEL).sum())
    return (
        f"the permutation test calls {found} of {count(len(pairs), 'pair')} related (smallest p "
        f"{rounded(pairs['pvalue'].min(), '.4f')}, adjusted {rounded(pairs['p_holm'].min(), '.2f')})"
    )


def answer_in_words(pairs: pd.DataFrame) -> str:
    """The notebook's finding: whether the cosines of strangers follow how γ began, and where r is."""
    farthest = float((pairs["cosine"] - pairs["predicted"]).abs().max())
    verdict = "Yes" if farthest <= _NEAR else "In part"
    return (
        f"{verdict}: the mean cosine of strangers is {cosines_in_words(pairs)}; before any training it was "
        f"{predictions_in_words(pairs)}. Pearson r is {span(pairs['r'])} whatever γ began as."
    )


def start_rows(summary: pd.DataFrame) -> pd.DataFrame:
    """The columns of a summary by first γ that readers see, one row an architecture and first γ."""
    columns = ["architecture", "pairs", "predicted", "cosine", "mean_term", "r_low", "r_high", "found"]
    shown = summary[["first_gamma", *(name for name in columns if name in summary)]]
    return shown.set_index("first_gamma").rename_axis(START_LABELS["first_gamma"])


def claim_in_words(pairs: pd.DataFrame) -> str:
    """The finding once more, for a figure that shows it."""
    farthest = float((pairs["cosine"] - pairs["predicted"]).abs().max())
    return (
        f"The cosine of strangers lies within {rounded(farthest, '.2f')} of what γ began with; their r lies within "
        f"{rounded(pairs['r'].abs().max(), '.2f')} of zero."
    )


def sentence(words: str) -> str:
    """Words as a sentence of their own; a Greek letter at the start stays small."""
    first = words[:1].upper() if words[:1].isascii() else words[:1]
    return f"{first}{words[1:]}."


def moved_in_words(moved: pd.DataFrame) -> str:
    """How far γ went from a first value that all channels shared."""
    if moved.empty:
        return "no γ began with one value in all channels, so how far it went is not on record"
    return (
        f"where γ began with one value in all channels, it ended {span(moved['moved'])} away from it (root mean "
        f"square), with a spread of {span(moved['std'], '.3f')}"
    )


def outside_in_words(layers: pd.DataFrame, channels: int) -> str:
    """How many single values of r lie beyond ``2 / sqrt(channels)``, and how many chance would put there."""
    outside = int((layers["r"].abs() > 2 / np.sqrt(channels)).sum())
    expected = _BEYOND_TWO * len(layers)
    return f"{outside} of {len(layers):,} values lie outside; chance would put about {rounded(expected, '.0f')} there"


def relatives_in_words(derived: pd.DataFrame, alike: pd.DataFrame, everyone: pd.DataFrame) -> str:
    """Cosine and r of parents with children beside those of strangers.

    Args:
        derived: as ``initialisation_pairs.by_derivation`` gives it.
        alike: the strangers whose γ began as the parents' did, as ``initialisation_pairs.compared`` gives them.
        everyone: all strangers.
    """
    r = listed(f"{rounded(row.r, '.2f')} ({row.derivation})" for row in derived.itertuples())
    ends = [derived["cosine_low"].min(), derived["cosine_high"].max()]
    most = everyone["cosine"].max()
    verdict = "so no threshold parts them" if most >= ends[0] else "which is below all of them"
    return (
        f"Parents and children have cosines of {span(ends, '.4f')}; strangers that began as they did have "
        f"{span(alike['cosine'], '.4f')}, and strangers of any beginning up to {rounded(most, '.4f')}, {verdict}. "
        f"Mean r of parents and children is {r}; r of all strangers is {span(everyone['r'])}."
    )


def beside_printed(layers: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """What document 003 printed and what is measured here, layer by layer: one row a source and first γ.

    Args:
        layers: as ``initialisation_pairs.by_layer`` gives them.
        printed: as ``small_gpt2s.printed_cosines`` gives them.

    Returns:
        Index: whose models. Columns ``first_gamma``, ``values``, ``least``, ``mean``, ``most``, and
        ``root_mean_square`` of the cosines.
    """
    theirs = printed.assign(whose="document 003", first_gamma=[FIRST_GAMMAS[name].words for name in printed["gamma"]])
    ours = layers.assign(whose=[f"here, {name}" for name in layers["architecture"]])
    both = pd.concat([theirs, ours[ours["first_gamma"].isin(theirs["first_gamma"])]])
    return (
        both.groupby(["first_gamma", "whose"], sort=False)["cosine"]
        .agg(
            values="size",
            least="min",
            mean="mean",
            most="max",
            root_mean_square=lambda found: float(np.sqrt((found**2).mean())),
        )
        .reset_index()
        .set_index("whose")
    )

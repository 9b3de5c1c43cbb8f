"""This module says in words and rows what the listed pairs of a study show; every number comes from their frame.

All functions take the frame of the pairs that a study lists, as notebook 03 makes it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from lnsim.measure.nulls import LEVEL
from lnsim.render.table import Strip
from lnsim.render.words import count, listed, rounded

__all__ = ["PAIR_LABELS", "cosine_against_r", "groups_begin", "pair_rows", "smallest_p"]

PAIR_LABELS: Mapping[str, str] = {
    "norms": "Norms",
    "relation": "Known relation",
    "layers": "Layers",
    "cosine": "Cosine",
    "mean_term": "Means alone",
    "r": "Pearson r",
    "strip": "r on its null, −0.2 to 1",
    "pvalue": "Permutation p",
    "p_ranks": "p by ranks",
}
"""What heads the columns of ``pair_rows``."""

_RELATION_WORDS = {"fine_tune": "fine-tune", "depth_expanded": "more layers"}


def pair_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows as readers see them: named by the pair, the relation in words, r once more as a strip over its null."""
    places = zip(frame["r"], frame["null_low"], frame["null_high"], frame["group"], strict=True)
    shown = frame.assign(
        relation=[_relation(kind) for kind in frame["relation"]], strip=[Strip(*place) for place in places]
    )
    columns = ["norms", "relation", "group", "layers", "cosine", "mean_term", "r", "strip", "pvalue", "p_ranks"]
    return shown.set_index("pair")[columns].rename_axis("Pair")


def groups_begin(frame: pd.DataFrame) -> list[str]:
    """The first pair of every group but the first, where a table draws a line."""
    return [str(pair) for pair in frame.drop_duplicates("group")["pair"]][1:]


def cosine_against_r(frame: pd.DataFrame) -> str:
    """Whether the cosine, and whether r, parts strangers from relatives; on a second line the numbers closest to it."""
    related, strangers = (frame[frame["group"] == group] for group in ("related", "independent"))
    if related.empty or strangers.empty:
        return f"{count(len(frame), 'comparison')}, but not both of relatives and of strangers."
    near, far = related.loc[related["cosine"].idxmin()], strangers.loc[strangers["cosine"].idxmax()]
    verdict = {
        (False, True): "Cosine cannot tell strangers from relatives. Centred correlation can.",
        (True, True): "Cosine and centred correlation both tell strangers from relatives.",
        (True, False): "Cosine tells strangers from relatives. Centred correlation cannot.",
        (False, False): "Neither cosine nor centred correlation tells strangers from relatives.",
    }[near["cosine"] > far["cosine"], related["r"].min() > strangers["r"].max()]
    return (
        f"{verdict}\nStrangers reach a cosine of {rounded(far['cosine'])}; related pairs go down to "
        f"{rounded(near['cosine'])} ({_relation(near['relation'])}). The centred correlations of these two are "
        f"{rounded(far['r'])} and {rounded(near['r'])}."
    )


def smallest_p(frame: pd.DataFrame) -> str:
    """How many strangers have a p below LEVEL, and the smallest one beside its p by ranks.

    Where ranks do not see it, the sentence says what is left of it without the most extreme channels, as measured.
    """
    strangers = frame[frame["group"] == "independent"]
    if strangers.empty:
        return "No pair of strangers is among them."
    least, below = strangers.loc[strangers["pvalue"].idxmin()], int((strangers["pvalue"] < LEVEL).sum())
    many = count(len(strangers), "independent comparison")
    number = "none" if not below else "one" if below == 1 else f"{below}"
    carried = f" {_carried(least)}" if least["pvalue"] < LEVEL <= least["p_ranks"] else ""
    return (
        f"Of {many} {number} {'have' if below > 1 else 'has'} p below {LEVEL:g}; the smallest is "
        f"{rounded(least['pvalue'], '.4f')} ({least['pair']}, {least['norms']}), after Holm "
        f"{rounded(least['p_holm'], '.2f')}, by ranks {rounded(least['p_ranks'], '.2f')}.{carried}"
    )


def _carried(row: pd.Series) -> str:
    """What carries an r that ranks do not see."""
    left = f"r is {rounded(row['r_without'])} and p {rounded(row['p_without'], '.2f')}"
    without = f"without the {count(int(row['extremes']), 'most extreme channel')} of the two models {left}"
    if row["p_without"] < LEVEL:
        return f"Ranks do not see it, but it is there {without}."
    if row["carriers"] in ("many", "none"):
        return f"Ranks do not see it; {without}."
    channels = str(row["carriers"]).split(", ")
    names = f"channel {channels[0]} carries it" if len(channels) == 1 else f"channels {listed(channels)} carry it"
    return f"Ranks do not see it: {names}, and {without}."


def _relation(kind: str) -> str:
    return _RELATION_WORDS.get(kind, kind.replace("_", " "))

"""This module judges a pair by the study's own strangers: what do pairs reach that are presumed to share nothing?

This null assumes nothing about channels, and no more is simulated; what chance and design do to real models is in it.
It is small, and its values are dependent: pairs share models, and one pair is compared in several norms. So the pairs
are listed, with the others that share a model, and beside the number of values stands the largest number of pairs of
which no two share a model. What a p-value from it can show is bounded by that number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import pvalue

__all__ = ["StrangerNull", "disjoint_pairs", "judged", "stranger_null"]

_SIGN = " × "


@dataclass(frozen=True, slots=True, eq=False)
class StrangerNull:
    """The values of a study's presumed-independent pairs.

    Args:
        values: one row a pair and kind of norm: ``pair``, ``norms``, ``value`` and ``shares_a_model_with`` (how many
            other pairs of strangers have a model in common with this one).
        n_pairs: pairs of models among them.
        n_disjoint: the largest number of pairs of which no two share a model.
    """

    values: pd.DataFrame
    n_pairs: int
    n_disjoint: int

    @property
    def least(self) -> float:
        """The smallest p-value that so many values can give."""
        return 1 / (1 + len(self.values))

    @property
    def least_disjoint(self) -> float:
        """The smallest that pairs without a common model could give, one value a pair."""
        return 1 / (1 + self.n_disjoint)


def stranger_null(frame: pd.DataFrame, column: str = "r") -> StrangerNull:
    """The null distribution of the pairs that a study presumes independent.

    Args:
        frame: as ``listed_pairs`` gives it: columns ``pair``, ``norms``, ``group`` and `column`.
        column: what is compared.

    Raises:
        ComparisonError: when no pair is presumed independent: an empty null says nothing.
    """
    strangers = frame[frame["group"] == "independent"]
    if strangers.empty:
        raise ComparisonError(
            f"Judging {len(frame)} comparisons by the study's strangers: no pair is presumed independent. An empty "
            "null says nothing; add such pairs to the study's file."
        )
    pairs = [tuple(pair.split(_SIGN)) for pair in dict.fromkeys(strangers["pair"])]
    sharing = {_SIGN.join(one): sum(bool({*one} & {*other}) for other in pairs) - 1 for one in pairs}
    values = strangers[["pair", "norms"]].assign(
        value=strangers[column], shares_a_model_with=strangers["pair"].map(sharing)
    )
    return StrangerNull(values.reset_index(drop=True), len(pairs), disjoint_pairs(pairs))


def judged(frame: pd.DataFrame, null: StrangerNull, column: str = "r") -> pd.DataFrame:
    """Every comparison of related or disputed models beside the strangers.

    Returns:
        Columns ``pair``, ``norms``, ``group``, ``value`` and ``p_strangers``, one-sided: (1 + strangers that reach it)
        over (1 + strangers). It is a rank among dependent values and no exact p-value.
    """
    others = frame[frame["group"] != "independent"]
    found = [pvalue(float(value), null.values["value"], "greater").pvalue for value in others[column]]
    named = others[["pair", "norms", "group"]].assign(value=others[column], p_strangers=found)
    return named.reset_index(drop=True)


def disjoint_pairs(pairs: Sequence[Iterable[str]]) -> int:
    """The largest number of pairs of which no two have a model in common.

    >>> disjoint_pairs([("a", "b"), ("a", "c"), ("b", "c"), ("d", "e")])
    2
    """
    sets = [frozenset(pair) for pair in pairs]
    models = len(frozenset().union(*sets)) if sets else 0
    for size in range(min(len(sets), models // 2), 0, -1):
        if any(len(frozenset().union(*some)) == 2 * size for some in combinations(sets, size)):
            return size
    return 0

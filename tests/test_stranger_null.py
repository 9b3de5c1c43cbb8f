"""Tests of the null made of a study's own strangers, and of how dependent they are."""

from __future__ import annotations

import pandas as pd
import pytest

from lnsim.errors import ComparisonError
from lnsim.measure.stranger_null import disjoint_pairs, judged, stranger_null

FRAME = pd.DataFrame({
    "pair": ["A × B", "A × C", "A × C", "B × C", "D × E"], "norms": ["MLP", "MLP", "attention", "MLP", "MLP"],
    "group": ["related", "independent", "independent", "independent", "independent"],
    "r": [0.5, 0.1, -0.2, 0.6, 0.0],
})  # fmt: skip


def test_strangers_are_listed_with_the_pairs_that_share_a_model() -> None:
    null = stranger_null(FRAME)
    assert list(null.values["pair"]) == ["A × C", "A × C", "B × C", "D × E"]
    assert list(null.values["shares_a_model_with"]) == [1, 1, 1, 0]
    assert (null.n_pairs, null.n_disjoint) == (3, 2)
    assert (null.least, null.least_disjoint) == (1 / 5, 1 / 3)


def test_a_pair_is_ranked_among_the_strangers() -> None:
    (row,) = judged(FRAME, stranger_null(FRAME)).to_dict("records")
    assert (row["pair"], row["value"], row["p_strangers"]) == ("A × B", 0.5, 2 / 5)


def test_an_empty_null_is_an_error() -> None:
    with pytest.raises(ComparisonError, match=r"no pair is presumed independent\. An empty null says nothing"):
        stranger_null(FRAME.head(1))


def test_pairs_without_a_common_model_are_counted_at_their_most() -> None:
    assert disjoint_pairs([("a", "b"), ("b", "c"), ("c", "d")]) == 2
    assert disjoint_pairs([("a", "b"), ("a", "c"), ("a", "d")]) == 1
    assert disjoint_pairs([]) == 0

"""Tests of the area under a ROC curve and of intervals that draw lineages, not pairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.benchmark.roc import ALL, EXPECTED, areas, curve, lineage_weights, rates
from lnsim.measure.benchmark.truth import REMOTE, SIBLINGS
from tests.made_zoo import made_truth

TRUTH = made_truth()
STRANGERS = (TRUTH["group"] == "independent").to_numpy()
DERIVED = (TRUTH["group"] == "derived").to_numpy()
WEIGHTS = lineage_weights(TRUTH, 200, 0)


def scores(seed: int = 0) -> np.ndarray:
    """Values with ties, higher for derived pairs on average."""
    return np.random.default_rng(seed).normal(DERIVED * 1.0, 1.0).round(1)


def test_the_area_is_that_of_mann_and_whitney() -> None:
    values = scores()
    u = stats.mannwhitneyu(values[DERIVED], values[STRANGERS]).statistic
    found = areas(values, TRUTH, WEIGHTS, STRANGERS)
    assert found.loc[ALL, "area"] == pytest.approx(u / (DERIVED.sum() * STRANGERS.sum()), abs=1e-12)
    assert found.loc[ALL, "n"] == DERIVED.sum()
    assert found.loc[ALL, "low"] <= found.loc[ALL, "area"] <= found.loc[ALL, "high"]


def test_the_area_is_that_under_the_curve() -> None:
    values = scores(1)
    drawn = curve(values, DERIVED, STRANGERS)
    assert np.trapezoid(drawn["true"], drawn["false"]) == pytest.approx(
        areas(values, TRUTH, WEIGHTS, STRANGERS).loc[ALL, "area"], abs=1e-12
    )
    assert (drawn.iloc[0] == 0).all()
    assert (drawn.iloc[-1] == 1).all()


def test_perfect_and_random_scores_have_areas_of_one_and_a_half() -> None:
    perfect = areas(DERIVED.astype(float), TRUTH, WEIGHTS, STRANGERS)
    assert perfect.loc[ALL, ["area", "low", "high"]].tolist() == [1, 1, 1]
    assert areas(np.zeros(len(TRUTH)), TRUTH, WEIGHTS, STRANGERS).loc[ALL, "area"] == 0.5


def test_an_undefined_score_ranks_below_all_and_is_counted() -> None:
    values = np.where(DERIVED, np.nan, -1e9)
    found = areas(values, TRUTH, WEIGHTS, STRANGERS)
    assert found.loc[ALL, "area"] == 0
    assert found.loc[ALL, "undefined"] == DERIVED.sum()
    assert areas(np.full(len(TRUTH), np.nan), TRUTH, WEIGHTS, STRANGERS).loc[ALL, "area"] == 0.5


def test_kinds_are_judged_apart_and_no_kind_is_left_out() -> None:
    found = areas(scores(), TRUTH, WEIGHTS, STRANGERS)
    kinds = [kind for kind in dict.fromkeys(TRUTH["kind"]) if kind != "strangers"]
    assert found.index.tolist() == [ALL, EXPECTED, *kinds]
    assert found.loc[kinds, "n"].sum() == (~STRANGERS).sum()
    assert found.loc[EXPECTED, "n"] == (DERIVED & ~TRUTH["blind"]).sum() < found.loc[ALL, "n"]
    assert {SIBLINGS, REMOTE} < set(kinds)


def test_in_a_draw_a_related_pair_counts_as_its_lineage_and_strangers_as_both_of_theirs() -> None:
    assert (WEIGHTS[0] == 1).all()
    within = WEIGHTS[:, DERIVED]
    assert (within == within[:, :1]).all()  # all derived pairs here are of one lineage
    counts = pd.DataFrame(
        WEIGHTS[:, STRANGERS], columns=pd.MultiIndex.from_frame(TRUTH.loc[STRANGERS, ["lineage_a", "lineage_b"]])
    )
    together = counts[("other", "third")].to_numpy()
    assert set(np.unique(together)) <= {0, 1, 2, 3}
    assert together[1:].std() > 0


def test_lineages_with_and_without_derived_models_are_drawn_apart() -> None:
    # One lineage has derived models; it is drawn once in every draw, so its pairs always count once.
    assert (WEIGHTS[:, DERIVED] == 1).all()


def test_the_interval_over_few_lineages_is_wider_than_one_over_as_many_pairs() -> None:
    rng = np.random.default_rng(0)
    names = [f"l{place}" for place in range(6)]
    effect = dict(zip(names, rng.normal(0, 1, 6), strict=True))
    related = [(name, name, "derived", effect[name]) for name in names for _ in range(30)]
    strangers = [(a, b, "independent", rng.normal(0, 0.1)) for a in names for b in names if a < b]
    truth = pd.DataFrame(related + strangers, columns=["lineage_a", "lineage_b", "group", "value"])
    truth = truth.assign(kind=truth["group"], blind=False)
    found = areas(
        truth["value"].to_numpy(), truth, lineage_weights(truth, 500, 0), (truth["group"] == "independent").to_numpy()
    )
    assert found.loc[ALL, "high"] - found.loc[ALL, "low"] > 0.3


def test_a_rate_is_a_share_with_its_interval() -> None:
    hits = np.arange(len(TRUTH)) % 4 == 0
    share, low, high = rates(hits, WEIGHTS, STRANGERS)
    assert share == pytest.approx(hits[STRANGERS].mean())
    assert low <= share <= high
    with pytest.raises(ComparisonError, match="no pair was chosen"):
        rates(hits, WEIGHTS, np.zeros(len(TRUTH), dtype=bool))

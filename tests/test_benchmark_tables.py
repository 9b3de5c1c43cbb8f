"""Tests of a whole contest on made models of known lineage, of its tables and of the words on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.benchmark import sampled, tables
from lnsim.measure.benchmark.contest import METHODS, TESTS, Contest, contest
from lnsim.measure.benchmark.roc import ALL, EXPECTED, lineage_weights
from lnsim.measure.verdict import RULES
from lnsim.render import benchmark_words as words
from tests.made_zoo import ROLES, made_models, made_truth

MODELS, TRUTH = made_models(), made_truth()
FOUND = contest(MODELS, TRUTH, ROLES, 199, 0)
WEIGHTS = lineage_weights(TRUTH, 100, 0)
AREAS = tables.area_table(FOUND, WEIGHTS)
BY_KIND = tables.areas_by_kind(FOUND, WEIGHTS, list(words.NAMES))
CALLED = tables.detection(FOUND, list(TESTS), 0.01)
FALSES = tables.false_positives(FOUND, WEIGHTS, list(TESTS))


def test_every_method_has_a_value_for_every_pair_or_says_that_it_is_undefined() -> None:
    assert list(FOUND.scores) == list(METHODS)
    flat = ((TRUTH["a"] == "flat") | (TRUTH["b"] == "flat")).to_numpy()
    assert FOUND.scores["pearson"].isna().to_numpy().tolist() == flat.tolist()
    assert FOUND.scores["cosine"].notna().all()
    assert FOUND.pvalues["p, β"].isna().all()  # one model alone has biases


def test_the_normal_distribution_takes_every_channel_of_every_level_for_a_witness() -> None:
    place = TRUTH.index[(TRUTH["a"] == "root") & (TRUTH["b"] == "other")][0]
    r, p = FOUND.scores.loc[place, "pearson"], FOUND.pvalues.loc[place, "p, 1/√n"]
    assert p == pytest.approx(stats.norm.sf(r * np.sqrt(2 * 3 * 48)), rel=1e-9)


def test_a_contest_of_unequal_lengths_is_refused() -> None:
    with pytest.raises(ComparisonError, match="36 pairs, 35 scores"):
        Contest(TRUTH, FOUND.scores.iloc[1:], FOUND.pvalues, 199, FOUND.biased)


def test_the_area_table_names_every_method_both_sets_of_pairs_and_both_sets_of_strangers() -> None:
    assert len(AREAS) == len(METHODS) * 4
    assert set(AREAS["pairs"]) == {ALL, EXPECTED}
    assert AREAS.groupby("against")["n_strangers"].first().to_dict() == {
        "all strangers": 21,
        "strangers of one design": 13,
    }
    seen = AREAS[(AREAS["pairs"] == EXPECTED) & (AREAS["method"] == "pearson")]
    assert (seen["area"] == 1).all()


def test_the_table_of_kinds_counts_every_pair_once() -> None:
    assert CALLED["n"].sum() == len(TRUTH)
    assert CALLED.loc["made child", "p, mean r"] == 1
    assert CALLED.loc["made flat", ["undefined", "p, mean r"]].tolist() == [1, 0]
    assert CALLED["group"].drop_duplicates().tolist() == ["derived", "siblings", "independent"]


def test_strangers_are_counted_with_those_whose_p_is_undefined() -> None:
    total = FALSES["n"] + FALSES["undefined"]
    nothing = FALSES["test"] == "p, β"
    assert set(total[(FALSES["strangers"] == "all strangers") & ~nothing]) == {21}
    assert set(total[nothing]) == {0}  # one model alone has biases, so no pair can be tested by them
    nothing = FALSES[nothing]
    assert nothing["share"].isna().all()
    assert nothing["kept"].all()


def test_distributions_give_distances_their_sign_back() -> None:
    found = tables.distributions(FOUND).set_index(["method", "pairs"])
    assert found.loc[("l2", ALL), "low"] >= 0
    assert found.loc[("p, mean r", EXPECTED), "median"] == 1 / 200
    assert found.loc[("cosine", ALL), "n"] == (TRUTH["group"] == "derived").sum()


def test_a_threshold_is_counted_by_kind() -> None:
    found = tables.over_threshold(FOUND, 0.98)
    one_design = (TRUTH["kind"] == "strangers") & TRUTH["same_design"]
    assert found["n"].drop("strangers of one design").sum() == len(TRUTH)
    assert found.loc["strangers of one design"].tolist() == [
        one_design.sum(),
        (FOUND.scores["cosine"][one_design] >= 0.98).mean(),
    ]
    assert found.loc["strangers", "share"] == pytest.approx(
        (FOUND.scores["cosine"][TRUTH["kind"] == "strangers"] >= 0.98).mean()
    )


def test_a_sample_holds_all_related_pairs_and_strangers_of_one_design() -> None:
    some = sampled.sampled_pairs(TRUTH, 5, 1)
    assert (some["group"] != "independent").sum() == (TRUTH["group"] != "independent").sum()
    assert some.loc[some["group"] == "independent", "same_design"].all()
    assert (some["group"] == "independent").sum() == 5
    assert some.index.is_monotonic_increasing


def test_verdicts_and_alignments_are_given_for_every_pair_of_a_sample() -> None:
    some = sampled.sampled_pairs(TRUTH, 5, 1)
    keys = sampled.verdict_keys(MODELS, some, ROLES, 499, 0)
    at = dict(zip(zip(some["a"], some["b"], strict=True), keys, strict=True))
    assert at[("root", "child")] == "one_by_one"
    assert at[("root", "deep")] == "rearranged"
    assert at[("root", "hidden")] == "none"
    assert at[("root", "flat")] == "not_comparable"
    counts = tables.verdict_counts(some, keys, RULES)
    assert counts["n"].sum() == len(some)
    assert counts.loc["made child", "signal"] == 1
    aligned = sampled.alignment_pvalues(MODELS, some, ROLES[0], 19, 0)
    assert aligned.loc[(some["a"] == "root") & (some["b"] == "flat")].isna().all(axis=None)
    assert (aligned.loc[(some["a"] == "root") & (some["b"] == "child"), "channels permuted, offset"] == 1 / 20).all()


def test_words_name_the_areas_and_rows_hold_them_with_their_intervals() -> None:
    text = words.areas_in_words(AREAS, EXPECTED, "all strangers")
    assert text.startswith("raw cosine ")
    assert "Pearson’s r 1.00 (1.00 to 1.00)" in text
    rows = words.area_rows(AREAS)
    assert rows.index.tolist() == list(METHODS)
    assert rows.loc["pearson", f"{EXPECTED}, all strangers"] == "1.00 (1.00 to 1.00)"
    cells = words.stranger_rows(FALSES)
    assert cells.loc["p, β"].tolist() == ["none"] * 4
    assert cells.shape == (len(TESTS), 4)


def test_what_came_out_otherwise_is_said() -> None:
    areas, by_kind = AREAS.copy(), BY_KIND.copy()
    areas.loc[(areas["method"] == "cosine") & (areas["pairs"] == ALL), "area"] = 0.99
    areas.loc[(areas["method"] == "pearson") & (areas["pairs"] == ALL), "area"] = 0.80
    called, falses = CALLED.copy(), FALSES.copy()
    called.loc["made child", "p, mean r"] = 0.0
    called.loc["made hidden", "p, mean r"] = 1.0
    falses.loc[0, ["share", "low", "kept"]] = [0.3, 0.2, False]
    verdicts = pd.DataFrame({"n": [200], "signal": [0.06]}, index=["strangers"])
    text = " ".join(words.surprises(areas, by_kind, called, falses, verdicts))
    assert "a shared-origin signal for 12 of 200 pairs of strangers; its level is 0.05" in text
    assert "The raw cosine ranks better than Pearson’s r over all derived pairs" in text
    assert "strangers of one design (0.99 against 0.80)" in text
    assert "found are made child (0 of 1)" in text
    assert "not expected to see: made hidden (1 of 1)" in text
    assert "beyond the interval, by p, mean r (30.0 % at 5 %, strangers of one design)" in text


def test_nothing_is_said_where_all_came_out_as_expected() -> None:
    areas, by_kind = (frame.assign(area=1.0) for frame in (AREAS, BY_KIND))
    called = CALLED.assign(**{"p, mean r": np.where(CALLED["blind"], 0.0, 1.0)})
    quiet = pd.DataFrame({"n": [200], "signal": [0.0]}, index=["strangers"])
    assert words.surprises(areas, by_kind, called, FALSES.assign(kept=True), quiet) == []


def test_called_rows_say_what_was_expected() -> None:
    rows = words.call_rows(CALLED, pd.Series({"made child": 1.0}))
    assert rows.loc["made child", ["expected", "verdict"]].tolist() == ["seen", 1.0]
    assert rows.loc["made hidden", "expected"] == "unseen"
    assert rows.loc["strangers", "expected"] == ""

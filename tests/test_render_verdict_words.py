"""Tests of the sentences of verdicts: a fixed set, careful words, every number in view."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from lnsim.measure.verdict import RULES
from lnsim.render.table import table
from lnsim.render.verdict_words import (
    SENTENCES,
    VERDICT_LABELS,
    closest_stranger,
    counted,
    rule_rows,
    rules_in_words,
    sentence,
    verdict_rows,
)

NAN = math.nan


def row(pair: str, key: str, group: str, **changes: object) -> dict[str, object]:
    relation = {"related": "fine_tune", "independent": "independent", "disputed": "disputed"}[group]
    first = {"pair": pair, "verdict": key, "obstacle": "", "tested": "attention, MLP", "tests": 2, "signals": 0}
    sizes = {"layers_least": 4, "layers_most": 6, "channels": 4096, "strongest": "MLP", "r": 0.105}
    p = {"pvalue": 0.0058, "p_holm": 0.0696, "p_ranks": 0.1757, "same": 5, "elsewhere": 0, "without": 1}
    controls = {"related": 6, "related_found": 5, "strangers": 4, "strangers_quiet": 4}
    return {**first, **sizes, **p, **controls, "relation": relation, "group": group, **changes}


NOTHING = {"tests": 0, "tested": "none", "strongest": "none", "r": NAN, "pvalue": NAN, "p_holm": NAN, "p_ranks": NAN}
FRAME = pd.DataFrame(
    [
        row("A × B", "one_by_one", "related", pvalue=0.0001),
        row("A × C", "none", "independent"),
        row("B × C", "contradictory", "disputed"),
        row("A × D", "not_comparable", "independent", obstacle="the sizes are 64 and 65", **NOTHING),
    ]
)


def test_there_is_one_sentence_for_every_rule_and_no_other() -> None:
    assert list(SENTENCES) == list(RULES)


def test_no_sentence_says_how_a_signal_came_about_or_that_two_are_independent() -> None:
    for text in SENTENCES.values():
        assert not re.search(r"copied|copy|stolen|prove|\bis derived|\bare independent|certain", text, re.IGNORECASE)
        assert text.endswith(".")
        assert not re.search(r"\d", text)
    assert "does not show independence" in SENTENCES["none"]
    assert all("compatible with" in SENTENCES[key] for key in ("one_by_one", "rearranged", "unplaced"))


def test_the_sentence_of_a_replica_says_first_that_it_is_synthetic() -> None:
    assert sentence("none", replica=True).startswith("REPLICA, synthetic vectors. No shared-origin signal")
    shown = verdict_rows(FRAME, replica=True)
    assert shown["sentence"].str.startswith("REPLICA, synthetic vectors. ").all()
    assert not verdict_rows(FRAME)["sentence"].str.contains("REPLICA").any()


def test_what_cannot_be_compared_says_why_and_shows_no_number() -> None:
    shown = verdict_rows(FRAME).loc["A × D"]
    assert shown["sentence"] == "Not comparable: the sizes are 64 and 65."
    assert [shown[name] for name in ("r", "pvalue", "p_holm", "p_ranks")] == [None] * 4
    assert (shown["tested"], shown["partners"]) == ("none", "none")


def test_a_row_holds_what_was_tested_and_all_three_p() -> None:
    shown = verdict_rows(FRAME).loc["A × C"]
    assert shown["tested"] == "attention, MLP; 4 to 6\u00a0×\u00a04,096"
    assert (shown["pvalue"], shown["p_holm"], shown["p_ranks"]) == (0.0058, 0.0696, 0.1757)
    assert shown["partners"] == "same number 5 of 6, no partner 1 of 6"
    assert (shown["found"], shown["quiet"]) == ("5 of 6", "4 of 4")


def test_what_is_on_record_stands_beside_the_sentence() -> None:
    columns = list(verdict_rows(FRAME).columns)
    assert columns == ["sentence", "relation", "group", *list(VERDICT_LABELS)[2:]]
    assert verdict_rows(FRAME)["relation"].tolist() == ["fine-tune", "independent", "disputed", "independent"]
    assert set(columns) - {"group"} == set(VERDICT_LABELS)


def test_the_table_names_each_cell_for_narrow_windows() -> None:
    html = table(verdict_rows(FRAME), "cap-1", "Table 1.", "Four.", "", {}, VERDICT_LABELS, cards=True)
    assert 'class="dataframe cards"' in html
    assert html.count('data-label="p, Holm"') == 4
    assert ">0.0696<" in html
    assert "undefined" not in html


def test_the_counts_say_how_the_controls_came_out() -> None:
    assert counted(FRAME) == (
        "4 pairs: 1 with a shared-origin signal, 1 without one, 1 weak or contradictory and 1 not comparable. "
        "Controls: a signal in 1 of 1 related pair and none in 1 of 1 pair of presumed strangers."
    )


def test_without_controls_the_counts_say_so() -> None:
    assert counted(FRAME[FRAME["group"] == "disputed"]).endswith("Controls: none could be judged.")


def test_the_strangers_that_come_closest_are_named_with_everything_against_it() -> None:
    assert closest_stranger(FRAME) == (
        "The smallest p of strangers is 0.0058 (A × C, MLP): 0.070 after Holm, 0.18 by ranks."
    )
    assert closest_stranger(FRAME[FRAME["group"] == "related"]) == ""


def test_the_rules_are_shown_in_the_order_in_which_they_are_tried() -> None:
    rows = rule_rows()
    assert rows["chosen where"].tolist() == list(RULES.values())
    assert rows["sentence"].iloc[0] == "Not comparable: …"
    assert rows.index.tolist() == [*range(1, 9)]
    assert "0.05, after Holm" in rules_in_words()


def test_an_unknown_verdict_is_an_error() -> None:
    with pytest.raises(KeyError):
        sentence("copied")

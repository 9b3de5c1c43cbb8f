"""Tests of the choice of a sentence: each rule, their order, and what must not matter."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lnsim.errors import ComparisonError
from lnsim.measure.verdict import READINGS, RULES, SENTENCES, SIGNALS, STRENGTHS, Evidence, sentence, verdict

STRONG = {"pvalue": 5e-4, "low": 1e-4, "high": 9e-4, "same": 6}


@pytest.mark.parametrize(
    ("found", "key"),
    [
        ({"pvalue": None}, "not_comparable"),
        ({"pvalue": None, "identical": True}, "identical"),
        ({"pvalue": None, "ordered": True}, "own_order"),
        ({"pvalue": 0.5, "least": 0.06}, "too_few"),
        (STRONG, "one_by_one"),
        (STRONG | {"same": 4, "elsewhere": 2}, "one_by_one"),
        (STRONG | {"same": 3, "elsewhere": 3}, "rearranged"),
        (STRONG | {"one_length": False}, "rearranged"),
        (STRONG | {"same": 0, "without": 6}, "unplaced"),
        ({"pvalue": 0.001, "low": 0.0, "high": 0.008, "same": 6}, "one_by_one"),
        ({"pvalue": 0.002, "low": 0.0, "high": 0.015}, "border"),
        ({"pvalue": 0.0009, "low": 0.0007, "high": 0.0012}, "border"),
        ({"pvalue": 0.048, "low": 0.04, "high": 0.06}, "border"),
        ({"pvalue": 0.02, "low": 0.01, "high": 0.04}, "weak"),
        ({"pvalue": 0.3, "low": 0.2, "high": 0.4}, "none"),
        ({"pvalue": 1.0, "low": 1.0, "high": 1.0}, "none"),
    ],
)
def test_a_rule_gives_its_sentence(found: dict[str, Any], key: str) -> None:
    assert verdict(Evidence(**found)) == key


def test_every_rule_has_a_strength_and_one_sentence_and_evidence_knows_no_relation() -> None:
    assert set(SENTENCES) == set(RULES) == set(STRENGTHS)
    assert SIGNALS == ("identical", "converted", "one_by_one", "rearranged", "unplaced")
    wanted = {"identical", "strong", "weak", "border", "none", "not_decided", "not_comparable"}
    assert set(STRENGTHS.values()) == wanted
    assert not [name for name in Evidence.__dataclass_fields__ if "relation" in name or "group" in name]
    with pytest.raises(KeyError):
        sentence("copied")


@pytest.mark.parametrize(
    "wrong", [{"pvalue": 0.0}, {"pvalue": 1.5}, {"pvalue": float("nan")}, {"pvalue": 1.0, "same": -1}]
)
def test_a_p_outside_its_range_or_a_count_below_zero_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ComparisonError, match="expected p above 0 and up to 1, and counts"):
        Evidence(**wrong)


def test_no_sentence_says_how_a_signal_came_about_or_that_two_are_independent() -> None:
    for text in SENTENCES.values():
        assert not re.search(
            r"copied|copy|stolen|prove|\bis derived|\bare independent|certain|\d",
            text.replace("F32", ""),
            re.IGNORECASE,
        )
        assert text.endswith(".")
    assert "does not show independence" in SENTENCES["none"]
    assert all(READINGS in text for key, text in SENTENCES.items() if STRENGTHS[key] in ("strong", "weak"))
    assert "same initial random numbers" in READINGS
    assert "chance" in SENTENCES["weak"]


def test_the_sentence_says_why_there_is_none_and_of_a_replica_first_that_it_is_synthetic() -> None:
    assert sentence("not_comparable", "the sizes are 64 and 65") == "Not comparable: the sizes are 64 and 65."
    assert sentence("none", replica=True).startswith("REPLICA, synthetic vectors. No shared-origin signal")

"""Tests of the choice of a sentence: each rule, their order, and what must not matter."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lnsim.errors import ComparisonError
from lnsim.measure.verdict import RULES, SENTENCES, Evidence, NormTest, sentence, verdict

LOW, HIGH = 0.01, 0.2


def norm(p: float = LOW, ranks: float = LOW, partners: tuple[int, int, int] = (6, 0, 0), **more: bool) -> NormTest:
    return NormTest(p, ranks, *partners, **{"one_length": True, "identical": False, **more})


@pytest.mark.parametrize(
    ("tests", "key"),
    [
        ((), "not_comparable"),
        ((norm(identical=True), norm(identical=True)), "identical"),
        ((norm(identical=True), norm()), "one_by_one"),
        ((norm(), norm(HIGH, HIGH, (0, 0, 6))), "one_by_one"),
        ((norm(partners=(4, 2, 0)),), "one_by_one"),
        ((norm(partners=(3, 3, 0)),), "rearranged"),
        ((norm(one_length=False),), "rearranged"),
        ((norm(partners=(0, 2, 1), one_length=False),), "rearranged"),
        ((norm(partners=(0, 0, 6)),), "unplaced"),
        ((norm(LOW, HIGH),), "contradictory"),
        ((norm(HIGH, LOW),), "contradictory"),
        ((norm(LOW, HIGH), norm(HIGH, LOW)), "contradictory"),
        ((norm(LOW, HIGH), norm(LOW, LOW)), "one_by_one"),
        ((norm(HIGH, HIGH),), "none"),
        ((norm(0.05, 0.05),), "none"),
        ((norm(partners=(0, 0, 6)), norm(HIGH, HIGH, (6, 0, 0))), "unplaced"),  # partners count where there is a signal
    ],
)
def test_a_rule_gives_its_sentence(tests: tuple[NormTest, ...], key: str) -> None:
    assert verdict(Evidence(tests, 0.001)) == key


@pytest.mark.parametrize(
    ("test", "least_p", "key"),
    [(norm(HIGH, HIGH), 0.05, "undecided"), (norm(HIGH, HIGH), 0.049, "none"), (norm(identical=True), 1, "identical")],
)
def test_nothing_is_concluded_where_no_p_could_have_been_small(test: NormTest, least_p: float, key: str) -> None:
    assert verdict(Evidence((test,), least_p)) == key


def test_evidence_knows_no_relation() -> None:
    names = set(Evidence.__dataclass_fields__) | set(NormTest.__dataclass_fields__)
    assert not [name for name in names if "relation" in name or "group" in name]


def test_no_sentence_says_how_a_signal_came_about_or_that_two_are_independent() -> None:
    assert list(SENTENCES) == list(RULES)
    for text in SENTENCES.values():
        assert not re.search(r"copied|copy|stolen|prove|\bis derived|\bare independent|certain", text, re.IGNORECASE)
        assert text.endswith(".")
        assert not re.search(r"\d", text)
    assert "does not show independence" in SENTENCES["none"]
    assert all("compatible with" in SENTENCES[key] for key in ("one_by_one", "rearranged", "unplaced"))


def test_the_sentence_says_why_there_is_none_and_of_a_replica_first_that_it_is_synthetic() -> None:
    assert sentence("not_comparable", "the sizes are 64 and 65") == "Not comparable: the sizes are 64 and 65."
    with pytest.raises(KeyError):
        sentence("copied")
    assert sentence("none", replica=True).startswith("REPLICA, synthetic vectors. No shared-origin signal")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *(({"p": p}, "expected p-values above 0 and up to 1") for p in (0.0, 1.5, float("nan"))),
        ({"partners": (0, 0, 0)}, "at least one layer"),
    ],
)
def test_a_p_outside_its_range_and_a_test_of_no_layers_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ComparisonError, match=message):
        norm(**given)

"""Judging pairs: the choice of a sentence, what takes part, Holm over the pairs, one sentence for every seed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_vectors import drawn, made, noisy, stack

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.verdict import (
    READINGS,
    RULES,
    SENTENCES,
    SIGNALS,
    STRENGTHS,
    Evidence,
    judge,
    matched_rows,
    sentence,
    verdict,
)
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

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


STUDY = load_study("small_models")


def stored(*names: str) -> list[NormVectors]:
    return [lnsim.load(name) for name in names]


def listed_pairs() -> list[tuple[NormVectors, NormVectors, list[tuple[str, str]]]]:
    """The pairs of the study with the norms that its file lists for each."""
    given, asked = STUDY.experiments["13"], {}
    vectors = study_vectors(STUDY, "stored", given["models"]).vectors
    for one in given["comparisons"].values():
        for pair in one["pairs"]:
            asked.setdefault(tuple(pair), []).append(tuple(one["roles"]))
    return [(vectors[a], vectors[b], roles) for (a, b), roles in asked.items()]


@pytest.mark.slow
def test_every_stored_pair_gets_the_same_sentence_with_ten_seeds() -> None:
    pairs = listed_pairs()
    found = [tuple(one.key for one in judge(pairs, seed=seed)) for seed in range(10)]
    assert len(set(found)) == 1


def test_the_pair_that_depended_on_the_seed_gets_one_sentence() -> None:
    whisper, minilm = stored("whisper-tiny.en", "all-minilm-l6-v2")
    roles = [("encoder/pre_attention", "post_attention"), ("pre_attention", "post_attention"), ("pre_mlp", "post_mlp")]
    assert {judge([(whisper, minilm, roles)], seed=seed)[0].key for seed in range(10)} == {"none"}


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (("fixed-01", "fixed-02"), "own_order"),
        (("one-seed-01", "one-seed-02"), "one_by_one"),
        (("learned-01", "rotary-02"), "none"),
        (("fixed-01", "learned-01"), "none"),  # one model in random order is enough
    ],
)
def test_models_trained_here_get_their_sentence(names: tuple[str, str], key: str) -> None:
    (found,) = judge([tuple(stored(*names))])
    assert found.key == key
    assert ("same initial random numbers" in found.sentence()) == (key == "one_by_one")


def test_a_role_that_one_lacks_another_width_and_a_tower_in_an_order_of_its_own_are_named() -> None:
    a, b = drawn(1), drawn(2, size=32)
    assert "hidden sizes are 64 and 32" in matched_rows(a, b, [("pre_mlp", "pre_mlp")]).obstacle
    rows = matched_rows(a, drawn(2), [("pre_mlp", "pre_mlp"), ("final", "pre_mlp")])
    assert rows.apart == {"final × pre_mlp": "'made' has no such norm"}
    (whisper,) = stored("whisper-tiny.en")
    both = matched_rows(whisper, whisper)
    assert {role for role, _ in both.roles} == {"pre_attention", "pre_mlp", "pre_cross_attention", "final"}
    assert set(both.apart) == {"encoder/pre_attention", "encoder/pre_mlp", "encoder/final"}


def test_p_is_adjusted_over_the_pairs_that_were_asked_about_together() -> None:
    rows = stack(12)
    related = (made(rows), made(noisy(rows)))
    strangers = [(made(stack(12, seed=seed)), made(rows)) for seed in (1, 2, 3)]
    alone = judge([related])[0]
    together = judge([related, *strangers])
    assert alone.p_adjusted == alone.test.pvalue
    assert together[0].p_adjusted == pytest.approx(4 * together[0].test.pvalue)
    assert [one.key for one in together[1:]] == ["none"] * 3


def test_copies_without_any_pattern_are_not_called_identical() -> None:
    flat = made(stack(4) * 0 + 1)
    (found,) = judge([(flat, replace(flat))])
    assert found.key == "not_comparable"
    assert "γ has no pattern in layers 0 to 3" in found.sentence()


def test_the_innocent_readings_stand_in_the_limits_in_the_same_words() -> None:
    text = " ".join((Path(__file__).parents[1] / "docs" / "limits.md").read_text("utf-8").split())
    assert READINGS in text

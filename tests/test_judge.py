"""Judging pairs: what takes part, what is left out and why, Holm over the pairs, one sentence for every seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_vectors import drawn, made, noisy, stack

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.judge import judge, matched_rows
from lnsim.measure.verdict import READINGS
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

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

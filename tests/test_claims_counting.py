"""Counts and sizes, and numbers that follow from a definition alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from published_claims import by_the_others, claim, corpus

from studies.claims.bounds import AGREES, CONTRADICTS
from studies.claims.counting import alone, counts
from studies.claims.intervals import Interval, exactly


@pytest.mark.parametrize(
    ("name", "outcome", "number"),
    [
        ("001-037", AGREES, 36),
        ("001-043", AGREES, 6),
        ("001-046", CONTRADICTS, 20),
        ("001-049", CONTRADICTS, 10),
        ("001-092", CONTRADICTS, 4),
        ("000-032", CONTRADICTS, 8),
        ("001-091", AGREES, 4),
        ("000-031", CONTRADICTS, 4),
        ("004-123", AGREES, 2162),
        ("004-139", CONTRADICTS, 46),
        ("004-136", AGREES, 48),
        ("004-069", AGREES, 192_512),
        ("000-018", AGREES, 8192),
    ],
)
def test_a_count_is_set_beside_the_right_number(name: str, outcome: str, number: int) -> None:
    found = by_the_others()[name]
    assert found.outcome == outcome
    assert number in {one.bound.known.middle for one in found.findings}


def test_a_matrix_has_no_more_rows_than_a_model_has_norms() -> None:
    """47 rows are one too many for a model of 46 layers, unless it has a block that predicts further tokens."""
    assert by_the_others()["004-028"].outcome == AGREES
    assert {one.where for one in by_the_others()["004-053"].findings} == {"at most the norms of intellect"}


def test_a_download_has_at_least_its_parts() -> None:
    (found,) = by_the_others()["000-029"].findings
    assert found.bound.known.low == 10 * 10 * 2**20


def test_models_of_different_hidden_sizes_are_not_compared() -> None:
    one = claim("000-031")
    fewer = replace(one, members=one.members.rpartition(";")[0], allowed=exactly(4))
    assert counts(fewer, corpus().published, (), corpus().n_layers) == []


def test_random_vectors_have_the_means_and_spreads_of_their_closed_forms() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(1, 0.1, size=(2, 200, 4096))
    lengths = [np.linalg.norm(one, axis=1) for one in (a, b)]
    drawn = {"cosine": np.einsum("ij,ij->i", a, b) / lengths[0] / lengths[1], "l2": np.linalg.norm(a - b, axis=1)}
    for metric, values in drawn.items():
        for statistic, value in (("mean of draws", values.mean()), ("std of draws", values.std())):
            row = next(
                c for c in corpus().claims if (c.members, c.metric, c.statistic) == ("random", metric, statistic)
            )
            (found,) = alone(row, corpus().published)
            error = 4 * values.std() / np.sqrt(len(values) if "mean" in statistic else 2 * len(values))
            assert abs(found.bound.known.middle - value) < error, (metric, statistic)


@pytest.mark.parametrize("name", ["004-008", "004-015", "004-016", "004-017", "004-018", "003-100", "001-052"])
def test_what_follows_from_a_definition_is_found_right_and_a_moved_number_wrong(name: str) -> None:
    one = claim(name)
    assert [found.outcome for found in alone(one, corpus().published)] == [AGREES]
    away = 4 * one.half + 1e-6
    wrong = replace(one, allowed=Interval(one.allowed.low + away, one.allowed.high + away))
    assert [found.outcome for found in alone(wrong, corpus().published)] == [CONTRADICTS]

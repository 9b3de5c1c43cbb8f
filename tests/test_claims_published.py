"""Bounds from printed numbers: strongest evidence first; counts, closed forms of draws and definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from published_claims import claim, corpus

from studies.claims.bounds import AGREES, CONTRADICTS, Bound, best
from studies.claims.counting import alone, counts
from studies.claims.intervals import Interval, exactly


def test_the_closest_firm_bound_is_the_best_unless_it_says_much_less() -> None:
    ends = ((0.5, 0.51, False), (0.5, 0.52, True), (-1, 1, True))
    narrow, firm, loose = (Bound(Interval(low, high), "printed", ("x",), sure) for low, high, sure in ends)
    assert best([narrow, firm, loose]) is firm
    assert best([narrow, loose]) is narrow
    assert best([]) is None


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
            asked = ("random", metric, statistic)
            row = next(one for one in corpus().claims if (one.members, one.metric, one.statistic) == asked)
            (found,) = alone(row, corpus().published)
            error = 4 * values.std() / np.sqrt(len(values) if "mean" in statistic else 2 * len(values))
            assert abs(found.bound.known.middle - value) < error, (metric, statistic)


@pytest.mark.parametrize("name", ["004-008", "004-015", "004-018", "003-100", "001-052"])
def test_what_follows_from_a_definition_is_found_right_and_a_moved_number_wrong(name: str) -> None:
    one = claim(name)
    assert [found.outcome for found in alone(one, corpus().published)] == [AGREES]
    away = 4 * one.half + 1e-6
    wrong = replace(one, allowed=Interval(one.allowed.low + away, one.allowed.high + away))
    assert [found.outcome for found in alone(wrong, corpus().published)] == [CONTRADICTS]

"""Bounds from printed numbers: the closed forms in place, strongest evidence first; counts and definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from published_claims import by_the_others, claim, corpus

from studies.claims.bounds import AGREES, CONTRADICTS, Bound, best
from studies.claims.counting import alone, counts
from studies.claims.intervals import Interval, exactly
from studies.claims.rows import Cell, Vector, cells_of


def test_the_closest_firm_bound_is_the_best_unless_it_says_much_less() -> None:
    ends = ((0.5, 0.51, False), (0.5, 0.52, True), (-1, 1, True))
    narrow, firm, loose = (Bound(Interval(low, high), "printed", ("x",), sure) for low, high, sure in ends)
    assert best([narrow, firm, loose]) is firm
    assert best([narrow, loose]) is narrow
    assert best([]) is None


def test_a_cosine_of_layers_that_nobody_compared_is_bounded_by_shares_alone() -> None:
    one = claim("004-109")
    (cell,) = cells_of(one.members, one.roles, corpus().n_layers)
    firm = [found for found in corpus().published.bounds("cosine", cell) if found.firm]
    assert [found.how for found in firm] == ["closed form from two shares and any r"]
    assert firm[0].known.high < 0.5


def test_a_length_follows_from_an_l2_distance_and_never_from_its_own() -> None:
    phi = next(model for model in corpus().n_layers if corpus().n_layers[model] == 32)
    (length,) = corpus().published.bounds("norm", Cell("pre_attention", Vector(phi, 10)))
    assert length.known.low < 20.589 < length.known.high
    assert length.how == "closed form from L2, cosine and the other length"
    level = corpus().published.bounds("mean", Cell("pre_attention", Vector(phi, 10)))
    assert all(one.known.high < 0.33 for one in level)


@pytest.mark.parametrize(
    ("name", "outcome", "shown"),
    [
        ("004-087", CONTRADICTS, "printed"),
        ("004-091", CONTRADICTS, "closed form from two shares and any r"),
        ("004-111", CONTRADICTS, "closed form from two shares and any r"),
        ("004-119", CONTRADICTS, "closed form from r and one share and any other"),
        ("004-126", CONTRADICTS, "std of the 47 values, of which 1 may have any value"),
        ("004-159", CONTRADICTS, "mean and maximum"),
        ("004-007", CONTRADICTS, "closed form from mean and std"),
        ("003-113", AGREES, "closed form from two lengths and the cosine"),
        ("001-060", AGREES, "closed form from two lengths and the cosine"),
        ("001-074", AGREES, "closed form from the cosine and two shares"),
        ("000-021", CONTRADICTS, "mean of the 4 values"),
        ("002-001", AGREES, "difference of the two means"),
        ("000-013", AGREES, "difference over pooled std"),
        ("001-038", AGREES, "weighted mean of 6 printed means"),
        ("001-039", AGREES, "from 6 printed means and stds"),
        ("001-040", AGREES, "std of 6 layer means"),
        ("001-024", AGREES, "std of the 6 values"),
        ("004-093", CONTRADICTS, "printed"),
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
        # 47 rows are one too many for a model of 46 layers, unless it has a block that predicts further tokens.
        ("004-028", AGREES, "at most the norms of glm"),
        ("004-053", CONTRADICTS, "at most the norms of intellect"),
    ],
)
def test_each_kind_of_evidence_decides_the_row_it_should(name: str, outcome: str, shown: str | int) -> None:
    found = by_the_others()[name]
    assert found.outcome == outcome
    assert shown in {said for one in found.findings for said in (one.bound.how, one.bound.known.middle, one.where)}


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
            asked = ("random", metric, statistic)
            row = next(one for one in corpus().claims if (one.members, one.metric, one.statistic) == asked)
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

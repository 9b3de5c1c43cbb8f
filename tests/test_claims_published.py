"""Bounds from printed numbers: the closed forms in place, strongest evidence first."""

from __future__ import annotations

import pytest
from published_claims import by_the_others, claim, corpus

from studies.claims.bounds import AGREES, CONTRADICTS, Bound, best, joined
from studies.claims.intervals import Interval, exactly
from studies.claims.rows import Cell, Vector, cells_of


def bound(low: float, high: float, firm: bool) -> Bound:
    return Bound(Interval(low, high), "printed", ("x",), firm)


def test_the_closest_firm_bound_is_the_best_unless_it_says_much_less() -> None:
    narrow, firm, loose = bound(0.5, 0.51, False), bound(0.5, 0.52, True), bound(-1, 1, True)
    assert best([narrow, firm, loose]) is firm
    assert best([narrow, loose]) is narrow
    assert best([]) is None


def test_what_follows_from_others_is_firm_only_if_all_of_them_are() -> None:
    parts = [bound(0, 1, True), bound(0, 1, False)]
    assert not joined(exactly(1.0), "sum", parts).firm
    assert joined(exactly(1.0), "sum", parts[:1]).firm
    assert joined(exactly(1.0), "sum", parts).sources == ("x",)


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
    ("name", "outcome", "how"),
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
    ],
)
def test_each_kind_of_evidence_decides_the_row_it_should(name: str, outcome: str, how: str) -> None:
    found = by_the_others()[name]
    assert found.outcome == outcome
    assert how in {one.bound.how for one in found.findings}

"""Arithmetic with intervals: what lies in must lie in what comes out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lnsim.errors import ComparisonError
from studies.claims.intervals import Interval, corners, exactly, hull, mean_of, spread_of

number = st.floats(-10, 10)
width = st.floats(0, 2)


@st.composite
def known(draw: st.DrawFn) -> list[tuple[Interval, float]]:
    """Intervals, each with a number inside."""
    pairs = draw(st.lists(st.tuples(number, width, st.floats(0, 1)), min_size=1, max_size=8))
    return [(Interval(low, low + wide), low + wide * part) for low, wide, part in pairs]


@given(known())
def test_the_mean_of_numbers_lies_in_the_mean_of_their_intervals(pairs: list[tuple[Interval, float]]) -> None:
    found = mean_of([interval for interval, _ in pairs])
    assert found.low - 1e-9 <= np.mean([value for _, value in pairs]) <= found.high + 1e-9


@given(known(), st.lists(number, max_size=4))
def test_the_std_lies_in_its_interval_whatever_the_unknown_numbers_are(
    pairs: list[tuple[Interval, float]], unknown: list[float]
) -> None:
    values = [value for _, value in pairs] + unknown
    found = spread_of([interval for interval, _ in pairs], len(values), bound=20.0)
    assert found.low - 1e-9 <= np.std(values) <= found.high + 1e-9


def test_two_intervals_meet_at_their_ends_and_not_beyond() -> None:
    assert Interval(0.975, 0.985).meets(Interval(0.985, 0.995))
    assert not Interval(0.975, 0.985).meets(Interval(0.98501, 0.995))


def test_the_difference_holds_every_difference() -> None:
    assert Interval(1, 2).minus(Interval(0.5, 1.5)) == Interval(-0.5, 1.5)


def test_corners_take_the_extremes_of_a_function_that_rises_in_one_and_falls_in_the_other() -> None:
    assert corners(lambda a, b: a - b, Interval(1, 2), Interval(0, 1)) == Interval(0, 2)


def test_a_hull_holds_all_and_a_cut_keeps_itself_where_nothing_is_shared() -> None:
    assert hull([Interval(0, 1), Interval(3, 4)]) == Interval(0, 4)
    assert Interval(0, 1).cut(Interval(2, 3)) == Interval(0, 1)
    assert Interval(0, 2).cut(Interval(1, 3)) == Interval(1, 2)
    assert exactly(3.0).within(Interval(2, 3))


def test_ends_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ComparisonError, match="needs its ends in order, found 2 and 1"):
        Interval(2, 1)
    with pytest.raises(ComparisonError, match="found nan"):
        Interval(float("nan"), 1.0)

"""Arithmetic with intervals: what lies in must lie in what comes out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_claims import corpus

from lnsim.errors import ComparisonError
from studies.claims import intervals
from studies.claims.intervals import Interval, exactly, spread_of
from studies.claims.rows import Cell, Vector

number = st.floats(-10, 10)
width = st.floats(0, 2)


@st.composite
def known(draw: st.DrawFn) -> list[tuple[Interval, float]]:
    """Intervals, each with a number inside."""
    pairs = draw(st.lists(st.tuples(number, width, st.floats(0, 1)), min_size=1, max_size=8))
    return [(Interval(low, low + wide), low + wide * part) for low, wide, part in pairs]


@given(known(), st.lists(number, max_size=4))
def test_the_std_lies_in_its_interval_whatever_the_unknown_numbers_are(
    pairs: list[tuple[Interval, float]], unknown: list[float]
) -> None:
    values = [value for _, value in pairs] + unknown
    found = spread_of([interval for interval, _ in pairs], len(values), bound=20.0)
    assert found.low - 1e-9 <= np.std(values) <= found.high + 1e-9


def test_ends_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ComparisonError, match="needs its ends in order, found 2 and 1"):
        Interval(2, 1)
    with pytest.raises(ComparisonError, match="found nan"):
        Interval(float("nan"), 1.0)


def cosine(a: npt.NDArray[np.float64], b: npt.NDArray[np.float64]) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def moments(a: npt.NDArray[np.float64]) -> tuple[Interval, Interval]:
    return exactly(float(a.mean())), exactly(float(a.std()))


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 3), st.floats(0.05, 3), st.floats(-1, 1))
@settings(max_examples=60)
def test_two_shares_and_r_give_the_cosine_and_back(seed: int, mean: float, std: float, mix: float) -> None:
    x, y = np.random.default_rng(seed).normal(size=(2, 64))
    a, b = mean + std * x, 1.0 + mix * x + 0.5 * y
    shares = [intervals.share(*moments(one)) for one in (a, b)]
    r = float(np.corrcoef(a, b)[0, 1])
    assert intervals.cosine(*shares, exactly(r)).middle == pytest.approx(cosine(a, b), abs=1e-9)
    assert intervals.pearson(exactly(cosine(a, b)), *shares).middle == pytest.approx(r, abs=1e-6)
    anyhow = intervals.cosine(*shares)
    assert anyhow.low - 1e-9 <= cosine(a, b) <= anyhow.high + 1e-9


@given(st.floats(-1, 1), st.floats(0.1, 0.999), st.floats(-0.9, 0.9))
def test_an_unknown_share_leaves_no_cosine_out(share: float, other: float, r: float) -> None:
    found = intervals.cosine(Interval(-1, 1), exactly(other), exactly(r))
    value = intervals.cosine(exactly(share), exactly(other), exactly(r)).middle
    assert found.low - 1e-9 <= value <= found.high + 1e-9


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
@settings(max_examples=60)
def test_the_third_side_holds_for_cosines_and_for_means_of_them(seed: int, n_layers: int) -> None:
    a, b, c = np.random.default_rng(seed).normal(0.3, 1, size=(3, n_layers, 8))
    sides = [np.mean([cosine(x, y) for x, y in zip(one, two, strict=True)]) for one, two in ((a, c), (c, b), (a, b))]
    found = intervals.third_side(exactly(float(sides[0])), exactly(float(sides[1])))
    assert found.low - 1e-9 <= sides[2] <= found.high + 1e-9


def test_the_published_layer_table_keeps_the_first_formula_in_every_row() -> None:
    """Its six digits are a check on what was carried over: 92 rows, means, standard deviations, r and cosine."""
    printed = corpus().published.printed
    vectors = {(role, vector.layer) for _, role, vector in printed.table}
    assert len(vectors) == 92
    models = list(dict.fromkeys(vector.model for _, _, vector in printed.table))
    for role, layer in vectors:
        cell = Cell(role, *(Vector(model, layer) for model in models))
        sides = [(printed.table["mean", role, s].known, printed.table["std", role, s].known) for s in cell[1:]]
        r, stored = (next(b.known.middle for b in printed.of(name, cell) if b.firm) for name in ("pearson", "cosine"))
        found = intervals.cosine(*(intervals.share(*side) for side in sides), exactly(r))
        assert found.middle == pytest.approx(stored, abs=2e-6)

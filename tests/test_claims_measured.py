"""Quantities taken from vectors, and the verdicts that real vectors give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from made_vectors import made
from published_claims import by_the_others, claim, corpus

from lnsim.checkpoint.vectors import NormVectors
from studies.claims import judging
from studies.claims.bounds import AGREES, CONTRADICTS, Bound, over
from studies.claims.evaluate import evaluate, ranges
from studies.claims.intervals import Interval
from studies.claims.measured import Measured
from studies.claims.rows import Cell, Vector, cells_of

ROLE = "pre_attention"


def models(size: int = 64) -> dict[str, NormVectors]:
    """Every model of the corpus with as many layers as it has, made of few channels."""
    found = {}
    for place, (key, n_layers) in enumerate(corpus().n_layers.items()):
        generator = np.random.default_rng(place)
        found[key] = made(generator.normal(1.0, 0.2, size=(n_layers, size)), role=ROLE)
    return found


def pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[Measured, Cell]:
    lookup = Measured({"a": made([a], role=ROLE), "b": made([b], role=ROLE)})
    return lookup, Cell(ROLE, Vector("a", 0), Vector("b", 0))


@pytest.mark.parametrize(
    ("metric", "sides", "low", "high"),
    [
        ("cosine", "ab", 0.96, 0.96),
        ("l2", "ab", 2**0.5, 2**0.5),
        ("rel_l2", "ab", 2**0.5 / 5, 2**0.5 / 5),
        ("mean_abs_diff", "ab", 1, 1),
        ("changed_percent", "ab", 100, 100),
        ("p99_diff", "ab", 0, 0),
        ("cv_ratio", "ab", 1, 1),
        ("pearson", "ab", -1, -1),
        ("norm", "a", 5, 5),
        ("mean", "a", 3.5, 3.5),
        ("std", "a", 0.5, 0.5),
        ("gamma", "a", 3, 4),
    ],
)
def test_a_measure_of_two_vectors_or_of_one(metric: str, sides: str, low: float, high: float) -> None:
    lookup, cell = pair([3.0, 4.0], [4.0, 3.0])
    (found,) = lookup.bounds(metric, cell if sides == "ab" else Cell(ROLE, cell.a))
    assert (found.known.low, found.known.high) == pytest.approx((low, high))


def test_a_layer_beyond_the_last_is_the_block_that_predicts_further_tokens() -> None:
    vectors = made([[1.0, 2.0]], role=ROLE)
    further = replace(vectors.roles[ROLE], role=f"mtp/{ROLE}", layers=np.array([1]), scale=np.float32([[5.0, 5.0]]))
    both = NormVectors("x", None, "llama", "rmsnorm", 2, {ROLE: vectors.roles[ROLE], f"mtp/{ROLE}": further})
    lookup = Measured({"a": both})
    assert lookup.bounds("mean", Cell(ROLE, Vector("a", 1)))[0].known.middle == 5.0
    assert lookup.named("n_layers", "", "a")[0].known.middle == 1
    assert lookup.missing([Cell(ROLE, Vector("a", 2))]) == ["a 2"]


class WithoutEnds(Measured):
    """As printed numbers are: of a vector the mean is known, and not every value."""

    def bounds(self, metric: str, cell: Cell) -> list[Bound]:
        return [] if metric == "gamma" else super().bounds(metric, cell)


def test_unknown_layers_leave_a_cosine_an_interval_an_l2_nothing_and_the_layer_of_the_largest_open() -> None:
    depths, rows = {"a": 4, "b": 4}, [[1.0, 2.0]] * 3
    lookup = WithoutEnds({"a": made(rows, role=ROLE), "b": made(rows[:2], role=ROLE)})
    cells = cells_of("a@0-2:b@=", [ROLE], depths)
    (mean,) = over(lookup, "cosine", "mean", cells, "")
    assert (mean.known.low, mean.known.high) == pytest.approx((1 / 3, 1))
    assert over(lookup, "l2", "mean", cells, "") == []
    row = replace(claim("004-087"), members="a@*:b@=", statistic="layer of most", roles=(ROLE,))
    assert evaluate(row, lookup, depths) == []
    each = evaluate(replace(row, members="a@0-1:b@=", statistic="each"), lookup, depths)
    assert [one.where for one in each] == ["layer 0", "layer 1"]
    for allowed, outcome in ((Interval(1.4, 1.6), AGREES), (Interval(0, 1), CONTRADICTS)):  # a range holds every mean
        row = replace(row, members="a@0-2", statistic="", metric="gamma", allowed=allowed, half=0.1)
        assert {one.outcome for one in ranges(row, lookup, depths)} == {outcome}


def test_real_vectors_reproduce_a_number_that_is_theirs_and_differ_from_one_that_is_not() -> None:
    vectors = models()
    asked = ("cosine", "", (ROLE,))
    row = next(one for one in corpus().claims if (one.metric, one.statistic, one.roles) == asked)
    (cell,) = cells_of(row.members, row.roles, corpus().n_layers)
    value = Measured(vectors).bounds("cosine", cell)[0].known.middle
    right = replace(row, allowed=Interval(value - 5e-5, value + 5e-5))
    wrong = replace(row, allowed=Interval(value + 1e-4, value + 2e-4))
    for row, verdict in ((right, judging.REPRODUCED), (wrong, judging.DIFFERS)):
        (judged,) = judging.judge(replace(corpus(), claims=(row,)), vectors, None, by_the_others())
        assert judged.verdict == verdict

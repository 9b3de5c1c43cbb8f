"""Statistics over cells of which some are unknown, and evaluation of claims on a lookup made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from published_claims import claim

from studies.claims.bounds import AGREES, CONTRADICTS, OPEN, Bound, compared, over, within_groups
from studies.claims.evaluate import evaluate, ranges
from studies.claims.intervals import Interval, exactly
from studies.claims.rows import Cell, Claim, Vector, cells_of

ROLE = "r"
MOST = "mean or most"
TWO = {"a@0:b@0": 0.5, "a@1:b@1": 0.9}
DEPTHS = {"a": 4, "b": 4, "c": 4}


def _either_way(cell: Cell) -> Cell:
    return cell if cell.b is None or cell.a < cell.b else Cell(cell.role, cell.b, cell.a)


class Known:
    """A lookup in values given by hand: of cells by layer, of groups by statistic and selection."""

    def __init__(
        self,
        cells: dict[str, float],
        groups: dict[tuple[str, str], float] | None = None,
        metrics: tuple[str, ...] = (),
    ) -> None:
        self.metrics = metrics
        self.cells = {cells_of(text, [ROLE], DEPTHS)[0]: value for text, value in cells.items()}
        self.sets = {
            (statistic, frozenset(map(_either_way, cells_of(text, [ROLE], DEPTHS)))): value
            for (statistic, text), value in (groups or {}).items()
        }

    def bounds(self, metric: str, cell: Cell) -> list[Bound]:
        turned = Cell(cell.role, cell.b, cell.a) if cell.b else cell
        found = [self.cells[one] for one in (cell, turned) if one in self.cells]
        told = found and (not self.metrics or metric in self.metrics)
        return [Bound(exactly(found[0]), "printed", ("x",), True)] if told else []

    def together(self, metric: str, statistic: str, cells: Sequence[Cell]) -> list[Bound]:
        value = self.sets.get((statistic, frozenset(map(_either_way, cells))))
        return [] if value is None else [Bound(exactly(value), "printed", ("group",), False)]

    def groups(self, metric: str, statistic: str) -> list[tuple[frozenset[Cell], Bound]]:
        return [
            (cells, Bound(exactly(value), "printed", ("group",), False))
            for (name, cells), value in self.sets.items()
            if name == statistic
        ]

    def named(self, metric: str, statistic: str, members: str) -> list[Bound]:
        return []


def made(members: str, statistic: str = "", meaning: str = "equals", low: float = 0.0, high: float = 0.0) -> Claim:
    whole = replace(claim("004-087"), members=members, statistic=statistic, meaning=meaning, roles=(ROLE,))
    return replace(whole, allowed=Interval(low, high), half=(high - low) / 2, name="004-999")


def test_an_unknown_cosine_leaves_the_mean_an_interval() -> None:
    lookup = Known({"a@0:b@0": 0.9, "a@1:b@1": 0.7})
    (found,) = over(lookup, "cosine", "mean", cells_of("a@0-2:b@=", [ROLE], DEPTHS), "")
    assert (found.known.low, found.known.high) == pytest.approx((0.2, 2.6 / 3))


def test_of_a_measure_without_bounds_an_unknown_value_leaves_nothing() -> None:
    lookup = Known({"a@0:b@0": 0.9})
    assert over(lookup, "l2", "mean", cells_of("a@0-1:b@=", [ROLE], DEPTHS), "") == []


def test_no_single_value_lies_further_from_a_mean_than_its_spread_allows() -> None:
    lookup = Known({}, {("mean", "a@0-3:b@="): 0.9, ("std", "a@0-3:b@="): 0.01})
    (found,) = within_groups(lookup, "cosine", Cell(ROLE, Vector("a", 1), Vector("b", 1)))
    assert found.known.low == pytest.approx(0.9 - 0.01 * 3**0.5)


def test_a_mean_through_a_third_model_obeys_the_triangle_inequality() -> None:
    lookup = Known({}, {("mean", "a@*:c@="): 0.99, ("mean", "c@*:b@="): 1.0})
    found = over(lookup, "cosine", "mean", cells_of("a@*:b@=", [ROLE], DEPTHS), "")
    expected = [("triangle inequality through a third model", 0.99)]
    assert [(one.how, round(one.known.middle, 6)) for one in found] == expected


def test_a_bound_much_wider_than_the_printed_digits_agrees_with_too_much() -> None:
    wide = Bound(Interval(0.8, 1.0), "closed form", ("x",), True)
    assert compared(Interval(0.9, 0.901), wide).outcome == OPEN
    assert compared(Interval(0.7, 0.71), wide).outcome == CONTRADICTS
    assert compared(Interval(0.75, 1.1), wide).outcome == AGREES


ROWS = {
    "a statement on each is judged layer by layer": (
        {"a@0:b@0": 0.1, "a@1:b@1": 0.95}, ("a@0-1:b@=", "each", "range", 0.9, 1.0), [CONTRADICTS, AGREES]),
    "an order at every layer that is known": (
        {"a@0": 2, "b@0": 1, "a@1": 1, "b@1": 2, "a@2": 1}, ("a@* > b@*", "ordering", "ordering"),
        [AGREES, CONTRADICTS]),
    "mean or maximum agrees where the mean fits": (TWO, ("a@0-1:b@=", MOST, "equals", 0.695, 0.705), [AGREES]),
    "mean or maximum agrees where the maximum fits": (TWO, ("a@0-1:b@=", MOST, "equals", 0.895, 0.905), [AGREES]),
    "mean or maximum is contradicted where neither fits": (
        TWO, ("a@0-1:b@=", MOST, "equals", 0.295, 0.305), [CONTRADICTS]),
    "the layer of the largest value is found": (
        TWO | {"a@2:b@2": 0.7}, ("a@0-2:b@=", "layer of most", "equals", 1, 1), [AGREES]),
    "the layer is left open where too little is known": (
        {"a@0:b@0": 0.5}, ("a@*:b@=", "layer of most", "equals", 2, 2), []),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "given", "outcomes"), ROWS.values(), ids=ROWS)
def test_a_claim_beside_values_made_by_hand(
    cells: dict[str, float], given: tuple[Any, ...], outcomes: list[str]
) -> None:
    found = evaluate(made(*given), Known(cells), DEPTHS)
    assert [one.outcome for one in found] == outcomes
    if given[1] == "each":
        assert [one.where for one in found] == ["layer 0", "layer 1"]


def test_an_effect_divides_by_the_pooled_population_spread() -> None:
    lookup = Known({"a@0:b@0": 0.8, "a@1:b@1": 1.0, "a@2:b@2": 0.1, "a@3:b@3": 0.3})
    (found,) = evaluate(made("a@0-1:b@= - a@2-3:b@=", "effect", "equals", 6.9, 7.1), lookup, DEPTHS)
    assert (found.outcome, round(found.bound.known.middle, 9)) == (AGREES, 7.0)


def test_a_range_of_values_must_hold_every_mean() -> None:
    lookup = Known({"a@0": 0.5, "a@1": 2.0}, metrics=("mean",))
    found = ranges(replace(made("a@*", "", "range", 0.0, 1.0), metric="gamma"), lookup, DEPTHS)
    assert [one.outcome for one in found] == [AGREES, CONTRADICTS]

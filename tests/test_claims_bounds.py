"""Statistics over cells of which some are unknown, and evaluation of claims on a lookup made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from published_claims import claim

from studies.claims.bounds import AGREES, CONTRADICTS, OPEN, Bound, compared, over, within_groups
from studies.claims.evaluate import evaluate, ranges
from studies.claims.intervals import Interval, exactly
from studies.claims.rows import Cell, Claim, Vector, cells_of

ROLE = "r"
DEPTHS = {"a": 4, "b": 4, "c": 4}


def _either_way(cell: Cell) -> Cell:
    return cell if cell.b is None or cell.a < cell.b else Cell(cell.role, cell.b, cell.a)


class Known:
    """A lookup in values given by hand: of cells by layer, of groups by statistic and selection."""

    def __init__(self, cells: dict[str, float], groups: dict[tuple[str, str], float] | None = None) -> None:
        self.cells = {cells_of(text, [ROLE], DEPTHS)[0]: value for text, value in cells.items()}
        self.sets = {
            (statistic, frozenset(map(_either_way, cells_of(text, [ROLE], DEPTHS)))): value
            for (statistic, text), value in (groups or {}).items()
        }

    def bounds(self, metric: str, cell: Cell) -> list[Bound]:
        turned = Cell(cell.role, cell.b, cell.a) if cell.b else cell
        found = [self.cells[one] for one in (cell, turned) if one in self.cells]
        return [Bound(exactly(found[0]), "printed", ("x",), True)] if found else []

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
    assert [(one.how, round(one.known.middle, 6)) for one in found] == [
        ("triangle inequality through a third model", 0.99)
    ]


def test_a_bound_much_wider_than_the_printed_digits_agrees_with_too_much() -> None:
    wide = Bound(Interval(0.8, 1.0), "closed form", ("x",), True)
    assert compared(Interval(0.9, 0.901), wide).outcome == OPEN
    assert compared(Interval(0.7, 0.71), wide).outcome == CONTRADICTS
    assert compared(Interval(0.75, 1.1), wide).outcome == AGREES


def test_a_statement_on_each_is_judged_layer_by_layer() -> None:
    lookup = Known({"a@0:b@0": 0.1, "a@1:b@1": 0.95})
    found = evaluate(made("a@0-1:b@=", "each", "range", 0.9, 1.0), lookup, DEPTHS)
    assert [(one.outcome, one.where) for one in found] == [(CONTRADICTS, "layer 0"), (AGREES, "layer 1")]


def test_an_order_is_judged_at_every_layer_that_is_known() -> None:
    lookup = Known({"a@0": 2.0, "b@0": 1.0, "a@1": 1.0, "b@1": 2.0, "a@2": 1.0})
    found = evaluate(made("a@* > b@*", "ordering", "ordering"), lookup, DEPTHS)
    assert [one.outcome for one in found] == [AGREES, CONTRADICTS]


def test_mean_or_maximum_is_contradicted_only_where_neither_fits() -> None:
    lookup = Known({"a@0:b@0": 0.5, "a@1:b@1": 0.9})
    for value, outcome in ((0.7, AGREES), (0.9, AGREES), (0.3, CONTRADICTS)):
        (found,) = evaluate(made("a@0-1:b@=", "mean or most", "equals", value - 0.005, value + 0.005), lookup, DEPTHS)
        assert found.outcome == outcome


def test_the_layer_of_the_largest_value_is_found_and_left_open_where_too_little_is_known() -> None:
    lookup = Known({"a@0:b@0": 0.5, "a@1:b@1": 0.9, "a@2:b@2": 0.7})
    (found,) = evaluate(made("a@0-2:b@=", "layer of most", "equals", 1, 1), lookup, DEPTHS)
    assert found.outcome == AGREES
    assert evaluate(made("a@*:b@=", "layer of most", "equals", 2, 2), Known({"a@0:b@0": 0.5}), DEPTHS) == []


def test_an_effect_divides_by_the_pooled_population_spread() -> None:
    lookup = Known({"a@0:b@0": 0.8, "a@1:b@1": 1.0, "a@2:b@2": 0.1, "a@3:b@3": 0.3})
    (found,) = evaluate(made("a@0-1:b@= - a@2-3:b@=", "effect", "equals", 6.9, 7.1), lookup, DEPTHS)
    assert (found.outcome, round(found.bound.known.middle, 9)) == (AGREES, 7.0)


def test_a_range_of_values_must_hold_every_mean() -> None:
    outside = made("a@*", "", "range", 0.0, 1.0)
    found = ranges(replace(outside, metric="gamma"), _Means(), DEPTHS)
    assert [one.outcome for one in found] == [AGREES, CONTRADICTS]


class _Means(Known):
    def __init__(self) -> None:
        super().__init__({"a@0": 0.5, "a@1": 2.0})

    def bounds(self, metric: str, cell: Cell) -> list[Bound]:
        return super().bounds(metric, cell) if metric == "mean" else []

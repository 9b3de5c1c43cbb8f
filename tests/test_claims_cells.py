"""The small language that says which vectors a published number is about."""

from __future__ import annotations

import pytest

from lnsim.errors import StudyError
from studies.claims.cells import Cell, Vector, cells_of, models_of

DEPTHS = {"a": 4, "b": 3, "c": 3}


def layers(selection: str) -> list[tuple[int, int | None]]:
    return [(cell.a.layer, cell.b.layer if cell.b else None) for cell in cells_of(selection, ["r"], DEPTHS)]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("a@10", [(10, None)]),
        ("a@10:b@10", [(10, 10)]),
        ("a@0:a@1,3", [(0, 1), (0, 3)]),
        ("a@0-2:b@=", [(0, 0), (1, 1), (2, 2)]),
        ("a@0-1:b@!=", [(0, 1), (1, 0)]),
        ("a@0-1:b@0-1", [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("a@*:b@=", [(0, 0), (1, 1), (2, 2)]),
        ("a@*", [(0, None), (1, None), (2, None), (3, None)]),
        ("within(a)@1,2,3", [(1, 2), (1, 3), (2, 3)]),
    ],
)
def test_a_selection_gives_its_layers(selection: str, expected: list[tuple[int, int | None]]) -> None:
    assert layers(selection) == expected


def test_pairs_and_cross_name_each_pair_of_models_once() -> None:
    pairs = cells_of("pairs(a,b,c)@1", ["r"], DEPTHS)
    assert [(cell.a.model, cell.b.model) for cell in pairs if cell.b] == [("a", "b"), ("a", "c"), ("b", "c")]
    cross = cells_of("cross(a|b,c)@1,2", ["r"], DEPTHS)
    assert [(cell.b.model, cell.b.layer) for cell in cross if cell.b] == [("b", 1), ("b", 2), ("c", 1), ("c", 2)]


def test_every_role_repeats_the_cells_and_a_cell_comes_once() -> None:
    found = cells_of("a@1;a@1;a@2", ["r", "s"], DEPTHS)
    assert found == [Cell(role, Vector("a", layer)) for role in "rs" for layer in (1, 2)]


def test_a_layer_of_a_model_is_never_set_beside_itself() -> None:
    assert layers("a@1:a@1,2") == [(1, 2)]


def test_models_come_in_their_order_without_the_words_of_the_language() -> None:
    assert models_of("pairs(a,b)@10;cross(a|c)@5") == ("a", "b", "c")
    assert models_of("one@0-46:two@!=") == ("one", "two")


@pytest.mark.parametrize("selection", ["a", "a@x", "a@1:b@2:c@3", "A@1", "pairs(a)"])
def test_what_cannot_be_read_is_refused_with_an_example(selection: str) -> None:
    with pytest.raises(StudyError, match="expected vectors written like a@10, a@0-46:b@= or pairs"):
        cells_of(selection, ["r"], DEPTHS)


def test_all_layers_of_a_model_of_unknown_depth_are_refused() -> None:
    with pytest.raises(StudyError, match="needs the number of layers of 'z'"):
        cells_of("z@*:a@=", ["r"], DEPTHS)


def test_layers_are_named_as_prose_names_them() -> None:
    assert Cell("r", Vector("a", 1)).layers == "layer 1"
    assert Cell("r", Vector("a", 1), Vector("b", 1)).layers == "layer 1"
    assert Cell("r", Vector("a", 1), Vector("b", 2)).layers == "layers 1 and 2"

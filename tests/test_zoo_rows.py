"""The zoo's matrix rows: one file a model, and what the two exact tests say of every kind and of every two roots."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import lnsim
from lnsim.measure.evidence import combined, token_rows, value_blocks, value_rows
from studies.zoo.plan import full_zoo
from studies.zoo.recipes import Recipe

FOLDER = Path(__file__).resolve().parents[1] / "data" / "rows" / "zoo"
RECIPES = {recipe.name: recipe for recipe in full_zoo()}
CHILDREN = [recipe for recipe in RECIPES.values() if recipe.kind != "root"]
ROOTS = [recipe.name for recipe in RECIPES.values() if recipe.kind == "root"]


@cache
def rows(name: str) -> tuple[list[object], np.ndarray]:
    """Value blocks and token rows of a model."""
    found = lnsim.load(name, evidence=True)
    assert found.rows is not None
    assert found.rows.missing == ()
    assert found.rows.tokens is not None
    return value_blocks(found), found.rows.tokens[1]


def both(a: str, b: str) -> tuple[float, float]:
    (values_a, tokens_a), (values_b, tokens_b) = rows(a), rows(b)
    return value_rows(values_a, values_b).pvalue, token_rows(tokens_a, tokens_b).pvalue


def test_every_model_has_its_rows_and_together_they_stay_small() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(RECIPES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 8_000_000


@pytest.mark.parametrize("recipe", CHILDREN, ids=lambda recipe: recipe.name)
def test_every_child_but_a_distilled_one_is_tied_to_its_parent_by_one_of_the_two(recipe: Recipe) -> None:
    for parent in recipe.parents:
        found = min(both(recipe.name, parent))
        assert found > 0.001 if recipe.kind == "distilled" else found <= 1e-6


def test_of_the_pairs_of_roots_at_most_one_in_a_hundred_is_called_at_001() -> None:
    found = np.array([combined(*both(a, b)) for a, b in combinations(ROOTS, 2)])
    assert len(found) == 496
    assert (found <= 0.01).sum() <= 4
    assert (found <= 0.001).sum() == 0

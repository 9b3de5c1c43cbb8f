"""Sketches: what they see and what they cannot, on models of known lineage."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from made_vectors import drawn, made, made_models

import lnsim
from lnsim.atlas.sketch import lets_in, similarity, sketch
from studies.zoo.plan import full_zoo

ROOT = Path(__file__).resolve().parents[1]
UNSEEN = ("distilled", "permuted", "folded")
RECIPES = {recipe.name: recipe for recipe in full_zoo()}
DERIVED = [recipe for recipe in RECIPES.values() if recipe.kind != "root"]


@cache
def sketches() -> dict[str, dict[str, np.ndarray]]:
    return {name: sketch(lnsim.load(ROOT / "data" / "vectors" / "zoo" / f"{name}.safetensors")) for name in RECIPES}


def lineage(name: str) -> str:
    """The root that a model came from."""
    while RECIPES[name].parents and RECIPES[name].kind != "distilled":
        name = RECIPES[name].parents[0]
    return name


def nearest(name: str, without_final: bool = False) -> str:
    def seen(one: str) -> dict[str, np.ndarray]:
        return {role: values for role, values in sketches()[one].items() if not (without_final and role == "final")}

    return max((other for other in sketches() if other != name), key=lambda other: similarity(seen(name), seen(other)))


def test_the_nearest_of_every_derived_model_of_a_visible_kind_is_of_its_lineage() -> None:
    visible = [recipe.name for recipe in DERIVED if recipe.kind not in UNSEEN]
    assert len(visible) > 40
    assert {name for name in visible if lineage(nearest(name)) != lineage(name)} == set()


@pytest.mark.parametrize("kind", ["distilled", "permuted"])
def test_distilled_and_permuted_models_are_like_strangers_to_their_parents(kind: str) -> None:
    pairs = [(recipe.name, recipe.parents[0]) for recipe in DERIVED if recipe.kind == kind]
    found = [similarity(sketches()[a], sketches()[b]) for a, b in pairs]
    assert len(found) > 2
    assert max(found) < lets_in(1, 192)


def test_a_sketch_is_of_length_1_and_a_model_of_another_depth_has_the_same() -> None:
    models = made_models()
    root, deep = sketch(models["root"]), sketch(models["deep"])
    assert all(np.linalg.norm(values) == pytest.approx(1, abs=1e-6) for values in root.values())
    assert similarity(root, deep) > 0.95
    assert abs(similarity(root, sketch(models["hidden"]))) < lets_in(1, 48)


def test_it_is_the_correlation_of_the_mean_patterns() -> None:
    a, b = drawn(0), drawn(1)
    standard = [(one["pre_mlp"].scale - one["pre_mlp"].scale.mean(1, keepdims=True)) for one in (a, b)]
    means = [(rows / rows.std(1, keepdims=True)).mean(0) for rows in standard]
    assert similarity(sketch(a), sketch(b)) == pytest.approx(np.corrcoef(*means)[0, 1], abs=1e-5)


def test_constant_layers_and_those_with_holes_take_no_part() -> None:
    rows = np.random.default_rng(0).normal(1, 0.1, (3, 32))
    more = np.vstack([rows, np.ones((1, 32)), np.full((1, 32), np.nan)])
    assert similarity(sketch(made(rows)), sketch(made(more))) == pytest.approx(1, abs=1e-6)
    assert sketch(made(np.ones((2, 32)))) == {}
    assert np.isnan(similarity(sketch(made(np.ones((2, 32)))), sketch(made(rows))))


@pytest.mark.parametrize("role", ["q_norm", "other/x.norm", "mtp/pre_mlp"])
def test_norms_that_take_no_part_in_a_verdict_are_left_out(role: str) -> None:
    assert sketch(drawn(0, role=role)) == {}


def test_of_two_towers_the_main_one_counts_and_of_a_tower_alone_its_own() -> None:
    main, other = drawn(0), drawn(1, role="vision/pre_mlp")
    both = replace(main, roles={**other.roles, **main.roles})
    assert similarity(sketch(both), sketch(main)) == pytest.approx(1, abs=1e-6)
    assert list(sketch(other)) == ["pre_mlp"]


def test_what_is_let_in_falls_with_the_width_and_rises_with_the_comparisons() -> None:
    assert lets_in(1, 4097) == pytest.approx(4 / 64)
    assert lets_in(10_000, 4097) == pytest.approx(4.292 / 64, rel=1e-3)
    assert lets_in(50_000_000, 4097) == pytest.approx(5.954 / 64, rel=1e-3)

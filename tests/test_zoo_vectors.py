"""The stored vectors of data/vectors/zoo and roots: one file a recipe, models that learnt, bits as their kind says."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import lnsim
from lnsim.paths import stored_models
from studies.zoo.plan import full_zoo
from studies.zoo.recipes import Recipe
from studies.zoo.records import TrainingRecord
from studies.zoo.texts import SOURCES

FOLDER = Path(__file__).resolve().parents[1] / "data" / "vectors" / "zoo"
ROOTS = {path.stem: path for path in sorted((FOLDER.parent / "roots").glob("*.safetensors"))}
SIZES = {"learned": 50, "rotary": 50, "fixed": 24, "one-seed": 12}  # of the groups of small roots
RECIPES = {recipe.name: recipe for recipe in full_zoo()}
Array = npt.NDArray[Any]


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    chosen = [recipe for recipe in RECIPES.values() if recipe.kind in kinds]
    return pytest.mark.parametrize("recipe", chosen, ids=lambda recipe: recipe.name)


@cache
def extract(name: str) -> lnsim.NormVectors:
    return lnsim.load(FOLDER / f"{name}.safetensors")


def stacks(name: str, kind: str = "scale", blocks_only: bool = False) -> Array:
    """Each γ (or, as `kind`, each bias) of a model, (n_vectors, hidden_size); that of the final norm comes last."""
    roles = dict(sorted(extract(name).roles.items(), key=lambda item: item[0] == "final"))
    found = [getattr(one, kind) for role, one in roles.items() if role != "final" or not blocks_only]
    return np.concatenate([rows for rows in found if rows is not None] or [np.zeros((0, 0), np.float32)])


def everything(name: str) -> Array:
    biases = stacks(name, "bias")
    return np.concatenate([stacks(name), biases]) if biases.size else stacks(name)


def test_every_recipe_has_an_extract_no_other_file_lies_there_and_together_they_stay_small() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{name}.safetensors" for name in RECIPES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3_000_000


def test_the_record_in_the_file_is_the_recipe_of_a_model_that_learnt() -> None:
    prints: dict[str, str] = {}
    hashes = {name: source.sha256 for name, source in SOURCES.items()}
    for name, recipe in RECIPES.items():
        kept, source = extract(name).provenance, SOURCES[recipe.text]
        expected = {
            key: str(getattr(recipe, key)) for key in ("architecture", "kind", "text", "seed", "steps", "gamma")
        }
        prints[name] = recipe.fingerprint(prints, hashes)
        expected |= {"parents": " ".join(recipe.parents), "fingerprint": prints[name]}
        expected |= {"text_source": f"{source.requirement} sha256:{source.sha256}"}
        assert {key: kept[f"zoo_{key}"] for key in expected} == expected, name
        assert float(kept["zoo_loss"]) <= float(kept["zoo_unigram_loss"]) - 0.5, name  # nats a byte


def test_every_block_has_its_two_norms_and_a_root_has_six_blocks() -> None:
    factor = {"expanded": 2.0, "dropped": 0.5}
    for name, recipe in RECIPES.items():
        n_layers = int(recipe.size.layers * factor.get(recipe.kind, 1))
        assert stacks(name).shape == (2 * n_layers + 1, recipe.size.hidden), name
        assert np.isfinite(everything(name)).all(), name


@of_kind("frozen", "rounded")
def test_frozen_norms_are_the_parents_bit_by_bit_and_rounded_ones_in_bf16(recipe: Recipe) -> None:
    dtype = ml_dtypes.bfloat16 if recipe.kind == "rounded" else np.float32
    expected = everything(recipe.parents[0]).astype(dtype).astype(np.float32)
    assert everything(recipe.name).tobytes() == expected.tobytes()
    dtypes = {one.dtype for one in extract(recipe.name).tensors.values()}
    assert dtypes == {"BF16" if recipe.kind == "rounded" else "F32"}


@of_kind("permuted")
def test_permuted_norms_are_the_parents_in_one_other_order(recipe: Recipe) -> None:
    mine, theirs = everything(recipe.name), everything(recipe.parents[0])
    assert not (mine == theirs).all()
    assert (mine[:, np.lexsort(mine)] == theirs[:, np.lexsort(theirs)]).all()


@of_kind("folded")
def test_folded_norms_of_the_blocks_are_ones_with_biases_of_zero(recipe: Recipe) -> None:
    assert (stacks(recipe.name, blocks_only=True) == 1).all()
    biases = stacks(recipe.name, "bias", blocks_only=True)
    assert len(biases) == (0 if recipe.architecture == "llama" else 2 * recipe.size.layers)
    assert (biases == 0).all()


@of_kind("rescaled")
def test_rescaled_norms_of_the_blocks_differ_by_positive_factors(recipe: Recipe) -> None:
    mine, theirs = stacks(recipe.name), stacks(recipe.parents[0])
    logs = np.log(mine[:-1] / theirs[:-1])
    assert np.isfinite(logs).all()
    assert logs.mean() == pytest.approx(0, abs=0.06)
    assert logs.std() == pytest.approx(0.5, abs=0.05)
    assert mine[-1].tobytes() == theirs[-1].tobytes()


@of_kind("merged")
def test_merged_norms_are_the_mean_of_both_parents(recipe: Recipe) -> None:
    mine, one, other = map(everything, (recipe.name, *recipe.parents))
    assert mine == pytest.approx((one + other) / 2, abs=1e-6)


@of_kind("light")
def test_a_light_fine_tune_stays_near_its_parent_and_is_not_it(recipe: Recipe) -> None:
    assert 0 < np.abs(stacks(recipe.name) - stacks(recipe.parents[0])).max() < 0.05


def test_no_two_models_from_random_weights_have_the_same_norms() -> None:
    roots = [name for name, recipe in RECIPES.items() if recipe.kind == "root"]
    assert len({stacks(name).tobytes() for name in roots}) == len(roots)


def test_the_small_roots_are_whole_groups_and_every_one_learnt_from_a_seed_of_its_own_but_for_one_group() -> None:
    assert Counter(name.rpartition("-")[0] for name in ROOTS) == SIZES
    assert set(ROOTS) <= set(stored_models())
    assert sum(path.stat().st_size for path in ROOTS.values()) < 1_500_000
    seeds: dict[str, set[int]] = {}
    for name, path in ROOTS.items():
        vectors = lnsim.load(path)
        n_layers = {role: len(one.layers) for role, one in vectors.roles.items()}
        assert n_layers == {"pre_attention": 2, "pre_mlp": 2, "final": 1}
        assert all(np.ptp(one.scale, axis=1).min() > 0 for one in vectors.roles.values())
        record = TrainingRecord.of(vectors)
        assert record.loss < record.unigram_loss - 0.5, name
        seeds.setdefault(name.rpartition("-")[0], set()).add(record.seed)
    assert {group: len(some) for group, some in seeds.items()} == SIZES | {"one-seed": 1}


def test_no_file_names_a_machine() -> None:
    for path in (*FOLDER.iterdir(), *ROOTS.values()):
        data = path.read_bytes()
        header = data[8 : 8 + int.from_bytes(data[:8], "little")]
        assert not re.search(rb'/(tmp|work|root|home|Users)/|[A-Z]:\\\\|"/', header), path.name

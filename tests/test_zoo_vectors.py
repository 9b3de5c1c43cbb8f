"""The stored vectors of data/vectors/zoo: one extract a recipe, models that learnt, and bits as their kind says."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from safetensors import safe_open

from studies.zoo.plan import full_zoo
from studies.zoo.recipes import Recipe
from studies.zoo.texts import SOURCES

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "data" / "vectors" / "zoo"
RECIPES = {recipe.name: recipe for recipe in full_zoo()}
Array = npt.NDArray[Any]


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    chosen = [recipe for recipe in RECIPES.values() if recipe.kind in kinds]
    return pytest.mark.parametrize("recipe", chosen, ids=lambda recipe: recipe.name)


@cache
def metadata(name: str) -> dict[str, str]:
    with safe_open(FOLDER / f"{name}.safetensors", framework="np") as file:
        return dict(file.metadata())


@cache
def tensors(name: str) -> dict[str, Array]:
    """Every stored tensor; BF16, which the package's NumPy side does not know, from its bytes."""
    data = (FOLDER / f"{name}.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    kinds = {"F32": np.dtype(np.float32), "BF16": np.dtype(ml_dtypes.bfloat16)}
    found = {}
    for key, entry in json.loads(data[8:start]).items():
        if key != "__metadata__":
            first, last = entry["data_offsets"]
            flat = np.frombuffer(data[start + first : start + last], kinds[entry["dtype"]])
            found[key] = flat.reshape(entry["shape"])
    return found


def weights(name: str, blocks_only: bool = False) -> dict[str, Array]:
    """γ of every norm by its tensor name."""
    found = {key: value for key, value in tensors(name).items() if key.endswith("weight")}
    return {key: value for key, value in found.items() if re.search(r"\.\d+\.", key)} if blocks_only else found


def test_every_recipe_has_an_extract_no_other_file_lies_there_and_together_they_stay_small() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{name}.safetensors" for name in RECIPES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 3_000_000


def test_the_record_in_the_file_is_the_recipe_of_a_model_that_learnt_and_names_no_machine() -> None:
    for name, recipe in RECIPES.items():
        kept, source = metadata(name), SOURCES[recipe.text]
        expected = {"architecture": recipe.architecture, "kind": recipe.kind, "parents": " ".join(recipe.parents)}
        expected |= {"text": recipe.text, "seed": str(recipe.seed), "steps": str(recipe.steps), "gamma": recipe.gamma}
        expected |= {"text_source": f"{source.requirement} sha256:{source.sha256}"}
        assert {key: kept[f"zoo_{key}"] for key in expected} == expected, name
        assert float(kept["zoo_loss"]) <= float(kept["zoo_unigram_loss"]) - 0.5, name  # nats a byte
        assert not re.search(r"/(tmp|work|root|home|Users)/|[A-Z]:\\\\", json.dumps(kept)), name
        assert all(not value.startswith("/") for value in kept.values()), name


def test_the_fingerprints_in_the_files_are_those_of_the_plan() -> None:
    prints: dict[str, str] = {}
    hashes = {name: source.sha256 for name, source in SOURCES.items()}
    for name, recipe in RECIPES.items():
        prints[name] = recipe.fingerprint(prints, hashes)
    assert {name: metadata(name)["zoo_fingerprint"] for name in RECIPES} == prints


def test_every_block_has_its_two_norms_and_a_root_has_six_blocks() -> None:
    factor = {"expanded": 2.0, "dropped": 0.5}
    for name, recipe in RECIPES.items():
        n_layers = int(recipe.size.layers * factor.get(recipe.kind, 1))
        assert len(weights(name, blocks_only=True)) == 2 * n_layers, name
        assert {value.shape for value in weights(name).values()} == {(recipe.size.hidden,)}, name
        assert all(np.isfinite(value.astype(np.float64)).all() for value in tensors(name).values()), name


@of_kind("frozen", "rounded")
def test_frozen_norms_are_the_parents_bit_by_bit_and_rounded_ones_in_bf16(recipe: Recipe) -> None:
    mine, theirs = tensors(recipe.name), tensors(recipe.parents[0])
    dtype = ml_dtypes.bfloat16 if recipe.kind == "rounded" else np.float32
    assert mine.keys() == theirs.keys()
    assert all(mine[key].tobytes() == theirs[key].astype(dtype).tobytes() for key in mine)


@of_kind("permuted")
def test_permuted_norms_are_the_parents_in_one_other_order(recipe: Recipe) -> None:
    mine, theirs = tensors(recipe.name), tensors(recipe.parents[0])
    assert all((np.sort(mine[key]) == np.sort(theirs[key])).all() for key in mine)
    columns = [np.stack([stack[key] for key in sorted(mine)]) for stack in (mine, theirs)]
    assert not (columns[0] == columns[1]).all()
    same = [stack[:, np.lexsort(stack)] for stack in columns]
    assert (same[0] == same[1]).all()


@of_kind("folded")
def test_folded_norms_of_the_blocks_are_ones_with_biases_of_zero(recipe: Recipe) -> None:
    assert all((value == 1).all() for value in weights(recipe.name, blocks_only=True).values())
    biases = [v for key, v in tensors(recipe.name).items() if key.endswith("bias") and re.search(r"\.\d+\.", key)]
    assert len(biases) == (0 if recipe.architecture == "llama" else 2 * recipe.size.layers)
    assert all((value == 0).all() for value in biases)


@of_kind("rescaled")
def test_rescaled_norms_of_the_blocks_differ_by_positive_factors(recipe: Recipe) -> None:
    blocks, theirs = weights(recipe.name, blocks_only=True), weights(recipe.parents[0])
    logs = np.log(np.stack([blocks[key] / theirs[key] for key in blocks]))
    assert np.isfinite(logs).all()
    assert logs.mean() == pytest.approx(0, abs=0.06)
    assert logs.std() == pytest.approx(0.5, abs=0.05)
    (final,) = set(theirs) - set(blocks)
    assert weights(recipe.name)[final].tobytes() == theirs[final].tobytes()


@of_kind("merged")
def test_merged_norms_are_the_mean_of_both_parents(recipe: Recipe) -> None:
    mine, one, other = (tensors(name) for name in (recipe.name, *recipe.parents))
    assert all(mine[key] == pytest.approx((one[key] + other[key]) / 2, abs=1e-6) for key in mine)


@of_kind("light")
def test_a_light_fine_tune_stays_near_its_parent_and_is_not_it(recipe: Recipe) -> None:
    mine, theirs = weights(recipe.name), weights(recipe.parents[0])
    far = max(float(np.abs(mine[key] - theirs[key]).max()) for key in mine)
    assert 0 < far < 0.05


def test_no_two_models_from_random_weights_have_the_same_norms() -> None:
    roots = [name for name, recipe in RECIPES.items() if recipe.kind == "root"]
    assert len({tuple(value.tobytes() for value in weights(name).values()) for name in roots}) == len(roots)

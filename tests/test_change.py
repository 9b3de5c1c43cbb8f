"""What changed between two checkpoints: in bits, in units in the last place, in pattern; layers matched by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure import change

ROLES = ["pre_attention", "pre_mlp"]
LABELS = {"a": "A", "b": "B"}


def vectors(folder: Path, tensors: dict[str, Any]) -> lnsim.NormVectors:
    return lnsim.load(write_files(folder, checkpoint_files(tensors, LLAMA_CONFIG)))


def test_one_changed_bit_is_one_changed_value(tmp_path: Path) -> None:
    tensors = llama_tensors()
    before = vectors(tmp_path / "a", tensors)
    name = "model.layers.1.input_layernorm.weight"
    bits = tensors[name].view(np.uint16).copy()
    bits[5] ^= 1
    after = vectors(tmp_path / "b", tensors | {name: bits.view(ml_dtypes.bfloat16)})
    found = change.pair_changes(before, after, ROLES).set_index(["role", "layer"])
    assert found.changed_ratio.sum() == found.changed_ratio["pre_attention", 1] == 1 / 16
    assert (found.mean_abs_diff == 0).sum() == 5


def test_a_copy_has_no_change_and_r_of_exactly_one(tmp_path: Path) -> None:
    one = vectors(tmp_path / "a", llama_tensors())
    found = change.pair_changes(one, one, ROLES)
    assert (found.changed_ratio == 0).all()
    assert (found.max_abs_diff == 0).all()
    assert (found.ulp_median == 0).all()
    assert found.pearson.to_numpy() == pytest.approx(1, abs=1e-15)


def test_layers_are_matched_by_number_and_the_odd_ones_are_named(tmp_path: Path) -> None:
    whole = llama_tensors()
    partial = {name: array for name, array in whole.items() if "layers.1.input" not in name}
    a, b = vectors(tmp_path / "a", whole), vectors(tmp_path / "b", partial)
    found = change.pair_changes(a, b, ROLES)
    assert found[found.role == "pre_attention"].layer.tolist() == [0, 2]
    assert (found.changed_ratio == 0).all()
    assert change.unmatched_layers(a, b, ROLES) == {"pre_attention": [1]}


def test_bits_of_different_dtypes_are_not_compared(tmp_path: Path) -> None:
    a = vectors(tmp_path / "a", llama_tensors(dtype=np.float32))
    b = vectors(tmp_path / "b", llama_tensors(dtype=ml_dtypes.bfloat16))
    found = change.pair_changes(a, b, ROLES)
    assert found.changed_ratio.isna().all()
    assert found.ulp_median.isna().all()
    assert (found.pearson > 0.99).all()


def test_the_spacing_is_that_of_the_stored_dtype(tmp_path: Path) -> None:
    tensors = llama_tensors() | {
        "model.layers.0.input_layernorm.weight": np.full(16, 0.75, ml_dtypes.bfloat16),
        "model.layers.1.input_layernorm.weight": np.full(16, 1.5, ml_dtypes.bfloat16),
    }
    one = vectors(tmp_path / "a", tensors)
    found = change.pair_changes(one, one, ROLES)
    assert found.ulp[:2].tolist() == [2.0**-8, 2.0**-7]


def test_tables_carry_the_pair_and_the_map_statistics_its_diagonal(tmp_path: Path) -> None:
    models = {"a": vectors(tmp_path / "a", llama_tensors()), "b": vectors(tmp_path / "b", llama_tensors(seed=1))}
    frame = change.changes([["a", "b"]], models, ROLES, LABELS, related=False)
    assert set(frame.pair) == {"A × B"}
    summary = change.summary(change.joined(frame, change.changes([], models, ROLES, LABELS, related=True)))
    assert summary.layers.tolist() == [3, 3]
    statistics = change.map_statistics([["a", "b"]], models, ROLES, LABELS)
    r = lnsim.pairwise(models["a"]["pre_mlp"].scale, models["b"]["pre_mlp"].scale, "pearson")
    row = statistics[statistics.role == "pre_mlp"].iloc[0]
    assert row.diagonal_max == np.diag(r).max()
    assert row.other_max == r[~np.eye(3, dtype=bool)].max()


def test_no_pair_at_all_and_no_common_layer_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ComparisonError, match="names no pair at all"):
        change.joined(change.changes([], {}, ROLES, LABELS, related=True))
    whole = llama_tensors()
    a = vectors(
        tmp_path / "a", {n: t for n, t in whole.items() if "layers.0.input" not in n and "layers.2.input" not in n}
    )
    b = vectors(tmp_path / "b", {n: t for n, t in whole.items() if "layers.1.input" not in n})
    with pytest.raises(ComparisonError, match=r"one has layers \[1\], the other \[0, 2\]"):
        change.pair_changes(a, b, ROLES)


def test_members_lists_each_model_once() -> None:
    assert change.members([["a", "b"]], [["b", "c"]], []) == ["a", "b", "c"]

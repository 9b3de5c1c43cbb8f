"""From names and bytes to vectors by role: gaps stay gaps, odd layers are named, nothing is guessed."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.inspection import inspect
from lnsim.errors import RoleError

GLM = LLAMA_CONFIG | {"model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "num_nextn_predict_layers": 1}


def folder(tmp_path: Path, tensors: dict[str, Any], config: dict[str, Any] | None = LLAMA_CONFIG) -> Path:
    return write_files(tmp_path / "m", checkpoint_files(tensors, config))


def test_every_role_of_the_main_tower_is_read_by_default_in_the_order_of_the_layers_numbers(tmp_path: Path) -> None:
    tensors = dict(sorted(llama_tensors(12).items()))
    found = lnsim.extract(folder(tmp_path, tensors, LLAMA_CONFIG | {"num_hidden_layers": 12}))
    assert list(found.roles) == ["pre_attention", "pre_mlp", "final"]
    assert (found.norm_type, found.hidden_size, found.n_vectors) == ("rmsnorm", 16, 25)
    assert found["final"].layers.tolist() == [-1]
    role = found["post_attention_layernorm"]
    assert role.layers.tolist() == list(range(12))
    assert role.names[10] == "model.layers.10.post_attention_layernorm.weight"
    assert (role.scale.dtype, role.stored.dtype) == (np.float32, ml_dtypes.bfloat16)
    assert role.scale.tolist() == [tensors[name].astype(np.float32).tolist() for name in role.names]


def test_a_missing_layer_is_a_named_gap_and_never_a_shift(tmp_path: Path) -> None:
    tensors = llama_tensors(4)
    del tensors["model.layers.1.input_layernorm.weight"]
    found = lnsim.extract(folder(tmp_path, tensors, LLAMA_CONFIG | {"num_hidden_layers": 4}))
    assert found["pre_attention"].layers.tolist() == [0, 2, 3]
    assert dict(found.missing_layers) == {"pre_attention": (1,)}
    expected = tensors["model.layers.2.input_layernorm.weight"].astype(np.float32)
    assert found["pre_attention"][2].tolist() == expected.tolist()
    with pytest.raises(RoleError, match="Looking up layer 1 of role 'pre_attention': it is not among the 3 layers"):
        found["pre_attention"].row(1)


def test_query_norms_that_every_layer_lost_are_named_everywhere(tmp_path: Path) -> None:
    path = folder(tmp_path, llama_tensors(), LLAMA_CONFIG | {"model_type": "qwen3"})
    lost = {"q_norm": (0, 1, 2), "k_norm": (0, 1, 2)}
    assert dict(lnsim.extract(path).missing_layers) == lost
    assert dict(inspect(path).missing_layers) == lost
    kept = extract_and_keep(path, out=tmp_path / "out")
    assert dict(lnsim.load(str(kept.path)).missing_layers) == lost


def test_an_extract_of_a_hybrid_whose_config_is_silent_is_read_like_the_checkpoint(tmp_path: Path) -> None:
    tensors = {name.replace("post_attention", "pre_ff"): array for name, array in llama_tensors().items()}
    tensors["model.final_layernorm.weight"] = tensors.pop("model.norm.weight")
    for layer in (0, 2):
        stem = f"model.layers.{layer}"
        tensors[f"{stem}.mamba.in_proj.weight"] = tensors.pop(f"{stem}.self_attn.q_proj.weight")
    kept = extract_and_keep(folder(tmp_path, tensors, LLAMA_CONFIG | {"model_type": "bamba"}), out=tmp_path / "out")
    again = lnsim.load(str(kept.path))
    expected = {"pre_attention": [1], "pre_mlp": [0, 1, 2], "pre_mixer": [0, 2], "final": [-1]}
    assert {role: again[role].layers.tolist() for role in again.roles} == expected
    assert again.missing_layers == kept.missing_layers == {}


def test_the_hidden_size_is_the_streams_where_a_shared_attention_reads_it_twice(tmp_path: Path) -> None:
    shapes = {f"model.layers.{layer}.input_layernorm": 16 for layer in range(2)}
    shapes |= {"model.layers.2.mamba_decoder.input_layernorm": 16, "model.final_layernorm": 16}
    shapes |= {"model.layers.2.shared_transformer.input_layernorm": 32}
    tensors = {f"{name}.weight": np.ones(width, ml_dtypes.bfloat16) for name, width in shapes.items()}
    config = {"model_type": "zamba2", "num_hidden_layers": 3, "layers_block_type": ["mamba", "mamba", "hybrid"]}
    found = lnsim.extract(folder(tmp_path, tensors, config))
    expected = {"pre_attention": [2], "pre_mixer": [0, 1, 2], "final": [-1]}
    assert {role: found[role].layers.tolist() for role in found.roles} == expected
    assert found.hidden_size == 16
    assert found.missing_layers == {}


def test_an_mtp_block_is_its_own_tower_with_its_stored_number(tmp_path: Path) -> None:
    tensors = llama_tensors(4)
    tensors |= {f"model.layers.3.{name}.weight": np.ones(16, ml_dtypes.bfloat16)
                for name in ("enorm", "hnorm", "shared_head.norm")}  # fmt: skip
    found = lnsim.extract(folder(tmp_path, tensors, GLM))
    assert found["pre_attention"].layers.tolist() == [0, 1, 2]
    assert found["mtp/pre_attention"].layers.tolist() == [3]
    assert found["mtp/pre_mlp"].layers.tolist() == [3]
    assert dict(found.missing_layers) == {}


def test_a_gamma_stored_minus_one_is_effective_in_scale_and_unchanged_in_stored(tmp_path: Path) -> None:
    tensors = llama_tensors()
    config = LLAMA_CONFIG | {"model_type": "gemma", "architectures": ["GemmaForCausalLM"]}
    found = lnsim.extract(folder(tmp_path, tensors, config))
    plain = lnsim.extract(tmp_path / "m", model_type="llama")
    assert (found["pre_mlp"].scale == plain["pre_mlp"].scale + 1).all()
    assert found["pre_mlp"].stored.tobytes() == plain["pre_mlp"].stored.tobytes()
    assert any("minus one" in note for note in found.notes)


def test_roles_can_be_narrowed_by_either_name_and_by_the_main_tower_if_they_are_there(tmp_path: Path) -> None:
    path = folder(tmp_path, llama_tensors())
    for asked in (["pre_mlp"], "post_attention_layernorm", "text/post_attention_layernorm"):
        assert list(lnsim.extract(path, asked)) == ["pre_mlp"]
    found = lnsim.extract(path, "text")
    assert list(found) == ["pre_attention", "pre_mlp", "final"]
    assert found["text/pre_mlp"] is found["pre_mlp"]
    assert (found.main_tower, found.towers, found["pre_mlp"].tower) == ("text", ("text",), "text")
    with pytest.raises(RoleError, match=r"Selecting role 'q_norm' of .*/m: it has no such norms\. It has: final, pre"):
        lnsim.extract(path, ["q_norm"])
    with pytest.raises(RoleError, match="m' has no norms of role 'k_norm'; it has pre_attention, pre_mlp, final"):
        lnsim.extract(path)["k_norm"]


def test_norms_without_a_role_are_read_on_demand_under_their_own_name(tmp_path: Path) -> None:
    tensors = llama_tensors() | {
        f"model.layers.{i}.self_attn.q_a_layernorm.weight": np.ones(4, np.float32) for i in (0, 2)
    }
    path = folder(tmp_path, tensors)
    assert not any(key.startswith("other") for key in lnsim.extract(path).roles)
    found = lnsim.extract(path, everything=True)["other/model.layers.*.self_attn.q_a_layernorm"]
    assert found.layers.tolist() == [0, 2]
    assert any("q_a_layernorm" in note for note in lnsim.extract(path).notes)


def test_norms_of_one_head_each_are_no_vector_of_a_layer(tmp_path: Path) -> None:
    tensors = llama_tensors()
    tensors |= {name.replace("weight", "bias"): array for name, array in tensors.items() if "norm" in name}
    for layer, head in itertools.product(range(3), range(2)):
        name = f"model.layers.{layer}.self_attn.q_layernorm.norms.{head}.weight"
        tensors[name] = np.full(8, head, ml_dtypes.bfloat16)
    config = {"model_type": "stablelm", "num_hidden_layers": 3, "qk_layernorm": True, "use_parallel_residual": False}
    path = folder(tmp_path, tensors, config)
    assert list(lnsim.extract(path).roles) == ["pre_attention", "pre_mlp", "final"]
    key = "other/model.layers.*.self_attn.q_layernorm.norms.1"
    assert lnsim.extract(path, everything=True)[key].scale.tolist() == [[1.0] * 8] * 3


def test_layers_of_different_dtypes_are_widened(tmp_path: Path) -> None:
    tensors = llama_tensors()
    wide = np.float32([1 + 2**-20] * 16)
    tensors["model.layers.1.input_layernorm.weight"] = wide
    found = lnsim.extract(folder(tmp_path, tensors))
    role = found["pre_attention"]
    assert (role.dtypes, role.stored.dtype) == (("BF16", "F32", "BF16"), np.float32)
    assert role[1].tobytes() == wide.tobytes()
    assert found["pre_mlp"].dtypes == ()


def test_the_arrays_cannot_be_changed(tmp_path: Path) -> None:
    found = lnsim.extract(folder(tmp_path, llama_tensors()))
    with pytest.raises(ValueError, match="read-only"):
        found["pre_attention"].stored[0, 0] = 1
    with pytest.raises(TypeError):
        found.roles["x"] = found["final"]  # type: ignore[index]

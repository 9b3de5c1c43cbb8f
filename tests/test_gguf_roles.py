"""Roles of GGUF names: what llama.cpp's own name map translates, held against the tables of the families."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import gguf
import ml_dtypes
import numpy as np
import pytest
from made_gguf import write_gguf
from safetensors_bytes import checkpoint_files, write_files

from lnsim.checkpoint.extract import extract
from lnsim.checkpoint.families.config import gguf_config
from lnsim.checkpoint.families.names import WORDS
from lnsim.checkpoint.families.table import FAMILIES
from lnsim.checkpoint.roles import RoleMap, map_roles

FIXTURES = Path(__file__).parent / "data" / "roles"
ARCHITECTURES = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}
# Several model types are one architecture of llama.cpp.
MORE = {
    "deepseek_v3": "deepseek2", "roberta": "bert", "xlm-roberta": "bert", "mistral": "llama", "mixtral": "llama",
    "olmo3": "olmo2", "mt5": "t5", "umt5": "t5", "gemma3_text": "gemma3", "codegen": "gptj", "phi": "phi2",
    "lfm2_moe": "lfm2moe", "qwen2": "qwen2", "gpt_bigcode": "starcoder",
}  # fmt: skip
# What the converter strips from names before it maps them.
PREFIXES = (
    "language_model.", "model.language_model.", "bert.", "roberta.", "nomic_bert.", "transformer.", "model.", "",
)  # fmt: skip
NOT_READ = ("arwkv7", "rwkv6", "rwkv6qwen2", "rwkv7", "wavtokenizer-dec")  # no tables of ours: an error, by name
KIND_OF = {"pre_mixer": "mixer", "pre_attention": "attention", "pre_mlp": "mlp"}
MARKS = {"mixer": "ssm_conv1d", "attention": "attn_k", "mlp": "ffn_up", "moe": "ffn_gate_inp"}


# The map of an architecture takes a tenth of a second to make.
names_of = functools.cache(lambda architecture: gguf.TensorNameMap(ARCHITECTURES[architecture], 64))


def architecture_of(model_type: str) -> str | None:
    by_type = {config: name for name, config in WORDS["gguf"]["architectures"].items()}
    same = model_type if model_type in ARCHITECTURES else None
    return MORE.get(model_type) or same or by_type.get(model_type)


def translated(tensor_names: gguf.TensorNameMap, name: str) -> str | None:
    """The GGUF name of a tensor, or None where the map knows none."""
    for prefix in PREFIXES:
        if name.startswith(prefix):
            for front in ("", "model."):
                found = tensor_names.get_name(front + name[len(prefix) :], try_suffixes=(".weight", ".bias"))
                if found:
                    return found if found.endswith((".weight", ".bias")) else f"{found}.{name.rpartition('.')[2]}"
    return None


def shapes_of(told: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every norm of a fixture by its full name."""
    found: dict[str, tuple[int, ...]] = {}
    for name, numbers, shape, role, *_ in told["norms"]:
        if role != "unused":
            for number in numbers or [None]:
                found[name if number is None else name.replace("*", str(number), 1)] = tuple(shape)
    return found


def roles_of(roles: RoleMap) -> dict[str, tuple[object, ...]]:
    return {
        one.name: (one.tower, one.layer, one.role, one.kind, one.norm_type, one.shared)
        for one in roles.tensors
        if one.role != "other"
    }


WITHOUT = (None, "clip", "olmo")  # projectors, and norms without weights
CASES = sorted(path.stem for path in FIXTURES.glob("*.json") if architecture_of(path.stem) not in WITHOUT)


# Where the checkpoint stores γ minus one, the converter adds the one (convert_hf_to_gguf.py); its own list, not ours.
ADDS_ONE = {"gemma", "gemma2", "gemma3", "gemma3_text", "nemotron", "qwen3_next", "qwen3_5", "qwen3_5_moe"}


def as_converted(model_type: str, name: str, stored: np.ndarray) -> np.ndarray:
    """What the converter writes of a norm: F32, with the one added where it adds it."""
    one = model_type in ADDS_ONE and name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")
    return (stored.astype(np.float64) + one).astype(np.float32)


@pytest.mark.parametrize("model_type", CASES)
def test_roles_and_gamma_of_a_gguf_are_those_of_its_checkpoint_to_the_bit_of_f32(
    model_type: str, tmp_path: Path
) -> None:
    told = json.loads((FIXTURES / f"{model_type}.json").read_text("utf-8"))
    architecture = str(architecture_of(model_type))
    rng = np.random.default_rng(0)
    stored = {name: rng.normal(0.1, 0.2, shape).astype(ml_dtypes.bfloat16) for name, shape in shapes_of(told).items()}
    source = extract(write_files(tmp_path / "m", checkpoint_files(stored, told["config"])), everything=True)
    known = map_roles({name: one.shape for name, one in stored.items()}, told["config"], where="x")
    of = {name: found for name in stored if (found := translated(names_of(architecture), name))}
    written = {found: as_converted(model_type, name, stored[name]) for name, found in of.items()}
    for one in known.tensors:  # what shows the kind of a layer, where kinds differ
        if one.name in of and one.role in KIND_OF:
            written[f"blk.{one.layer}.{MARKS[KIND_OF[one.role]]}.weight"] = np.zeros((8, 8), np.float32)
    blocks = max(known.n_layers.values())
    metadata = {"general.architecture": architecture, f"{architecture}.block_count": str(blocks)}
    read = map_roles({name: one.shape for name, one in written.items()}, gguf_config(metadata), where="x")
    assert {one.offset for one in read.tensors} == {0.0}  # the converter has added the one
    expected = {of[name]: meaning for name, meaning in roles_of(known).items() if name in of}
    assert roles_of(read) == expected
    assert len(expected) >= 0.5 * len(roles_of(known)), (model_type, [n for n in stored if n not in of])
    converted = extract(write_gguf(tmp_path / "m.gguf", written, architecture, blocks), everything=True)
    roles = [role for role in set(source.roles) & set(converted.roles) if not role.startswith("other")]
    for role in roles:
        assert converted.roles[role].layers.tolist() == source.roles[role].layers.tolist()
        assert converted.roles[role].scale.tobytes() == source.roles[role].scale.tobytes(), role
    assert sum(len(converted.roles[role].layers) for role in roles) >= 3


def test_every_architecture_of_the_package_is_read_or_named_here() -> None:
    known = {name for family in FAMILIES for name in (*family.model_types, *family.native)}
    types = {name: gguf_config({"general.architecture": name})["model_type"] for name in ARCHITECTURES}
    assert sorted(name for name, model_type in types.items() if model_type not in known) == list(NOT_READ)
    assert len(ARCHITECTURES) - len(NOT_READ) >= 100


@pytest.mark.parametrize("name", sorted(set(ARCHITECTURES) - set(NOT_READ) - {"olmo", "clip"}))
def test_every_norm_that_an_architecture_lists_has_a_line_in_its_table(name: str) -> None:
    """Also of those that no fixture is there of: the two norms of a block, and the last one."""
    tensors = [gguf.TENSOR_NAMES[one] for one in gguf.MODEL_TENSORS[ARCHITECTURES[name]]]
    norms = [one.replace("{bid}", "0") + ".weight" for one in tensors if "norm" in one and "nextn" not in one]
    model_type = gguf_config({"general.architecture": name})["model_type"]
    lines = {
        pattern.path.replace("*", "0") + ".weight"
        for family in FAMILIES
        if family.name.startswith("gguf_") and model_type in (*family.model_types, *family.native)
        for stack in family.stacks
        for pattern in stack.patterns
    }
    wanted = {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm", "attn_output_norm", "output_norm"}
    missing = {one for one in norms if one.split(".")[-2] in wanted} - lines
    assert missing <= {"output_norm.weight", "blk.0.ffn_norm.weight"}

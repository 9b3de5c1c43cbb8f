"""Gamma or gamma minus one: decided once for a checkpoint, from all evidence, and said with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from command_line import run
from safetensors_bytes import LLAMA_CONFIG, file_bytes, llama_tensors, write_files

import lnsim
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.vectors import Offset
from lnsim.errors import ComparisonError, RoleError
from lnsim.measure.compare import summarise_pair

BF16 = ml_dtypes.bfloat16
GEMMA = LLAMA_CONFIG | {"model_type": "gemma", "architectures": ["GemmaForCausalLM"]}
QWEN = {"model_type": "qwen3_next", "num_hidden_layers": 4, "hidden_size": 64, "full_attention_interval": 4}
TORCH, MLX = (16, 1, 4), (16, 4, 1)


def folder(path: Path, tensors: dict[str, Any], config: dict[str, Any] | None, written: str = "pt") -> Path:
    files = {"model.safetensors": file_bytes(tensors, {"format": written})}
    return write_files(path, files | ({} if config is None else {"config.json": json.dumps(config).encode()}))


def qwen(shift: float, conv: tuple[int, ...] | None, mean: float = 0.3) -> dict[str, npt.NDArray[Any]]:
    draw, found = np.random.default_rng(5), {}
    for layer in range(4):
        stem = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"{stem}{norm}.weight"] = (draw.normal(mean, 0.1, 64) + shift).astype(BF16)
        if layer < 3:
            found[stem + "linear_attn.norm.weight"] = draw.normal(1.0, 0.1, 8).astype(BF16)
        if layer < 3 and conv is not None:
            found[stem + "linear_attn.conv1d.weight"] = np.zeros(conv, BF16)
    return found | {"model.norm.weight": (draw.normal(0.2, 0.1, 64) + shift).astype(BF16)}


@pytest.mark.parametrize(("shift", "conv", "written", "reason"), [
    (0.0, None, "pt", "Gamma is stored minus one (as every qwen3_next does)"),
    (0.0, TORCH, "mlx", "Gamma is stored minus one (as every qwen3_next does; its convolutions have"),
    (1.0, MLX, "pt", "Gamma is stored with its 1 added already (a conversion by MLX: its convolutions have that"),
    (1.0, None, "mlx", "Gamma is stored with its 1 added already (a conversion by MLX, as the file's metadata"),
])  # fmt: skip
def test_a_conversion_by_mlx_gets_its_one_once(
    tmp_path: Path, shift: float, conv: tuple[int, ...] | None, written: str, reason: str
) -> None:
    found = lnsim.extract(folder(tmp_path / "m", qwen(shift, conv), QWEN, written))
    effective = qwen(1.0, None)["model.norm.weight"].astype(np.float32)
    assert np.abs(found["final"].scale - effective).max() < 2**-7  # half a step of BF16
    assert next(note for note in found.notes if note.startswith("Gamma is stored")).startswith(reason)


def test_an_extract_remembers_what_only_the_convolutions_told(tmp_path: Path) -> None:
    kept = extract_and_keep(folder(tmp_path / "m", qwen(1.0, MLX), QWEN, "mlx"), out=tmp_path / "out")
    again = lnsim.load(str(kept.path))
    assert again["final"].scale.tobytes() == kept["final"].scale.tobytes()
    assert again.offset == Offset(0.0, True, "a conversion by MLX: its convolutions have that layout")
    third = extract_and_keep(str(kept.path), out=tmp_path / "again")
    assert lnsim.load(str(third.path)).offset == again.offset


def test_metadata_and_values_that_disagree_are_an_error_and_not_a_number(tmp_path: Path) -> None:
    path = folder(tmp_path / "m", qwen(0.0, None, mean=0.0), QWEN, "mlx")
    said = r"the 1 should be added to gamma already, but \d+% of the stored values are neg"
    with pytest.raises(RoleError, match=said):
        lnsim.extract(path)


def test_other_norms_of_a_family_that_stores_it_minus_one_are_told_to_be_as_stored(tmp_path: Path) -> None:
    tensors = llama_tensors() | {"model.layers.0.new_norm.weight": np.ones(16, BF16)}
    found = lnsim.extract(folder(tmp_path / "m", tensors, GEMMA), everything=True)
    (key,) = [key for key in found if "new_norm" in key]
    assert found[key].scale.tolist() == [[1.0] * 16]
    assert found[key].offset == 0.0
    assert found["pre_mlp"].offset == 1.0
    assert any("Norms that no table knows are given as stored." in note for note in found.notes)


# A bare file does not tell


def bare(path: Path, tensors: dict[str, Any]) -> Path:
    return write_files(path, {"model.safetensors": file_bytes(tensors)}) / "model.safetensors"


def test_a_bare_copy_of_a_gemma_is_identical_to_it_in_every_measure(tmp_path: Path) -> None:
    whole, copy = folder(tmp_path / "gemma", llama_tensors(), GEMMA), bare(tmp_path / "bare", llama_tensors())
    for pair in ((whole, copy), (copy, whole)):
        code, out, err = run("compare", *map(str, pair), "--permutations", "99", "--json")
        found = json.loads(out)
        assert (code, err, found["verdict"]["key"]) == (0, "", "identical")
        assert {round(one["cosine_mean"], 12) for one in found["roles"].values()} == {1.0}
        assert {one["changed_ratio"] for one in found["roles"].values()} == {0.0}


def test_another_bare_file_beside_a_gemma_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    whole, other = folder(tmp_path / "gemma", llama_tensors(), GEMMA), bare(tmp_path / "bare", llama_tensors(seed=1))
    for pair in ((whole, other), (other, whole)):
        code, out, err = run("compare", *map(str, pair), "--permutations", "99")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "stores γ minus one, and of" in err
        assert "Put its config.json beside it, or name its family once with `lnsim extract" in err
    run("extract", str(other), "--model-type", "gemma", "--out", str(tmp_path / "out"))
    (kept,) = (tmp_path / "out").iterdir()
    assert run("compare", str(whole), str(kept), "--permutations", "99")[0] == 0
    assert lnsim.load(kept)["pre_mlp"].offset == 1.0


def test_bare_files_and_a_llama_are_compared_as_stored(tmp_path: Path) -> None:
    files = [bare(tmp_path / f"bare{seed}", llama_tensors(seed=seed)) for seed in range(2)]
    llama = folder(tmp_path / "llama", llama_tensors(), LLAMA_CONFIG)
    assert run("compare", *map(str, files), "--permutations", "99")[0] == 0
    assert run("compare", str(files[1]), str(llama), "--permutations", "99")[0] == 0


def test_a_bare_file_whose_values_speak_for_minus_one_is_not_compared_as_if_they_did_not(tmp_path: Path) -> None:
    norms = {name: (one.astype(np.float32) - 1).astype(BF16) for name, one in llama_tensors().items() if one.ndim == 1}
    found = lnsim.extract(bare(tmp_path / "bare", llama_tensors() | norms))
    assert (found.offset.decided, found.offset.likely) == (False, 1.0)
    llama = lnsim.extract(folder(tmp_path / "llama", llama_tensors(), LLAMA_CONFIG))
    with pytest.raises(ComparisonError, match=r"stores γ itself, and of .* this is not known: .*; \d+% of the values"):
        summarise_pair(found, llama, 9)

"""The stored vectors of data/vectors/small_models, read with the safetensors package, and what is on record of them."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors import safe_open

import lnsim

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "data" / "vectors" / "small_models"
FACTS = tomllib.loads((ROOT / "data" / "build" / "small_models.toml").read_text(encoding="utf-8"))["model"]
NAMES = [fact["name"] for fact in FACTS]

Array = npt.NDArray[Any]


def read(name: str) -> tuple[dict[str, Array], dict[str, str]]:
    """Tensors and metadata of a stored extract, by the safetensors package."""
    with safe_open(FOLDER / f"{name}.safetensors", framework="np") as file:
        return {key: file.get_tensor(key) for key in file.keys()}, file.metadata()  # noqa: SIM118


def test_there_is_one_extract_for_every_model_on_record_and_no_other_and_together_they_stay_small() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(f"{name}.safetensors" for name in NAMES)
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 700_000


@pytest.mark.parametrize("fact", FACTS, ids=NAMES)
def test_an_extract_holds_the_norms_on_record_and_lnsim_loads_their_bits(fact: dict[str, Any]) -> None:
    tensors, metadata = read(fact["name"])
    assert len(tensors) == fact["n_norm_tensors"]
    assert {tensor.shape for tensor in tensors.values()} == {(fact["hidden_size"],)}
    dtype = "float16" if fact["reader"] == "ctranslate2" else "float32"
    assert {str(tensor.dtype) for tensor in tensors.values()} == {dtype}
    assert all("norm" in name.lower() for name in tensors)
    assert all(np.isfinite(tensor).all() and tensor.min() < tensor.max() for tensor in tensors.values())
    names = json.loads(metadata["names_in_file"])  # of those that have another one here
    assert set(names) <= set(tensors)
    assert len(set(names.values())) == len(names)
    assert bool(names) == (metadata["file_format"] != "safetensors, F32")
    vectors = lnsim.load(fact["name"])
    assert not vectors.missing_layers
    assert all(vectors.stored[key].tobytes() == tensors[key].tobytes() for key in vectors.stored)
    assert {key for key in tensors if key.endswith(".weight")} <= set(vectors.stored) <= set(tensors)


@pytest.mark.parametrize("fact", FACTS, ids=NAMES)
def test_every_tensor_has_its_bytes_origin_hash_package_and_licence_on_record(fact: dict[str, Any]) -> None:
    tensors, metadata = read(fact["name"])
    record = json.loads(metadata["tensors"])
    assert set(record) == set(tensors)
    ranges = []
    for name, tensor in tensors.items():
        entry = record[name]
        assert entry["sha256"] == hashlib.sha256(tensor.tobytes()).hexdigest()
        assert entry["shard"] == fact["file"]
        assert entry["stop"] - entry["start"] == tensor.nbytes
        ranges.append((entry["start"], entry["stop"]))
    ranges.sort()
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(ranges))
    assert ranges[-1][1] <= fact["file_bytes"]
    for key in ("source", "package", "wheel", "wheel_sha256", "file", "file_sha256", "file_format", "licence"):
        assert metadata[key] == fact[key]
    assert metadata["config_source"] in {
        "config: from the package", "config: from the file's header", "config: from the names and shapes in the file",
    }  # fmt: skip
    assert "commit" not in metadata  # a package has none, and none is made up
    config = json.loads(metadata["config"])
    assert config["model_type"] == fact["model_type"]
    assert config.get("hidden_size", config.get("d_model")) == fact["hidden_size"]


@pytest.mark.parametrize("fact", FACTS, ids=NAMES)
def test_the_readme_has_a_true_row_for_every_file_and_its_licence_a_text_and_a_notice(fact: dict[str, Any]) -> None:
    readme = (ROOT / "data" / "README.md").read_text(encoding="utf-8").splitlines()
    (row,) = [line for line in readme if line.startswith(f"| `{fact['name']}.safetensors`")]
    size = (FOLDER / f"{fact['name']}.safetensors").stat().st_size
    for text in (fact["package"], fact["licence"], fact["file_format"], f"{size:,}", f"{fact['n_norm_tensors']} x"):
        assert f"| {text}" in row
    (hashes,) = [line for line in readme if line.startswith(f"| `{fact['name']}` |")]
    for text in (fact["wheel_sha256"], fact["file_sha256"], fact["file"], f"{fact['file_bytes']:,}"):
        assert text in hashes
    folder = ROOT / "data" / "licences"
    assert (folder / f"{fact['licence']}.txt").exists()
    assert f"**{fact['name']}.safetensors.**" in (folder / "NOTICE.md").read_text(encoding="utf-8")

"""Checkpoints on disk: a folder, one file, the same checks as on the Hub, and no byte read that is not needed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, header_bytes, llama_tensors, write_files

import lnsim
from lnsim.checkpoint.local import open_local
from lnsim.errors import FormatError, HeaderError, RangeError, SourceError, TensorNotFoundError

TENSORS = llama_tensors()
NORMS = [name for name in TENSORS if "norm" in name]


@pytest.mark.parametrize("n_shards", [1, 3])
def test_a_folder_gives_the_bits_of_its_files(tmp_path: Path, n_shards: int) -> None:
    write_files(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG, n_shards))
    found = lnsim.extract(tmp_path)
    assert {n: a.tobytes() for n, a in found.stored.items()} == {n: TENSORS[n].tobytes() for n in NORMS}
    assert (found.commit, found.requests, found.hidden_size) == (None, 0, 16)


def test_one_file_is_read_with_the_config_beside_it(tmp_path: Path) -> None:
    write_files(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG))
    assert lnsim.load(tmp_path / "model.safetensors").model_type == "llama"


def test_the_source_of_each_tensor_is_recorded_with_its_hash(tmp_path: Path) -> None:
    files = checkpoint_files(TENSORS, LLAMA_CONFIG)
    write_files(tmp_path, files)
    origin = lnsim.load(tmp_path).tensors["model.norm.weight"]
    content = files["model.safetensors"][origin.start : origin.stop]
    assert content == TENSORS["model.norm.weight"].tobytes()
    assert (origin.shard, origin.dtype) == ("model.safetensors", "BF16")


def test_a_sparse_file_of_50_gb_is_read_at_the_cost_of_its_norms(tmp_path: Path) -> None:
    size = 50_000_000_000
    table = {"model.layers.0.mlp.w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    for number, name in enumerate(("layers.0.input_layernorm", "layers.0.post_attention_layernorm", "norm")):
        offsets = [size + 8 * number, size + 8 * number + 8]
        table[f"model.{name}.weight"] = {"dtype": "F32", "shape": [2], "data_offsets": offsets}
    head = header_bytes(json.dumps(table))
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(head)
        file.seek(len(head) + size)
        file.write(np.arange(6, dtype=np.float32).tobytes())
    write_files(tmp_path, {"config.json": json.dumps(LLAMA_CONFIG | {"num_hidden_layers": 1}).encode()})
    if os.stat(tmp_path / "model.safetensors").st_blocks * 512 > 10**9:
        pytest.skip("this file system keeps no sparse files")
    found = lnsim.load(tmp_path)
    assert found["pre_mlp"].scale.tolist() == [[2.0, 3.0]]
    assert found.bytes_received == 24


def test_nothing_there_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Opening gone: there is no such folder or file"):
        open_local(tmp_path / "gone")


def test_a_folder_without_weights_says_what_it_has(tmp_path: Path) -> None:
    write_files(tmp_path, {"pytorch_model.bin": b"x"})
    with pytest.raises(FormatError, match="PyTorch pickles"):
        open_local(tmp_path)


def test_a_shard_that_the_index_names_and_the_folder_lacks_is_named(tmp_path: Path) -> None:
    write_files(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG, 3))
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(FormatError, match=r"model-00002-of-00003\.safetensors is not there \(1 missing in all\)"):
        lnsim.load(tmp_path)


def test_an_index_that_names_a_tensor_which_its_shard_lacks_is_an_error_once_it_is_asked_for(tmp_path: Path) -> None:
    files = checkpoint_files(TENSORS, LLAMA_CONFIG, 3)
    index = json.loads(files["model.safetensors.index.json"])
    index["weight_map"]["extra.norm.weight"] = "model-00001-of-00003.safetensors"
    write_files(tmp_path, files | {"model.safetensors.index.json": json.dumps(index).encode()})
    assert any("'extra.norm.weight'" in note for note in lnsim.load(tmp_path).notes)
    with pytest.raises(HeaderError, match=r"'extra\.norm\.weight' should lie in model-00001"):
        lnsim.extract(tmp_path, everything=True)


def test_two_shards_with_one_tensor_name_are_an_error(tmp_path: Path) -> None:
    one = file_bytes({"w": np.zeros(1, np.float32)})
    write_files(tmp_path, {f"model-0000{i}-of-00002.safetensors": one for i in (1, 2)})
    with pytest.raises(FormatError, match="tensor 'w' lies in both model-00001-of-00002"):
        open_local(tmp_path).read(["w"])


@pytest.mark.parametrize("n_bytes", [0, 5, 40])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path: Path, n_bytes: int) -> None:
    content = file_bytes({"w": np.zeros(9, np.float32)})
    write_files(tmp_path, {"model.safetensors": content[:n_bytes]})
    with pytest.raises(HeaderError, match=r"Reading the header of .*model\.safetensors: "):
        open_local(tmp_path)


def test_a_file_that_shrinks_after_it_was_opened_is_an_error(tmp_path: Path) -> None:
    write_files(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG))
    opened = open_local(tmp_path)
    os.truncate(tmp_path / "model.safetensors", opened.headers["model.safetensors"].buffer_start + 300)
    with pytest.raises(RangeError, match="the file ends at byte"):
        opened.read(["model.norm.weight"])


def test_a_tensor_that_no_shard_holds_is_named(tmp_path: Path) -> None:
    write_files(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG))
    with pytest.raises(TensorNotFoundError, match="no shard holds a tensor 'nope'"):
        open_local(tmp_path).read(["nope"])


@pytest.mark.parametrize(
    ("text", "message"), [(b"{", "JSON was expected"), (b"[1]", "an? .*object was expected, found list")]
)
def test_a_malformed_config_is_an_error(tmp_path: Path, text: bytes, message: str) -> None:
    write_files(tmp_path, checkpoint_files(TENSORS) | {"config.json": text})
    with pytest.raises(FormatError, match=rf"config\.json: {message}"):
        open_local(tmp_path)

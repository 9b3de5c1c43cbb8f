"""Extracts: a pure function of what was read, checked before they get their name, read back as any checkpoint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, norm_bits, write_files

import lnsim
from lnsim.checkpoint import store
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.store import Provenance, StoredTensor, provenance_at, read_provenance, read_sources, write_extract
from lnsim.errors import StoreError

TENSORS = [
    StoredTensor("b", "F32", (2,), np.float32([1, -0.0]).tobytes(), "s.safetensors", 100, 108),
    StoredTensor("a", "BF16", (1,), b"\x80\x3f", "s.safetensors", 50, 52),
]
ORIGIN = Provenance("o/r", "o/r", "c" * 40, "main", "llama", {"model_type": "llama", "n": 1}, {"licence": "MIT"})


def test_the_official_parser_reads_it_and_its_provenance_comes_back(tmp_path: Path) -> None:
    path = write_extract(tmp_path / "x.safetensors", TENSORS, ORIGIN)
    found = {name: (t["dtype"], t["shape"], bytes(t["data"])) for name, t in safetensors.deserialize(path.read_bytes())}
    assert found == {t.name: (t.dtype, list(t.shape), t.data) for t in TENSORS}
    assert write_extract(tmp_path / "y.safetensors", TENSORS, ORIGIN).read_bytes() == path.read_bytes()
    header = lnsim.parse_header(path.read_bytes(), path.stat().st_size)
    assert read_provenance(header) == ORIGIN
    assert read_sources(header) == {t.name: t.source for t in TENSORS}


def test_long_lists_of_the_config_are_left_out(tmp_path: Path) -> None:
    config = {"layer_types": ["full"] * 60, "suppress_tokens": list(range(1000)), "id2label": {"0": "x"}, "t": {"a": 1}}
    origin = Provenance("o/r", None, None, None, "llama", config)
    found = provenance_at(write_extract(tmp_path / "x.safetensors", TENSORS, origin))
    assert found is not None
    assert found.config == {"layer_types": ["full"] * 60, "t": {"a": 1}}


def test_no_tensors_and_a_name_given_twice_are_errors(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Writing x\.safetensors: there are no tensors to write"):
        write_extract(tmp_path / "x.safetensors", [], ORIGIN)
    with pytest.raises(StoreError, match="tensor 'a' was given twice"):
        write_extract(tmp_path / "x.safetensors", [TENSORS[1], TENSORS[1]], ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_read_back_the_same_never_gets_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = write_extract(tmp_path / "x.safetensors", TENSORS, ORIGIN).read_bytes()
    real = store._write_synced
    monkeypatch.setattr(store, "_write_synced", lambda file, content: real(file, content[:-1] + b"\xff"))
    with pytest.raises(StoreError, match="tensor 'a' did not read back the same"):
        write_extract(tmp_path / "x.safetensors", TENSORS, ORIGIN)
    assert (tmp_path / "x.safetensors").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_reading_an_extract_is_reading_a_checkpoint_and_an_extract_of_it_keeps_the_first_origin(tmp_path: Path) -> None:
    write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 2))
    kept = extract_and_keep(tmp_path / "m", out=tmp_path / "out")
    assert kept.path is not None
    again = lnsim.load(kept.path)
    assert norm_bits(again.stored) == norm_bits(kept.stored)
    assert dict(again.tensors) == dict(kept.tensors)
    assert (again.model_type, again.hidden_size, dict(again.missing_layers)) == ("llama", 16, {})
    second = extract_and_keep(str(kept.path), out=tmp_path / "two")
    assert dict(second.tensors) == dict(kept.tensors)


def test_a_narrowed_extract_does_not_look_as_if_layers_were_lost(tmp_path: Path) -> None:
    write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    kept = extract_and_keep(tmp_path / "m", ["pre_attention"], out=tmp_path / "out")
    again = lnsim.load(str(kept.path))
    assert list(again.roles) == ["pre_attention"]
    assert dict(again.missing_layers) == {}

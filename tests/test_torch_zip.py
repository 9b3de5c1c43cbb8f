"""PyTorch files: what torch.save wrote is read to the bit, and what a hostile file asks for is refused, not run."""

from __future__ import annotations

import io
import json
import math
import os
import pickle
import random
import struct
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from header_asked import header_by
from hub_stand_in import HubStandIn
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, write_files

import lnsim
from lnsim.checkpoint.extract import extract
from lnsim.checkpoint.format.header import Header
from lnsim.checkpoint.format.ranges import plan_reads
from lnsim.checkpoint.format.torch_pickle import state_dict
from lnsim.checkpoint.format.torch_zip import TAIL_BYTES, torch_header
from lnsim.errors import FormatError, HeaderError

MADE = Path(__file__).parent / "data" / "torch"
CONFIG = LLAMA_CONFIG | {"num_hidden_layers": 2, "hidden_size": 4}
CONFIG_FILE = {"config.json": checkpoint_files({}, CONFIG)["config.json"]}
VALUES = {name: one.tobytes() for name, one in np.load(MADE / "values.npz").items()}
GOOD = (MADE / "plain.bin").read_bytes()
FIRST, END = GOOD.find(b"PK\x01\x02"), GOOD.rfind(b"PK\x05\x06")


def changed(place: int, value: bytes, content: bytes = GOOD) -> bytes:
    place %= len(content)
    return content[:place] + value + content[place + len(value) :]


def header_of(content: bytes, first: int = 1 << 17) -> Header:
    return header_by(torch_header, content, first, "x.bin")


@pytest.mark.parametrize("name", ["plain", "protocol_4", "nested"])
def test_what_torch_saved_is_found_to_the_bit_tied_weights_too(name: str) -> None:
    content = (MADE / f"{name}.bin").read_bytes()
    for first in (64, 1100, len(content)):
        found = header_of(content, first)
        assert {one: content[info.start : info.stop] for one, info in found.tensors.items()} == VALUES
        assert found.checks.keys() == VALUES.keys()


def test_every_type_is_read_and_what_is_none_of_ours_is_refused_when_asked_for() -> None:
    content = (MADE / "kinds.bin").read_bytes()
    found = header_of(content)
    assert {name: info.dtype for name, info in found.tensors.items()} == {
        "view": "F32", "half": "F16", "double": "F64", "long": "I64", "byte": "U8", "bool": "BOOL", "int8": "I8",
        "fp8": "F8_E4M3", "empty": "F32", "parameter": "F32",
    }  # fmt: skip
    info = found.tensors["view"]
    assert np.frombuffer(content[info.start : info.stop], "<f4").tolist() == [4, 5, 6, 7]
    assert "view" not in found.checks
    assert "its layout of strides [1, 4] is not read" in found.refused["turned"].reason
    assert "its type complex64 is not read" in found.refused["complex"].reason


def test_a_checkpoint_of_torch_is_its_safetensors_twin(tmp_path: Path) -> None:
    found = lnsim.load(write_files(tmp_path / "m", {"pytorch_model.bin": GOOD, **CONFIG_FILE}))
    twin = lnsim.load(write_files(tmp_path / "twin", checkpoint_files(twin_tensors(), CONFIG)))
    assert list(found.roles) == list(twin.roles)
    for role, vectors in twin.roles.items():
        assert found.roles[role].stored.tobytes() == vectors.stored.tobytes()
    assert lnsim.compare(found, twin, n_permutations=19).summary.judgement.key == "identical"


def twin_tensors() -> dict[str, np.ndarray]:
    shapes = {"model.embed_tokens.weight": (8, 4), "lm_head.weight": (8, 4)}
    return {
        name: np.frombuffer(raw, ml_dtypes.bfloat16).reshape(shapes.get(name, (4,))) for name, raw in VALUES.items()
    }


def test_a_changed_byte_of_a_norm_is_told_by_the_checksum(tmp_path: Path) -> None:
    place = header_of(GOOD).tensors["model.norm.weight"].start
    content = changed(place, bytes([GOOD[place] ^ 1]))
    folder = write_files(tmp_path / "m", {"pytorch_model.bin": content, **CONFIG_FILE})
    with pytest.raises(
        FormatError, match=r"'model\.norm\.weight' of .*pytorch_model\.bin: a CRC-32 of \w{8} was expected"
    ):
        lnsim.load(folder)


class Hostile:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.system, ("echo pwned",)


def archive(members: dict[str, bytes], *, compressed: bool = False, alignment: int = 64) -> bytes:
    """A zip archive with the bytes of each member where torch's writer puts them, or by another rule but the first."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            padding = -(out.tell() + 30 + len(name) + 4) % (alignment if out.tell() else 64)
            info.extra = struct.pack("<HH", 0x4246, padding) + bytes(padding)
            info.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            file.writestr(info, content)
    return out.getvalue()


def pickled_by(content: bytes) -> bytes:
    return archive({"a/data.pkl": content})


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_run_code_is_refused_and_nothing_is_run(
    protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Any] = []
    payload = pickle.dumps({"w": Hostile()}, protocol)
    monkeypatch.setattr(os, "system", ran.append)
    with pytest.raises(
        HeaderError, match=r"^Reading the header of x\.bin: (names that a state dict needs were|an opcode of)"
    ):
        header_of(pickled_by(payload))
    assert ran == []


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"\x80\x02cos\nsystem\n.", r"found 'os\.system': the file would run code .* Nothing of it was run"),
        (b"\x80\x02ctorch.jit\nload\n.", r"found 'torch\.jit\.load'"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", r"found 'os\.system'"),
        (b"\x80\x02K\x01K\x02\x93.", "a name in two texts was expected"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", r"a call that a state dict needs was expected .* 'torch FloatStorage'"),
        (b"\x80\x02K\x01)R.", "a call that a state dict needs was expected in data.pkl, found a int"),
        (b"\x80\x02(ios\nsystem\n.", "an opcode of a state dict was expected in data.pkl, found 0x69"),
        (b"\x80\x02K\x01Q.", "a storage was expected in data.pkl, found a int of another kind"),
        (b"\x80\x02h\x05.", "takes value 5, which it never gave"),
        (b"\x80\x02R.", "takes more values than it gives"),
        (b"\x80\x02K\x01t.", "has no mark where it needs one"),
        (b"\x80\x02K\x01.", "a dict of tensors was expected in data.pkl, found int"),
        (b"\x80\x02}X\x01\x00\x00\x00aK\x01s.", r"found the keys \['a'\]"),
        (b"\x80\x02}", "ends at its byte 3 without an end"),
        (b"\x80\x02X\xff\xff\xff\x7fa.", "within a text of 2147483647 bytes"),
        (b"\x80\x02K\x01K\x02K\x03s.", "keys and values of a dict were expected"),
        (b"\x80\x02}K\x01a.", "a list was expected"),
        (b"\x80\x02c" + b"a" * 400, "a name of at most 300 bytes was expected"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x01))tR.", "a storage, an offset, a shape and as many"),
    ],
)  # fmt: skip
def test_a_pickle_that_is_no_state_dict_is_one_sentence(pickled: bytes, message: str) -> None:
    with pytest.raises(HeaderError, match=f"^Reading the header of x.bin: .*({message})"):
        header_of(pickled_by(pickled))


def test_deep_and_doubled_values_take_neither_memory_nor_time() -> None:
    begun = time.process_time()
    for pickled in (
        b"\x80\x02)q\x00" + b"h\x00h\x00\x86q\x00" * 5000 + b"Q.",
        b"\x80\x02)" + b"\x85" * 200_000 + b"R.",
        b"\x80\x02" + b"}" * 1_000_001 + b".",
        b"\x80\x02" + b"(" * 200_000 + b"t" * 200_000 + b"Q.",
    ):
        with pytest.raises(HeaderError):
            state_dict(pickled)
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a zip archive was expected, as torch.save writes it, found b''"),
        (b"GGUF" + bytes(60), "found a GGUF file"),
        (GOOD[: len(GOOD) // 2], "no end of a zip directory was found: the download or the copy is not complete"),
        (bytes(257) + b"ustar" + bytes(300), "it is a tar file, of PyTorch before 0.1.10"),
        ((MADE / "legacy.bin").read_bytes(), "the format before PyTorch 1.6, which is not read: save it again"),
        ((MADE / "script.bin").read_bytes(), "compressed, as in a TorchScript program"),
        (archive({"a/data.pkl": b"\x80\x02}."}, compressed=True), "'a/data.pkl' compressed"),
        (archive({"a/b": b""}), "one data.pkl was expected, as torch.save writes it, found 0"),
        (archive({"a/data.pkl": b"", "b/data.pkl": b""}), "one data.pkl was expected, .* found 2"),
        (archive({"a/data.pkl": b"", "a/constants.pkl": b""}), "it is a TorchScript program"),
        (changed(FIRST + 8, b"\x01\x00"), "'plain/data.pkl' is encrypted, which is not read"),
        (changed(FIRST + 46, b"\xff\xfe"), "a member's name in UTF-8 was expected"),
        (changed(FIRST + 20, struct.pack("<II", 1 << 30, 1 << 30)), "members before the directory were expected"),
        (changed(FIRST, b"PK\x01\x09"), "an entry of the zip directory was expected at its byte 0"),
        (changed(-12, struct.pack("<H", 0xFFFF), pickled_by(b"")), "a zip64 locator was expected"),
        (changed(END + 16, struct.pack("<I", 1 << 30)), "a directory of at most 200000 members before its end"),
        (archive({"a/data.pkl": b"", "a/byteorder": b""}), "a little-endian file was expected, found one of another"),
        (GOOD.replace(b"plain/data/1", b"plain/date/1"), "storage '1' of .* was expected, found no such member"),
    ],
    ids=range(18),
)  # fmt: skip
def test_a_damaged_file_is_one_sentence(content: bytes, message: str) -> None:
    with pytest.raises(HeaderError, match=f"^Reading the header of x.bin: .*{message}"):
        header_of(content)


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=8), st.integers(0, len(GOOD)))
@settings(max_examples=300)
def test_whatever_is_changed_a_header_or_one_kind_of_error_comes_out(changes: list[tuple[int, int]], end: int) -> None:
    content = bytearray(GOOD)
    for place, value in changes:
        content[place] = value
    for one in (bytes(content), bytes(content[:end]), GOOD[end:]):
        with suppress(HeaderError):
            header_of(one, 700)


@settings(max_examples=200)
@given(st.binary(max_size=60), st.integers(0, 2**32 - 1))
def test_any_pickle_ends_in_tensors_or_one_kind_of_error(data: bytes, seed: int) -> None:
    rng = random.Random(seed)
    pickled = bytearray(zipfile.ZipFile(MADE / "nested.bin").read("nested/data.pkl"))
    place = rng.randrange(len(pickled))
    pickled[place : place + rng.randrange(30)] = data
    with suppress(HeaderError):
        state_dict(bytes(pickled))


def test_a_repacked_archive_is_refused_tensor_by_tensor_and_a_file_without_checksums_is_read() -> None:
    stored = zipfile.ZipFile(MADE / "plain.bin")
    repacked = archive({name: stored.read(name) for name in stored.namelist()}, alignment=1)
    found = header_of(repacked)
    assert not set(found.tensors) & {"model.norm.weight"}
    assert "it does not lie where torch.save puts it" in found.refused["model.norm.weight"].reason
    unchecked = GOOD
    for one in stored.infolist():
        unchecked = unchecked.replace(struct.pack("<I", one.CRC), bytes(4))
    assert header_of(unchecked).checks == {}
    assert header_of(unchecked).tensors == header_of(GOOD).tensors


def test_an_overlapping_part_does_not_cut_off_what_it_lies_in() -> None:
    found = header_of((MADE / "kinds.bin").read_bytes())
    reads = plan_reads(found, ["parameter", "view"])
    assert all(read.span.stop >= part.stop for read in reads for _, part in read.parts)


def test_ten_shards_on_the_hub_take_two_requests_each_and_one_a_place_of_norms(hub: HubStandIn) -> None:
    """Each shard has norms and, behind them, a matrix that is never read."""
    shards = {f"pytorch_model-{n + 1:05d}-of-00010.bin": torch_shard(n) for n in range(10)}
    weight_map = {name: shard for number, shard in enumerate(shards) for name in names_of(number)}
    index = json.dumps({"weight_map": weight_map}).encode()
    config = json.dumps(CONFIG | {"num_hidden_layers": 10, "hidden_size": 64}).encode()
    hub.add("owner/old", shards | {"pytorch_model.bin.index.json": index, "config.json": config})
    found = extract("owner/old")
    assert found.roles["pre_mlp"].layers.tolist() == list(range(10))
    ranges = [one for one in hub.requests if one.origin == "cdn"]
    assert len(ranges) <= 3 * 10
    assert found.bytes_received < 10 * 3 * TAIL_BYTES + 100_000


def names_of(number: int) -> list[str]:
    norms = [f"model.layers.{number}.{norm}.weight" for norm in ("input_layernorm", "post_attention_layernorm")]
    return [*norms, *(["model.norm.weight"] if number == 9 else []), f"model.layers.{number}.mlp.up_proj.weight"]


def torch_shard(number: int) -> bytes:
    """A file of torch.save's layout, a storage a tensor: norms of 64 channels, then a matrix of 1 MB."""
    *norms, matrix = names_of(number)
    shapes = dict.fromkeys(norms, (64,)) | {matrix: (4096, 64)}
    state = b"".join(pickled(name, str(key), shape) for key, (name, shape) in enumerate(shapes.items()))
    storages = {f"s/data/{key}": bytes(4 * math.prod(shape)) for key, shape in enumerate(shapes.values())}
    return archive({"s/data.pkl": b"\x80\x02}(" + state + b"u.", **storages})


def pickled(name: str, key: str, shape: tuple[int, ...]) -> bytes:
    """The opcodes of one entry of a state dict: its name, and a call that rebuilds a tensor of floats."""

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"".join(b"J" + struct.pack("<i", one) for one in values) + bytes([0x84 + len(values)])

    def text(value: str) -> bytes:
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu")
    storage += b"J" + struct.pack("<i", math.prod(shape)) + b"tQ"
    places = b"K\x00" + numbers(shape) + numbers((64, 1)[-len(shape) :])
    return text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + places + b"\x89}tR"

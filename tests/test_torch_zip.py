"""PyTorch files: what torch.save wrote is read to the bit, and what a hostile file asks for is refused, not run."""

from __future__ import annotations

import io
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

import numpy as np
import pytest
from header_asked import header_by
from hub_stand_in import HubStandIn, VirtualFile
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
VALUES = {name: one.tobytes() for name, one in np.load(MADE / "values.npz").items()}


def header_of(content: bytes, first: int = 1 << 17) -> Header:
    return header_by(torch_header, content, first, "x.bin")


@pytest.mark.parametrize("name", ["plain", "protocol_4", "nested"])
def test_what_torch_saved_is_found_to_the_bit_tied_weights_too(name: str) -> None:
    content = (MADE / f"{name}.bin").read_bytes()
    for first in (64, 1100, len(content)):
        found = header_of(content, first)
        assert {one: content[info.start : info.stop] for one, info in found.tensors.items()} == VALUES
        assert found.checks.keys() == VALUES.keys()


def test_members_are_those_of_python_s_own_reader() -> None:
    for path in MADE.glob("[kmnp]*.bin"):
        content, archive = path.read_bytes(), zipfile.ZipFile(path)
        whole = {
            name: crc for name, crc in header_of(content).checks.items() if header_of(content).tensors[name].n_bytes
        }
        crcs = {one.CRC: archive.read(one.filename) for one in archive.infolist()}
        for name, crc in whole.items():
            info = header_of(content).tensors[name]
            assert crcs[crc] == content[info.start : info.stop]


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
    folder = tmp_path / "m"
    write_files(folder, {"pytorch_model.bin": (MADE / "plain.bin").read_bytes(), **config_files()})
    found = lnsim.load(folder)
    twin = lnsim.load(write_files(tmp_path / "twin", checkpoint_files(twin_tensors(), CONFIG)))
    assert list(found.roles) == list(twin.roles)
    for role, vectors in twin.roles.items():
        assert found.roles[role].stored.tobytes() == vectors.stored.tobytes()
    assert lnsim.compare(found, twin, n_permutations=19).summary.judgement.key == "identical"


def config_files() -> dict[str, bytes]:
    return {"config.json": checkpoint_files({}, CONFIG)["config.json"]}


def twin_tensors() -> dict[str, np.ndarray]:
    import ml_dtypes

    shapes = {"model.embed_tokens.weight": (8, 4), "lm_head.weight": (8, 4)}
    return {
        name: np.frombuffer(raw, ml_dtypes.bfloat16).reshape(shapes.get(name, (4,))) for name, raw in VALUES.items()
    }


def test_a_changed_byte_of_a_norm_is_told_by_the_checksum(tmp_path: Path) -> None:
    content = bytearray((MADE / "plain.bin").read_bytes())
    place = header_of(bytes(content)).tensors["model.norm.weight"].start
    content[place] ^= 1
    folder = write_files(tmp_path / "m", {"pytorch_model.bin": bytes(content), **config_files()})
    with pytest.raises(
        FormatError, match=r"'model\.norm\.weight' of .*pytorch_model\.bin: a CRC-32 of \w{8} was expected"
    ):
        lnsim.load(folder)


class Hostile:
    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return os.system, ("echo pwned",)


def archive(pickled: bytes, *, compressed: bool = False, names: tuple[str, ...] = ("a/data.pkl",)) -> bytes:
    out = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", kind) as file:
        for name in names:
            info = zipfile.ZipInfo(name)
            begin = out.tell() + 30 + len(name) + 4
            info.extra = struct.pack("<HH", 0x4246, -begin % 64) + bytes(-begin % 64)
            info.compress_type = kind
            file.writestr(info, pickled)
    return out.getvalue()


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
        header_of(archive(payload))
    assert ran == []


@pytest.mark.parametrize(
    ("pickled", "message"),
    [
        (b"\x80\x02cos\nsystem\n.", r"found 'os\.system': the file would run code .* Nothing of it was run"),
        (b"\x80\x02cbuiltins\neval\n.", r"found 'builtins\.eval'"),
        (b"\x80\x02ctorch.jit\nload\n.", r"found 'torch\.jit\.load'"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", r"found 'os\.system'"),
        (b"\x80\x02K\x01K\x02\x93.", "a name in two texts was expected"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", r"a call that a state dict needs was expected .* 'torch FloatStorage'"),
        (b"\x80\x02K\x01)R.", "a call that a state dict needs was expected in data.pkl, found a int"),
        (b"\x80\x02(ios\nsystem\n.", "an opcode of a state dict was expected in data.pkl, found 0x69"),
        (b"\x80\x02)\x81.", "found 0x81"),
        (b"\x80\x02\x82\x01.", "found 0x82"),
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
        header_of(archive(pickled))


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


GOOD = (MADE / "plain.bin").read_bytes()
END = GOOD.rfind(b"PK\x05\x06")


def changed(place: int, value: bytes, content: bytes = GOOD) -> bytes:
    place %= len(content)
    return content[:place] + value + content[place + len(value) :]


FIRST = GOOD.find(b"PK\x01\x02")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a zip archive was expected, as torch.save writes it, found b''"),
        (b"GGUF" + bytes(60), "found a GGUF file"),
        (GOOD[: len(GOOD) // 2], "no end of a zip directory was found: the download or the copy is not complete"),
        (bytes(257) + b"ustar" + bytes(300), "it is a tar file, of PyTorch before 0.1.10"),
        ((MADE / "legacy.bin").read_bytes(), "the format before PyTorch 1.6, which is not read: save it again"),
        ((MADE / "script.bin").read_bytes(), "compressed, as in a TorchScript program"),
        (archive(b"\x80\x02}.", compressed=True), "'a/data.pkl' compressed"),
        (archive(b"", names=("a/b",)), "one data.pkl was expected, as torch.save writes it, found 0"),
        (archive(b"", names=("a/data.pkl", "b/data.pkl")), "one data.pkl was expected, .* found 2"),
        (archive(b"", names=("a/data.pkl", "a/constants.pkl")), "it is a TorchScript program"),
        (changed(FIRST + 8, b"\x01\x00"), "'plain/data.pkl' is encrypted, which is not read"),
        (changed(FIRST + 46, b"\xff\xfe"), "a member's name in UTF-8 was expected"),
        (changed(FIRST + 20, struct.pack("<II", 1 << 30, 1 << 30)), "members before the directory were expected"),
        (changed(FIRST, b"PK\x01\x09"), "an entry of the zip directory was expected at its byte 0"),
        (changed(-12, struct.pack("<H", 0xFFFF), archive(b"")), "a zip64 locator was expected"),
        (changed(END + 16, struct.pack("<I", 1 << 30)), "a directory of at most 200000 members before its end"),
        (archive(b"", names=("a/data.pkl", "a/byteorder")), "a little-endian file was expected, found one of another"),
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
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for one in zipfile.ZipFile(MADE / "plain.bin").infolist():
            info = zipfile.ZipInfo(one.filename)
            content = zipfile.ZipFile(MADE / "plain.bin").read(one.filename)
            if one.filename == "plain/data.pkl":
                info.extra = struct.pack("<HH", 0x4246, 16) + bytes(16)
            file.writestr(info, content)
    found = header_of(out.getvalue())
    assert not set(found.tensors) & {"model.norm.weight"}
    assert "it does not lie where torch.save puts it" in found.refused["model.norm.weight"].reason
    unchecked = GOOD
    for one in zipfile.ZipFile(MADE / "plain.bin").infolist():
        unchecked = unchecked.replace(struct.pack("<I", one.CRC), bytes(4))
    assert header_of(unchecked).checks == {}
    assert header_of(unchecked).tensors == header_of(GOOD).tensors


def test_an_overlapping_part_does_not_cut_off_what_it_lies_in() -> None:
    found = header_of((MADE / "kinds.bin").read_bytes())
    reads = plan_reads(found, ["parameter", "view"])
    assert all(read.span.stop >= part.stop for read in reads for _, part in read.parts)


def test_ten_shards_on_the_hub_take_two_requests_each_and_one_a_place_of_norms(hub: HubStandIn) -> None:
    """Each shard has 4 GB: norms and, behind them, matrices that are never read."""
    shards = {f"pytorch_model-{n + 1:05d}-of-00010.bin": virtual_torch(n) for n in range(10)}
    weight_map = {name: shard for number, shard in enumerate(shards) for name in names_of(number)}
    index = ('{"weight_map":' + str(weight_map).replace("'", '"') + "}").encode()
    config = checkpoint_files({}, CONFIG | {"num_hidden_layers": 10, "hidden_size": 64})["config.json"]
    hub.add("owner/old", shards | {"pytorch_model.bin.index.json": index, "config.json": config})
    found = extract("owner/old")
    assert found.roles["pre_mlp"].layers.tolist() == list(range(10))
    ranges = [one for one in hub.requests if one.origin == "cdn"]
    assert len(ranges) <= 3 * 10
    assert found.bytes_received < 10 * 3 * TAIL_BYTES + 100_000


def names_of(number: int) -> list[str]:
    norms = [f"model.layers.{number}.{norm}.weight" for norm in ("input_layernorm", "post_attention_layernorm")]
    return [*norms, *(["model.norm.weight"] if number == 9 else []), f"model.layers.{number}.mlp.up_proj.weight"]


def virtual_torch(number: int) -> VirtualFile:
    """A file of torch.save's layout: norms of 64 channels, then a matrix of 4 GB, of which zeros are served."""
    parts: list[bytes] = []
    entries: list[tuple[str, int, int, int]] = []
    position = 0

    def member(name: str, content: bytes, size: int | None = None) -> None:
        nonlocal position
        size = len(content) if size is None else size
        crc = zipfile.crc32(content)
        local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 0, 0, 0, crc, size, size, len(name), 0)
        padding = -(position + 30 + len(name) + 4) % 64
        local = local[:-2] + struct.pack("<H", padding + 4)
        head = local + name.encode() + struct.pack("<HH", 0x4246, padding) + bytes(padding)
        entries.append((name, position, size, crc))
        parts.append(head + content)
        position += len(head) + size

    names = names_of(number)
    member("s/data.pkl", pickled_state(names))
    for place in range(len(names) - 1):
        member(f"s/data/{place}", np.full(64, number + place, "<f4").tobytes())
    member(f"s/data/{len(names) - 1}", b"", 4_000_000_000)
    head, size = b"".join(parts), position
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, crc, n, n, len(name), 0, 0, 0, 0, 0, offset)
        + name.encode()
        for name, offset, n, crc in entries
    )
    tail = directory + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, len(entries), len(entries), len(directory), size, 0)

    def read(start: int, stop: int) -> bytes:
        data = bytearray(stop - start)
        for first, piece in ((0, head), (size, tail)):
            low, high = max(start, first), min(stop, first + len(piece))
            if low < high:
                data[low - start : high - start] = piece[low - first : high - first]
        return bytes(data)

    return VirtualFile(size + len(tail), read)


def pickled_state(names: list[str]) -> bytes:
    """A pickle of float tensors, one a storage: vectors of 64, and of the last name a matrix."""
    out = b"\x80\x02}("
    for place, name in enumerate(names):
        shape = (64,) if place < len(names) - 1 else (1_000_000, 1000)
        strides = (1,) if len(shape) == 1 else (1000, 1)
        count = int(np.prod(shape))
        sizes = b"".join(b"J" + struct.pack("<i", one) for one in shape)
        steps = b"".join(b"J" + struct.pack("<i", one) for one in strides)
        tupled = bytes([0x84 + len(shape)])
        out += b"X" + struct.pack("<I", len(name)) + name.encode() + b"ctorch._utils\n_rebuild_tensor_v2\n("
        out += b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00" + str(place).encode()
        out += b"X\x03\x00\x00\x00cpuJ" + struct.pack("<i", count) + b"tQK\x00" + sizes + tupled + steps + tupled
        out += b"\x89}tR"
    return out + b"u."

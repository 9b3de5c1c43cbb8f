"""Headers: every case of the format, and agreement with the official parser."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors_bytes import file_bytes, header_bytes

from lnsim import HeaderError, parse_header
from lnsim.checkpoint.format.header import DTYPE_BITS, Header, header_stop

ONE = '"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'


def entry(name: str, shape: list[int], offsets: list[int], dtype: str = "F32") -> str:
    return f'"{name}":{{"dtype":"{dtype}","shape":{json.dumps(shape)},"data_offsets":{json.dumps(offsets)}}}'


def official_accepts(data: bytes) -> bool:
    try:
        safetensors.deserialize(data)
    except safetensors.SafetensorError:
        return False
    return True


# Cases that both parsers judge alike: (header text, bytes behind it).
VALID = {
    "no tensors": ("{}", 0),
    "one tensor": (f"{{{ONE}}}", 4),
    "leading white space": (f" \t{{{ONE}}}", 4),
    "null metadata": (f'{{"__metadata__":null,{ONE}}}', 4),
    "metadata key twice": (f'{{"__metadata__":{{"x":"1","x":"2"}},{ONE}}}', 4),
    "empty name": (f"{{{ONE.replace('a', '', 1)}}}", 4),
    "empty tensor between two": (
        "{" + ",".join([entry("c", [1], [4, 8]), entry("b", [0], [4, 4]), entry("a", [1], [0, 4])]) + "}", 8),
    "unaligned and unordered": ("{" + entry("b", [1], [1, 5]) + "," + entry("a", [1], [0, 1], "U8") + "}", 5),
    "unknown inner key": ('{"a":{"dtype":"F32","new":{"x":[1.5,-0]},"shape":[1],"data_offsets":[0,4]}}', 4),
    "unknown inner key nested 125 deep": (
        '{"a":{"dtype":"F32","x":' + "[" * 125 + "]" * 125 + ',"shape":[1],"data_offsets":[0,4]}}', 4),
    "entry as a list": ('{"a":["F32",[1],[0,4]]}', 4),
    "escaped name": ('{"\\u0061\\ud83d\\ude00":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4),
    "huge but empty": ("{" + entry("a", [0, 2**64 - 1, 2**64 - 1], [0, 0]) + "}", 0),
    "half-byte dtype in whole bytes": ("{" + entry("a", [2], [0, 1], "F4") + "}", 1),
}  # fmt: skip
INVALID = {
    "not UTF-8": (b'{"\xff":1}', 0, "UTF-8 was expected, but byte 10"),
    "byte order mark": (b"\xef\xbb\xbf{}", 0, "JSON was expected"),
    "trailing comma": (f"{{{ONE},}}", 4, "JSON was expected"),
    "a list": ("[]", 0, "a JSON object was expected, found list"),
    "NaN": ('{"a":{"dtype":"F32","x":NaN,"shape":[1],"data_offsets":[0,4]}}', 4, "NaN is not JSON"),
    "integer out of range": ('{"a":{"dtype":"F32","x":' + "9" * 400 + ',"shape":[1],"data_offsets":[0,4]}}', 4,
        "out of range"),
    "half a surrogate pair": ('{"\\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4, "surrogate"),
    "nested 126 deep": ('{"a":{"dtype":"F32","x":' + "[" * 126 + "]" * 126 + ',"shape":[1],"data_offsets":[0,4]}}', 4,
        "'x' is nested too deeply"),
    "nested 100,000 deep": ('{"a":' + "[" * 100_000, 0, "nested too deeply"),
    "metadata twice": ('{"__metadata__":{},"__metadata__":{}}', 0, "'__metadata__' stands there twice"),
    "metadata of numbers": ('{"__metadata__":{"x":1}}', 0, "must map strings to strings"),
    "entry is a number": ('{"a":1}', 0, "an object with dtype, shape, data_offsets was expected"),
    "no shape": ('{"a":{"dtype":"F32","data_offsets":[0,4]}}', 4, "tensor 'a': shape missing"),
    "field twice": ('{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', 4, "'dtype' stands"),
    "unknown dtype": ("{" + entry("a", [1], [0, 4], "F31") + "}", 4, "dtype must be one of .*; found 'F31'"),
    "dtype null": ('{"a":{"dtype":null,"shape":[1],"data_offsets":[0,4]}}', 4, "dtype must be one of"),
    "minus zero": ('{"a":{"dtype":"F32","shape":[-0],"data_offsets":[0,0]}}', 0, "shape must list whole numbers"),
    "boolean size": ('{"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', 4, "shape must list whole numbers"),
    "size over 64 bits": ("{" + entry("a", [2**64, 0], [0, 0]) + "}", 0, "shape must list whole numbers"),
    "three offsets": ("{" + entry("a", [1], [0, 4, 4]) + "}", 4, "data_offsets must be two whole numbers"),
    "offsets reversed": ("{" + entry("a", [1], [4, 0]) + "}", 4, r"data offsets must ascend; found \[4, 0\]"),
    "too few bytes": ("{" + entry("a", [2], [0, 4]) + "}", 4, r"shape \[2\] of F32 needs 8 bytes, .* hold 4"),
    "half a byte": ("{" + entry("a", [1], [0, 1], "F4") + "}", 1, "4 bits of F4 do not fill whole bytes"),
    "product overflows": ("{" + entry("a", [2**63, 2, 0], [0, 0]) + "}", 0, "overflows 64 bits"),
    "overlap": ("{" + entry("a", [1], [0, 4]) + "," + entry("b", [1], [2, 6]) + "}", 6,
        "at byte 4 .* at 2: an overlap"),
    "hole": ("{" + entry("a", [1], [0, 4]) + "," + entry("b", [1], [8, 12]) + "}", 12, "at byte 4 .* at 8: a hole"),
    "file cut short": (f"{{{ONE}}}", 3, f"its tensors end at byte {len(ONE) + 14}, the file at byte {len(ONE) + 13}"),
    "empty tensor inside another": ("{" + entry("a", [2], [0, 8]) + "," + entry("b", [0], [4, 4]) + "}", 8,
        "an overlap"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "n_bytes"), VALID.values(), ids=VALID)
def test_a_valid_file_is_accepted_by_both_parsers_with_the_same_tensors(text: str, n_bytes: int) -> None:
    data = header_bytes(text) + b"\0" * n_bytes
    header = parse_header(data, file_size=len(data))
    official = {name: (tensor["dtype"], tuple(tensor["shape"])) for name, tensor in safetensors.deserialize(data)}
    assert {name: (info.dtype, info.shape) for name, info in header.tensors.items()} == official
    assert header.file_size == len(data)


@pytest.mark.parametrize(("text", "n_bytes", "message"), INVALID.values(), ids=INVALID)
def test_an_invalid_file_is_refused_by_both_parsers_and_ours_says_why(
    text: str | bytes, n_bytes: int, message: str
) -> None:
    data = header_bytes(text) + b"\0" * n_bytes
    assert not official_accepts(data)
    with pytest.raises(HeaderError, match=message):
        parse_header(data, file_size=len(data), where="a/b@c/model.safetensors")


@pytest.mark.parametrize(("data", "message"), [
    (b"\0" * 7, "the length field needs 8 bytes, the file has 7"),
    (header_bytes("{}", 100_000_001), "at most 100000000 bytes was expected, found 100000001"),
    (header_bytes("{}", 3), "3 bytes, which is past the end of a 10-byte file"),
])  # fmt: skip
def test_a_wrong_length_field_is_refused_by_both_parsers(data: bytes, message: str) -> None:
    assert not official_accepts(data)
    with pytest.raises(HeaderError, match=message):
        parse_header(data, file_size=len(data))


def test_a_tensor_name_that_comes_twice_is_refused_though_the_official_parser_takes_the_last() -> None:
    data = header_bytes(f"{{{ONE},{ONE}}}") + b"\0" * 4
    assert official_accepts(data)
    with pytest.raises(HeaderError, match="tensor 'a' stands there twice; its bytes would be ambiguous"):
        parse_header(data, file_size=len(data))


def test_a_hostile_name_is_shortened_and_escaped_in_messages() -> None:
    with pytest.raises(HeaderError) as caught:
        parse_header(header_bytes(json.dumps({"\x1b[31m" + "x" * 10_000: 1})))
    assert len(str(caught.value)) < 400
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("dtype", DTYPE_BITS)
def test_each_dtype_has_the_size_that_the_official_parser_gives_it(dtype: str) -> None:
    n_bytes = DTYPE_BITS[dtype]  # of eight values
    data = header_bytes("{" + entry("a", [8], [0, n_bytes], dtype) + "}") + b"\0" * n_bytes
    assert official_accepts(data)
    assert parse_header(data, file_size=len(data)).tensors


def test_without_a_file_size_only_the_header_is_needed_and_no_byte_more_than_the_tensors_is_taken() -> None:
    data = file_bytes({"w": np.zeros(100, np.float32)})
    stop = header_stop(data)
    assert parse_header(data[:stop]).file_size == len(data)
    with pytest.raises(HeaderError, match=rf"ends at byte {stop}, but only {stop - 1} bytes"):
        parse_header(data[: stop - 1])
    with pytest.raises(HeaderError, match=f"end at byte {len(data)}, but {len(data) + 1} bytes were given"):
        parse_header(data + b"\0")


@pytest.mark.slow
@pytest.mark.parametrize(
    "metadata",
    [{str(n): "" for n in range(450_000)}, {f"é{n}": "\N{GRINNING FACE}\n" * 1_000 for n in range(3_500)}],
    ids=["450,000 short texts", "17 MB of no ASCII and of escapes"],
)
def test_metadata_of_an_odd_size_is_read(metadata: dict[str, str]) -> None:
    text = json.dumps({"__metadata__": metadata}, ensure_ascii=False)
    assert parse_header(header_bytes(text)).metadata == metadata


# Its own text() would first look up the category of every character there is, for five seconds.
CHARACTER = st.one_of(st.integers(0, 0x2FF), st.integers(0, 0xD7FF), st.integers(0xE000, 0x10FFFF)).map(chr)


NAMES = st.lists(CHARACTER, max_size=8).map("".join).filter(lambda name: name != "__metadata__")


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.dictionaries(NAMES, st.lists(st.integers(0, 3), max_size=3), max_size=6))
def test_what_the_official_writer_writes_is_read_back_the_same(shapes: dict[str, list[int]]) -> None:
    data = safetensors.numpy.save({name: np.zeros(shape, np.float32) for name, shape in shapes.items()})
    header = parse_header(data, file_size=len(data))
    assert {name: info.shape for name, info in header.tensors.items()} == {n: tuple(s) for n, s in shapes.items()}


@pytest.mark.parametrize(
    ("count", "least_valid", "least_duplicates"), [(4_000, 2, 6), pytest.param(15_000, 11, 6, marks=pytest.mark.slow)]
)
def test_the_fuzzer_finds_no_input_that_the_two_parsers_judge_differently(
    monkeypatch: pytest.MonkeyPatch, count: int, least_valid: int, least_duplicates: int
) -> None:
    """The code of the long run, whose figures stand in benchmarks/README.md, on other inputs."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import fuzz_header
    from header_inputs import KINDS

    result = fuzz_header.fuzz("tests", count)
    assert result.disagreements == []
    assert result.slowest[0] < 1
    assert set(result.kinds) == {*KINDS, "hypothesis"}
    assert sum(result.kinds.values()) == count
    assert min(result.valid[kind] for kind in KINDS) >= least_valid
    assert result.duplicates >= least_duplicates


def test_the_fuzzer_notices_a_parser_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import fuzz_header

    def lax(data: bytes, file_size: int | None = None) -> Header:
        return parse_header(data.replace(b"-1", b"01").replace(b"1.0", b"1  "), file_size)

    monkeypatch.setattr(fuzz_header, "parse_header", lax)
    result = fuzz_header.fuzz("tests", 3_000)
    assert {what for _, what, _ in result.disagreements} >= {"only ours accepts"}
    assert len(result.failures) > 1

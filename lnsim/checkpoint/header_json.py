"""This module reads the JSON of a header piece by piece, so that a hostile one costs neither memory nor hours.

A header may have 100 MB, and ``json.loads`` turns 100 MB of ``{}`` into gigabytes. Here one entry is decoded at a time,
by the standard decoder or, in the one spelling that every writer uses, by a regular expression without backtracking;
white space and long texts are passed over at the speed of C. What is accepted is what the reference accepts, but for
the limits below, which no file that is not made to hurt comes near.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from lnsim.errors import HeaderError

__all__ = ["MAX_ENTRY_BYTES", "MAX_HELD_BYTES", "MAX_TEXT_BYTES", "HeaderText", "JsonObject", "PlainTensor"]

MAX_ENTRY_BYTES = 1 << 20
"""Bytes of one tensor's entry, and of one name that has escapes in it."""

MAX_TEXT_BYTES = 1 << 24
"""Bytes of one text in the metadata; a text of ASCII without escapes costs its own bytes only and may be longer."""

MAX_HELD_BYTES = 112 << 20
"""Bytes that all that is kept of one header may take in memory: some 240,000 tensors, or 100 MB of plain metadata."""

PlainTensor = tuple[str, tuple[int, ...], int, int]
"""dtype, shape, start and stop of a tensor, as they stand in the header."""

_CHECK_BYTES = 1 << 20
_FIRST_WINDOW = 1 << 10
_SHAPES_KEPT = 1 << 12  # layers and experts share a few shapes
_SPACE = re.compile(rb"[ \t\n\r]*+")
_PLAIN = re.compile(rb'"([^"\\\x00-\x1f]*+)"')
_ASCII = re.compile(rb"[\x00-\x7f]*+")
_SIZE = rb"(0|[1-9][0-9]{0,18}+)"  # 19 digits always fit 64 bits; a longer number goes the careful way
_TENSOR = re.compile(
    rb'"([ !#-\[\]-~]{0,1000}+)": ?+\{"dtype": ?+"([A-Z0-9_]++)", ?+"shape": ?+\[([0-9, ]{0,200}+)\], ?+'
    rb'"data_offsets": ?+\[' + _SIZE + rb", ?+" + _SIZE + rb"\]\}"
)
_SHAPE = re.compile(rb"(?:(?:0|[1-9][0-9]{0,18}+)(?:, ?+(?=[0-9])|$))*+")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonObject(list[tuple[str, Any]]):
    """A JSON object as its pairs, since a dict would hide a key that comes twice."""


class HeaderText:
    """The JSON of a header, read from front to back.

    Args:
        data: bytes that hold it.
        start: its first byte.
        stop: byte after its last.

    Raises:
        HeaderError: when it is not UTF-8.
    """

    def __init__(self, data: bytes, start: int, stop: int) -> None:
        self._data, self._here, self._stop = data, start, stop
        self._view = memoryview(data)
        self._shapes: dict[bytes, tuple[int, ...]] = {}
        self._held = 0
        self._check_utf8()

    def members(self) -> Iterator[tuple[str, PlainTensor | None]]:
        """Keys of the object that begins here, each with its tensor where it is one in the usual spelling.

        Without a tensor the value comes next in the text, and the caller reads it before asking for the next key.

        Raises:
            HeaderError: when this is no JSON object.
        """
        self._expect(b"{", "a JSON object")
        if self._take(b"}"):
            return
        while True:
            self._skip_space()
            plain = self._plain_tensor()
            if plain is not None:
                yield plain
            else:
                name = self._string(MAX_ENTRY_BYTES)
                self._expect(b":", "':' behind a key")
                yield name, None
            byte = self._next_byte()
            if byte not in b",}":
                raise HeaderError(f"JSON was expected: ',' or '}}' at byte {self._here}.")
            self._here += 1
            if byte == b"}":
                return

    def starts(self, with_byte: bytes) -> bool:
        """Whether the next byte behind white space is this one."""
        return self._next_byte() == with_byte

    def text(self) -> str:
        """The string that begins here.

        Raises:
            HeaderError: when it is no JSON string, or takes too much memory.
        """
        self._skip_space()
        match = _PLAIN.match(self._data, self._here, self._stop)
        is_ascii = match is not None and _ASCII.fullmatch(self._data, *match.span(1))
        return self._string(self._stop if is_ascii else MAX_TEXT_BYTES)

    def value(self) -> Any:
        """The value that begins here, objects as ``JsonObject``.

        Raises:
            HeaderError: when it is no JSON, or more than ``MAX_ENTRY_BYTES``.
        """
        self._skip_space()
        return self._decoded(MAX_ENTRY_BYTES)

    def hold(self, n_bytes: int) -> None:
        """Count memory that the caller keeps of what was read.

        Raises:
            HeaderError: when it gets too much.
        """
        self._held += n_bytes
        if self._held > MAX_HELD_BYTES:
            raise HeaderError(f"what it lists takes more than {MAX_HELD_BYTES} bytes of memory.")

    def end(self) -> None:
        """Check that nothing but white space follows."""
        self._skip_space()
        if self._here < self._stop:
            raise HeaderError(f"JSON was expected: nothing more behind its object, found byte {self._here}.")

    def _plain_tensor(self) -> tuple[str, PlainTensor] | None:
        match = _TENSOR.match(self._data, self._here, self._stop)
        if match is None or match[1] == b"__metadata__":
            return None
        name, dtype, sizes, start, stop = match.groups()
        shape = self._shapes.get(sizes)
        if shape is None:
            if not _SHAPE.fullmatch(sizes) or sizes.endswith((b",", b" ")):
                return None
            shape = tuple(map(int, sizes.split(b","))) if sizes else ()
            if len(self._shapes) < _SHAPES_KEPT:
                self._shapes[sizes] = shape
        self._here = match.end()
        return name.decode(), (dtype.decode(), shape, int(start), int(stop))

    def _string(self, limit: int) -> str:
        self._skip_space()
        match = _PLAIN.match(self._data, self._here, self._stop)
        if match is None:
            value = self._decoded(limit)
            if not isinstance(value, str):
                raise HeaderError(f"JSON was expected: a string before byte {self._here}.")
            return value
        start, stop = match.span(1)
        if stop - start > limit:
            raise HeaderError(f"the text at byte {start} has {stop - start} bytes; at most {limit} are read.")
        self._here = match.end()
        return str(self._view[start:stop], "utf-8")

    def _decoded(self, limit: int) -> Any:
        """The value that begins here, from a window that grows until it holds all of it."""
        size = _FIRST_WINDOW
        while True:
            size = min(size, limit)
            window = self._view[self._here : min(self._here + size, self._stop)]
            text, _ = codecs.utf_8_decode(window, "strict", False)
            try:
                value, length = _decoder(text).raw_decode(text)
            except RecursionError:
                raise HeaderError("its JSON is nested too deeply.") from None
            except json.JSONDecodeError as error:
                if self._here + size >= self._stop:
                    raise HeaderError(f"JSON was expected: {error.msg} near byte {self._here + error.pos}.") from None
                if size == limit:
                    raise HeaderError(
                        f"the value at byte {self._here} is no JSON, or more than {limit} bytes."
                    ) from None
                size *= 8
            except ValueError as error:
                raise HeaderError(f"JSON was expected: {error}.") from None
            else:
                _check_characters(value, text, length)
                self._here += length if text.isascii() else len(text[:length].encode("utf-8"))
                return value

    def _expect(self, byte: bytes, what: str) -> None:
        if self._take(byte):
            return
        if byte == b"{":
            raise HeaderError(f"{what} was expected, found {type(self._decoded(MAX_ENTRY_BYTES)).__name__}.")
        raise HeaderError(f"JSON was expected: {what} at byte {self._here}.")

    def _take(self, byte: bytes) -> bool:
        found = self.starts(byte)
        self._here += found
        return found

    def _next_byte(self) -> bytes:
        """The byte behind white space, where reading goes on; a space at the end."""
        self._skip_space()
        return self._data[self._here : self._here + 1] if self._here < self._stop else b" "

    def _skip_space(self) -> None:
        if self._here < self._stop and self._data[self._here] <= 32:
            match = _SPACE.match(self._data, self._here, self._stop)
            self._here = match.end() if match else self._here

    def _check_utf8(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        for start in range(self._here, self._stop, _CHECK_BYTES):
            stop = min(start + _CHECK_BYTES, self._stop)
            before = len(decoder.getstate()[0])
            try:
                decoder.decode(self._view[start:stop], final=stop == self._stop)
            except UnicodeDecodeError as error:
                raise HeaderError(f"UTF-8 was expected, but byte {start - before + error.start} is not.") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _signed_zero_apart(digits: str) -> int | float:
    # Python reads -0 as the integer 0; the reference, like JSON Schema, does not count it among the integers.
    return -0.0 if digits == "-0" else int(digits)


_USUAL = json.JSONDecoder(object_pairs_hook=JsonObject, parse_constant=_refuse_constant)
_WITH_SIGNED_ZERO = json.JSONDecoder(
    object_pairs_hook=JsonObject, parse_constant=_refuse_constant, parse_int=_signed_zero_apart
)


def _decoder(text: str) -> json.JSONDecoder:
    return _WITH_SIGNED_ZERO if "-0" in text else _USUAL


def _check_characters(value: Any, text: str, length: int) -> None:
    if _SURROGATE.search(text, 0, length):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise HeaderError("a string holds half a surrogate pair, which is no character.") from None

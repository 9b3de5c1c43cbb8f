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

from lnsim.checkpoint.strict_json import JsonObject, check_characters, decoder_for
from lnsim.errors import HeaderError

__all__ = ["MAX_ENTRY_BYTES", "MAX_HELD_BYTES", "MAX_TEXT_BYTES", "HeaderText", "JsonObject", "RawTensor"]

MAX_ENTRY_BYTES = 1 << 20
"""Bytes of one tensor's entry, and of one name that has escapes in it."""

MAX_TEXT_BYTES = 1 << 24
"""Bytes of one text in the metadata; a text of ASCII without escapes costs its own bytes only and may be longer."""

MAX_HELD_BYTES = 112 << 20
"""Bytes that all that is kept of one header may take in memory: some 240,000 tensors, or 100 MB of plain metadata."""

RawTensor = tuple[bytes, bytes, bytes, bytes, bytes]
"""Name, dtype, sizes, start and stop of a tensor, letter by letter as they stand in the header."""

_CHECK_BYTES = 1 << 20
_FIRST_WINDOW = 1 << 10
_SPACE = re.compile(rb"[ \t\n\r]*+")
_PLAIN = re.compile(rb'"([^"\\\x00-\x1f]*+)"')
_ASCII = re.compile(rb"[\x00-\x7f]*+")
_METADATA = b"__metadata__"
_SIZE = rb"(0|[1-9][0-9]{0,18}+)"  # 19 digits always fit 64 bits; a longer number goes the careful way
_SIZES = rb"((?:(?:0|[1-9][0-9]{0,18}+)(?:, ?+(?=[0-9])|(?=\]))){0,16}+)"
_TENSOR = (
    rb'"((?!' + _METADATA + rb'")[ !#-\[\]-~]{0,1000}+)": ?+\{"dtype": ?+"([A-Z0-9_]++)", ?+"shape": ?+\['
    + _SIZES + rb'\], ?+"data_offsets": ?+\[' + _SIZE + rb", ?+" + _SIZE + rb"\]\}"
)  # fmt: skip
_ONE = re.compile(_TENSOR)
_RUN = re.compile(rb"(?:" + _TENSOR + rb", ?+){0,4096}+")  # so many at once cost little memory


class HeaderText:
    """The JSON of a header, read from front to back.

    Args:
        data: bytes that hold it.
        start: its first byte.
        stop: byte after its last.
        max_held: bytes that what is kept of it may take.

    Raises:
        HeaderError: when it is not UTF-8.
    """

    def __init__(self, data: bytes, start: int, stop: int, max_held: int = MAX_HELD_BYTES) -> None:
        self._data, self._here, self._stop = data, start, stop
        self._view = memoryview(data)
        self._max_held = max_held
        self._held = 0
        self._check_utf8()

    @property
    def here(self) -> int:
        """The byte that is read next."""
        return self._here

    def members(self) -> Iterator[str | list[RawTensor]]:
        """Keys of the object that begins here; or, for tensors in the usual spelling, whole runs of them at once.

        The value of a key comes next in the text, and the caller reads it before asking for more. A run holds key and
        value of each of its tensors.

        Raises:
            HeaderError: when this is no JSON object.
        """
        self._expect(b"{", "a JSON object")
        if self._take(b"}"):
            return
        while True:
            self._skip_space()
            run = self._run()
            if run:
                yield run
            else:
                name = self._string(MAX_ENTRY_BYTES)
                self._expect(b":", "':' behind a key")
                yield name
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
        is_long = match is not None and match.end() - match.start() > MAX_TEXT_BYTES
        if match is not None and is_long and _ASCII.fullmatch(self._data, *match.span(1)):
            self._here = match.end()
            return str(self._view[slice(*match.span(1))], "ascii")
        return self._string(MAX_TEXT_BYTES)

    def value(self, limit: int = MAX_ENTRY_BYTES) -> Any:
        """The value that begins here, objects as ``JsonObject``.

        Raises:
            HeaderError: when it is no JSON, or has more bytes than the limit.
        """
        self._skip_space()
        return self._decoded(limit)

    def hold(self, n_bytes: int) -> None:
        """Count memory that the caller keeps of what was read.

        Raises:
            HeaderError: when it gets too much.
        """
        self._held += n_bytes
        if self._held > self._max_held:
            raise HeaderError(f"what it lists takes more than {self._max_held} bytes of memory.")

    def end(self) -> None:
        """Check that nothing but white space follows."""
        self._skip_space()
        if self._here < self._stop:
            raise HeaderError(f"JSON was expected: nothing more behind its object, found byte {self._here}.")

    def _run(self) -> list[RawTensor]:
        """The tensors that stand here one behind the other in the usual spelling; the last one may end the object."""
        stop = self._last_of_run()
        run: list[RawTensor] = _ONE.findall(self._data, self._here, stop)
        self._here = stop
        return run

    def _last_of_run(self) -> int:
        """Byte behind the last tensor of a run that begins here, before its comma; here where there is none."""
        match = _RUN.match(self._data, self._here, self._stop)
        stop = self._here if match is None else match.end()
        last = _ONE.match(self._data, stop, self._stop)
        if last is not None:
            return last.end()
        return stop if stop == self._here else self._data.rindex(b",", self._here, stop)

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
                value, length = decoder_for(text).raw_decode(text)
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
                check_characters(value, text, length)
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

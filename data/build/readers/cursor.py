"""This module walks through bytes front to back and says what was being read when they run out."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from lnsim.errors import FormatError

__all__ = ["Cursor"]


@dataclass(slots=True)
class Cursor:
    """A position in the bytes of one file; all numbers are little-endian.

    Args:
        data: the whole file.
        where: the file and its format, as messages name it.
        position: the next byte to read.
        stop: the byte after the last that may be read; -1 for the end of the file.
    """

    data: bytes
    where: str
    position: int = 0
    stop: int = -1

    def __post_init__(self) -> None:
        if self.stop < 0:
            self.stop = len(self.data)

    def skip(self, count: int, what: str) -> int:
        """Step over ``count`` bytes and return where they start; raises FormatError when there are fewer."""
        start = self.position
        if count < 0 or start + count > self.stop:
            raise FormatError(
                f"Reading {self.where}: {what} takes {count} bytes from byte {start}, but the bytes end at "
                f"{self.stop}. The file is cut short, or not of this format: take it from its package again."
            )
        self.position = start + count
        return start

    def take(self, count: int, what: str) -> bytes:
        """The next ``count`` bytes."""
        start = self.skip(count, what)
        return bytes(self.data[start : start + count])

    def number(self, code: str, what: str) -> int:
        """The next number, an integer of struct's format ``code``."""
        value: int = struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]
        return value

    def real(self, code: str, what: str) -> float:
        """The next number, a float of struct's format ``code``."""
        value: float = struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]
        return value

    def text(self, count: int, what: str) -> str:
        """The next ``count`` bytes as UTF-8."""
        start = self.position
        try:
            return self.take(count, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise FormatError(f"Reading {self.where}: {what} at byte {start} is not UTF-8 ({error.reason}).") from error

    def bounded(self, value: int, low: int, high: int, what: str) -> int:
        """``value`` if it lies in ``[low, high]``; a hostile count must not become a long loop."""
        if not low <= value <= high:
            raise FormatError(f"Reading {self.where}: {what} is {value}, expected {low} to {high}.")
        return value

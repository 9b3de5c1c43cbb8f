"""This module reads one safetensors file on the Hub: its header, then ranges of it.

The file's address is resolved once and its target, often signed, serves every further range; when the target refuses,
the address is resolved again, since signatures expire.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # exported in all its versions, undeclared

from lnsim.checkpoint.header import MAX_HEADER_BYTES, Header, header_end, read_header
from lnsim.checkpoint.hub.answers import DeadAddressError, ForbiddenError
from lnsim.checkpoint.hub.transport import Body, Transport
from lnsim.checkpoint.ranges import ByteRange, Read
from lnsim.errors import HeaderError, RangeError

__all__ = ["FIRST_WINDOW", "RemoteShard"]

FIRST_WINDOW = 100_000
"""Bytes asked for first: 97 % of the headers on the Hub fit (huggingface_hub's own figure)."""


@dataclass(slots=True)
class RemoteShard:
    """One safetensors file on the Hub.

    Args:
        url: its address at the pinned commit.
        where: ``repo@commit/file``.
        transport: how to ask.
        start: the first bytes behind the header, as far as they came along with it.
        file_size: bytes of the file, as the server tells; one that was cut off has fewer than its header says.
    """

    url: str
    where: str
    transport: Transport
    start: bytes = field(default=b"", repr=False)
    file_size: int | None = None
    _header: Header | None = None
    _address: httpx.URL | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def header(self) -> Header:
        """Its header; read it first with ``read_header``."""
        if self._header is None:
            raise HeaderError(f"Reading {self.where}: its header has not been read yet.")
        return self._header

    def read_header(self, window: int = FIRST_WINDOW, longest: int = MAX_HEADER_BYTES) -> None:
        """Fetch the header from the file's first bytes, in one request where it fits the window.

        Args:
            window: bytes asked for first.
            longest: bytes that it may have; one that is longer is refused before it is fetched.
        """
        first = self._ask(ByteRange(0, window), may_be_clipped=True)
        stop = header_end(first.data, first.file_size, where=self.where)
        if stop > longest:
            raise HeaderError(
                f"Reading the header of {self.where}: at most {longest} bytes were expected for one of so many shards, "
                f"found {stop}."
            )
        data = first.data
        if stop > len(data):
            data += self._ask(ByteRange(len(data), stop)).data
        self._header = read_header(data, first.file_size, where=self.where)
        self.start, self.file_size = data[stop:], first.file_size

    def holding(self, header: Header) -> RemoteShard:
        """The same file with another of its headers, for other tensors."""
        return replace(self, _header=header, _lock=threading.Lock())

    def keep_only(self, names: Collection[str]) -> None:
        """Forget all tensors of the header but these."""
        self._header = self.header.narrowed(names)

    def read(self, read: Read) -> bytes:
        """The bytes of one planned read; no request is made for those that came along with the header."""
        first = self.header.buffer_start
        if read.span.stop <= first + len(self.start):
            return self.start[read.span.start - first : read.span.stop - first]
        return self._checked(read.span).data

    def _checked(self, span: ByteRange) -> Body:
        body = self._ask(span)
        if body.file_size != self.file_size:
            raise RangeError(
                f"Reading {self.where}: its header describes {self.file_size} bytes, the server serves a "
                f"file of {body.file_size}. The file was replaced while it was read; try again."
            )
        return body

    def _ask(self, span: ByteRange, *, may_be_clipped: bool = False) -> Body:
        """A range, from an address resolved anew where the one known is dead or refuses: signatures expire.

        Where a signature is good for so few uses that other reads have used up the fresh one as well, the last try is
        made with an address of its own.
        """
        address = self._known_address()
        for own in (False, True):
            try:
                return self.transport.get_range(
                    address, span, where=self.where, may_be_clipped=may_be_clipped, leave_if_dead=True
                )
            except (ForbiddenError, DeadAddressError):
                address = self._resolve() if own else self._known_address(instead_of=address)
        return self.transport.get_range(address, span, where=self.where, may_be_clipped=may_be_clipped)

    def _known_address(self, *, instead_of: httpx.URL | None = None) -> httpx.URL:
        with self._lock:
            if self._address is None or self._address is instead_of:
                self._address = self._resolve()
            return self._address

    def _resolve(self) -> httpx.URL:
        return self.transport.resolve(self.url, where=self.where)

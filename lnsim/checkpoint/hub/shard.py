"""This module reads one safetensors file on the Hub: its header, then ranges of it.

The file's address is resolved once and its target, often signed, serves every further range; when the target refuses,
the address is resolved again, since signatures expire. How much to ask for first is guessed from the names that an
index lists for the file.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # exported in all its versions, undeclared

from lnsim.checkpoint.format.header import LENGTH_BYTES, MAX_HEADER_BYTES, Header, header_end, read_header
from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.checkpoint.hub.answers import DeadAddressError, ForbiddenError
from lnsim.checkpoint.hub.transport import Transport
from lnsim.errors import HeaderError, RangeError

__all__ = ["FIRST_WINDOW", "RemoteShard", "Window"]

FIRST_WINDOW = 100_000  # bytes asked for first: 97 % of the headers on the Hub fit (huggingface_hub's own figure)
_AROUND = 120  # bytes around the entries: length field, braces, ``__metadata__`` as writers fill it, padding
_LEAST = 4096  # fewer bytes than this make no request cheaper
_MAX_HIDDEN_SIZE = 1 << 16
_SMALL_TENSORS = 2048  # bytes of a wider dtype that writers put before the norms, such as a router's correction bias
_LIKE_A_NORM = re.compile(r"(norm|(?:^|[._])ln)[^.]*\.(weight|bias|gamma|beta)$", re.IGNORECASE)


@dataclass(slots=True)
class RemoteShard:
    """One safetensors file on the Hub."""

    url: str
    where: str
    transport: Transport
    start: bytes = field(default=b"", repr=False)  # behind the header, as far as it came along with that
    file_size: int | None = None  # by the server: a file that was cut off has fewer bytes than its header says
    buffer_start: int = 0  # where ``start`` begins
    _address: httpx.URL | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read_header(self, window: int = FIRST_WINDOW, longest: int = MAX_HEADER_BYTES) -> Header:
        """Fetch the header from the file's first bytes, in one request where it fits the window.

        One of more bytes than ``longest`` is refused before it is fetched.
        """
        data, self.file_size = self._ask(ByteRange(0, window), may_be_clipped=True)
        stop = header_end(data, self.file_size, where=self.where)
        if stop > longest:
            raise HeaderError(
                f"Reading the header of {self.where}: at most {longest} bytes were expected for one of so many shards, "
                f"found {stop}."
            )
        if stop > len(data):
            data += self._ask(ByteRange(len(data), stop))[0]
        self.start, self.buffer_start = data[stop:], stop
        return read_header(data, self.file_size, where=self.where)

    def read(self, span: ByteRange) -> bytes:
        """A range behind the header; no request is made for what came along with that."""
        first = self.buffer_start
        if span.stop <= first + len(self.start):
            return self.start[span.start - first : span.stop - first]
        data, file_size = self._ask(span)
        if file_size != self.file_size:
            raise RangeError(
                f"Reading {self.where}: its header describes {self.file_size} bytes, the server serves a "
                f"file of {file_size}. The file was replaced while it was read; try again."
            )
        return data

    def _ask(self, span: ByteRange, *, may_be_clipped: bool = False) -> tuple[bytes, int]:
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


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of a checkpoint's headers before they are read, and so how many bytes to ask for first.

    A header is its names and, for each, some eighty bytes of dtype, shape and offsets. One shard's header shows how
    many it is in this checkpoint. Where a norm opens the byte buffer, the window takes it along: that saves a request a
    shard.
    """

    per_entry: float = 84.0  # bytes of an entry beside its name
    norm_bytes: int = 0  # of one norm vector; 0 where that is not known

    @classmethod
    def learnt(cls, header: Header) -> Window:
        """What the header of one shard shows about the others'."""
        names = list(header.tensors)
        text = header.buffer_start - LENGTH_BYTES - sum(map(len, names))
        sizes = [info.n_bytes for name, info in header.tensors.items() if _like_a_norm(name)]
        return cls(text / max(1, len(names)) + 1, max(sizes) if sizes else _row_bytes(header))

    def size(self, names: Collection[str]) -> int:
        """Bytes to ask for first of a shard that holds these tensors."""
        header = sum(len(name.encode("utf-8", "surrogatepass")) for name in names) + self.per_entry * len(names)
        return max(_LEAST, int(header) + _AROUND + self._norms_in_front(sorted(names)))

    def _norms_in_front(self, names: Iterable[str]) -> int:
        """Bytes of the norms that come first, in the order of the names that writers use within a dtype."""
        count = 0
        for name in names:
            if not _like_a_norm(name):
                break
            count += 1
        return count * self.norm_bytes + _SMALL_TENSORS if count and self.norm_bytes else 0


def _row_bytes(header: Header) -> int:
    """Bytes of a vector of the hidden size, which is a side of nearly every matrix; 0 where there is no matrix."""
    matrices = [info for info in header.tensors.values() if len(info.shape) == 2 and info.n_bytes]
    sides = Counter(side for info in matrices for side in info.shape)
    if not matrices:
        return 0
    hidden_size = max(sides, key=lambda side: (sides[side], side))
    widest = max(info.n_bytes // (info.shape[0] * info.shape[1]) for info in matrices)
    return min(hidden_size, _MAX_HIDDEN_SIZE) * max(1, widest)


def _like_a_norm(name: str) -> bool:
    lower = name.lower()  # the pattern alone takes 4 us a name, and some checkpoints have 100,000
    return ("norm" in lower or "ln" in lower) and _LIKE_A_NORM.search(name) is not None

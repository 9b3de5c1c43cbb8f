"""This module plans which byte ranges of a file to read for the tensors wanted, and cuts what comes back.

Ranges are half-open, ``[start, stop)``, and count from the start of the file. Only ``ByteRange.http`` knows the
inclusive form of HTTP (RFC 9110, section 14.1.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lnsim.checkpoint.format.header import Header
from lnsim.errors import RangeError, TensorNotFoundError

# Bytes between two tensors that are worth reading to save a request: less than a round trip takes to carry.
DEFAULT_MAX_GAP = 16 * 1024


@dataclass(frozen=True, slots=True, order=True)
class ByteRange:
    """The bytes ``[start, stop)`` of a file; RangeError where ``start`` is negative or ``stop`` not behind it.

    >>> ByteRange(8, 108).http
    'bytes=8-107'
    """

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise RangeError(f"A byte range needs 0 <= start < stop; found [{self.start}, {self.stop}).")

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def http(self) -> str:
        """Value of the HTTP header ``Range``, whose end is inclusive."""
        return f"bytes={self.start}-{self.stop - 1}"


Ask = Callable[[ByteRange], bytes]  # reads exactly this range of a file


@dataclass(frozen=True, slots=True)
class Read:
    """One range to read, and the tensors that lie in it: name and own bytes, all inside ``span``, ascending."""

    span: ByteRange
    parts: tuple[tuple[str, ByteRange], ...]


def tensor_range(header: Header, name: str) -> ByteRange | None:
    """Bytes of a tensor in its file, None where it has none; raises TensorNotFoundError."""
    if name not in header.tensors:
        raise TensorNotFoundError(f"Looking up tensor {name!r:.200}: the header lists {len(header.tensors)} others.")
    info = header.tensors[name]
    if not info.n_bytes:
        return None
    return ByteRange(header.buffer_start + info.start, header.buffer_start + info.stop)


def part_range(header: Header, name: str, start: int, stop: int) -> ByteRange:
    """The bytes ``[start, stop)`` of a tensor, counted from its first; raises RangeError, TensorNotFoundError."""
    whole = tensor_range(header, name)
    if whole is None or not 0 <= start < stop <= len(whole):
        n_bytes = 0 if whole is None else len(whole)
        raise RangeError(f"Reading bytes [{start}, {stop}) of tensor {name!r:.200}: it has {n_bytes} bytes.")
    return ByteRange(whole.start + start, whole.start + stop)


def plan_reads(header: Header, names: Iterable[str], *, max_gap: int = DEFAULT_MAX_GAP) -> tuple[Read, ...]:
    """The fewest reads that cover the tensors, over gaps of at most ``max_gap`` bytes; raises TensorNotFoundError."""
    parts = [(name, part) for name in names if (part := tensor_range(header, name)) is not None]
    groups: list[list[tuple[str, ByteRange]]] = []
    stop = 0
    for name, part in sorted(parts, key=lambda item: item[1]):
        if not groups or part.start - stop > max_gap:
            groups.append([])
            stop = 0
        groups[-1].append((name, part))
        stop = max(stop, part.stop)  # tensors of PyTorch may lie within another
    ends = (max(part.stop for _, part in group) for group in groups)
    return tuple(Read(ByteRange(group[0][1].start, end), tuple(group)) for group, end in zip(groups, ends, strict=True))


def slice_reads(reads: Iterable[tuple[Read, bytes]]) -> dict[str, bytes]:
    """Bytes of each tensor, cut from what the reads brought; RangeError for another number than was asked for."""
    found: dict[str, bytes] = {}
    for read, data in reads:
        if len(data) != len(read.span):
            raise RangeError(f"Cutting {read.span}: {len(read.span)} bytes were expected, {len(data)} came.")
        for name, part in read.parts:
            found[name] = bytes(data[part.start - read.span.start : part.stop - read.span.start])
    return found

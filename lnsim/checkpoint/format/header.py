"""This module turns the first bytes of a safetensors file into a validated, immutable header.

Format: https://github.com/huggingface/safetensors#format. A file is an 8-byte little-endian length N, N bytes of
JSON, then the byte buffer, which is not needed: with ``file_size`` the header is checked against the file's end all the
same. The reference for what is valid is ``safetensors.deserialize`` (0.8). The two agree but for what is refused here
alone: a tensor name that comes twice, since two readers could see two different tensors, and what is made to take
memory, so that parsing takes under 256 MB for any input: a tensor's entry over 1 MiB, a metadata text over 16 MiB that
is not plain ASCII, over 112 MiB once parsed (some 240,000 tensors, or 100 MB of plain metadata, fit).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import msgspec

from lnsim.checkpoint.format.header_json import (
    DTYPE_BITS,
    FORMATS,
    SIZE_LIMIT,
    Memory,
    quoted,
    read_entries,
    wrong_dtype,
)
from lnsim.errors import HeaderError

LENGTH_BYTES = 8  # of the length field that opens a file
MAX_HEADER_BYTES = 100_000_000  # the reference refuses a longer JSON; so do we
DISGUISE_BYTES = 64  # first bytes of a file that are enough to tell what it really is

_DISGUISES = {re.compile(pattern.encode()): text for pattern, text in FORMATS["disguises"].items()}
# ggml's quantised types: values a block, and bits a block. No norm is read of them.
QUANTISED: Mapping[str, tuple[int, int]] = {
    name: (int(values), 8 * n_bytes)
    for values, kinds in FORMATS["ggml"]["blocks"].items()
    for name, n_bytes in kinds.items()
}


class TensorInfo(msgspec.Struct, frozen=True, gc=False):
    """One tensor as the header describes it: the bytes ``[start, stop)`` of the byte buffer, as ``data_offsets`` say.

    Raises HeaderError when ``stop - start`` is not the size that shape and dtype need.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.stop:
            raise HeaderError(
                f"Tensor {quoted(self.name)}: data offsets must ascend; found [{self.start}, {self.stop}]."
            )
        expected = n_bytes_of(self.name, self.dtype, self.shape)
        if self.stop - self.start != expected:
            raise HeaderError(
                f"Tensor {quoted(self.name)}: shape {list(self.shape)} of {self.dtype} needs {expected} bytes, "
                f"but its data offsets [{self.start}, {self.stop}] hold {self.stop - self.start}."
            )

    @property
    def n_bytes(self) -> int:
        """Bytes in the buffer."""
        return self.stop - self.start


def n_bytes_of(name: str, dtype: str, shape: Sequence[int]) -> int:
    """Bytes that shape and dtype need; sizes that no 64-bit machine can count are errors, as in the reference."""
    per_block, block_bits = QUANTISED[dtype] if dtype in QUANTISED else (1, DTYPE_BITS.get(dtype, 0))
    if not block_bits:
        raise HeaderError(wrong_dtype(name, dtype))
    if shape and shape[-1] % per_block:
        raise HeaderError(
            f"Tensor {quoted(name)}: rows of whole blocks of {per_block} were expected, found {list(shape)}."
        )
    count = 1
    for size in shape:
        count *= size
        if count >= SIZE_LIMIT:
            break
    bits = count // per_block * block_bits
    if bits >= SIZE_LIMIT:
        raise HeaderError(f"Tensor {quoted(name)}: shape {list(shape)!s:.80} overflows 64 bits.")
    if bits % 8:
        raise HeaderError(f"Tensor {quoted(name)}: {bits} bits of {dtype} do not fill whole bytes.")
    return bits // 8


class Refused(msgspec.Struct, frozen=True):
    """The entry of a tensor whose end in the byte buffer is told, and whose dtype, shape and size do not fit."""

    stop: int
    reason: str


@dataclass(frozen=True, slots=True)
class Header:
    """A valid header: tensors that fill the byte buffer without hole or overlap; else HeaderError."""

    tensors: Mapping[str, TensorInfo]  # by name, in the order of the file's JSON
    metadata: Mapping[str, str]  # the free texts of ``__metadata__``
    buffer_start: int  # first byte of the byte buffer in the file: 8 plus the length of the JSON
    refused: Mapping[str, Refused] = field(default_factory=dict)  # what cannot be read; ``parse_header`` lets none pass
    buffer_size: int = -1  # bytes of the byte buffer; by default what the tensors fill
    checks: Mapping[str, int] = field(default_factory=dict)  # CRC-32 of the bytes of a tensor, where the file tells it

    def __post_init__(self) -> None:
        for name in ("tensors", "metadata", "refused", "checks"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        if self.buffer_size < 0:
            n_bytes = _contiguous_size(self.tensors.values(), holes=bool(self.refused))
            object.__setattr__(self, "buffer_size", max([n_bytes, *(one.stop for one in self.refused.values())]))

    @property
    def file_size(self) -> int:
        """Bytes of the whole file, as the header tells them."""
        return self.buffer_start + self.buffer_size

    def narrowed(self, names: Collection[str]) -> Header:
        """The same header with only these of its tensors, at their places in the same byte buffer."""
        return replace(self, tensors={name: info for name, info in self.tensors.items() if name in names}, refused={})

    def cut_off(self, file_size: int) -> Header:
        """The same header of a file that ends too early: what lies beyond its end is among the refused."""
        reason = _wrong_end(self, file_size)
        lost = {
            name: Refused(info.stop, reason)
            for name, info in self.tensors.items()
            if self.buffer_start + info.stop > file_size
        }
        return replace(self.narrowed(self.tensors.keys() - lost.keys()), refused={**self.refused, **lost})

    def __repr__(self) -> str:
        return f"Header({len(self.tensors)} tensors, a file of {self.file_size} bytes)"


def parse_header(
    data: bytes, file_size: int | None = None, *, where: str = "a safetensors file", lenient: bool = False
) -> Header:
    """Parse and validate the header at the start of a file, ``data`` going at least as far as the header does.

    With ``file_size``, in bytes, the last tensor's end is held against that of the file; ``where`` is the file, for
    messages. A lenient reading keeps apart, with the reasons, tensors of an unknown dtype or a wrong size, and those
    beyond the end of a file that was cut off, so that what is sound can be read. Raises HeaderError when the header is
    not valid, or ``data`` ends before it does.

    >>> entry = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    >>> parse_header(len(entry).to_bytes(8, "little") + entry, file_size=8 + len(entry) + 8).tensors["w"].shape
    (2,)
    """
    with _named(where, data if lenient else b""):
        header = _parse(data, file_size, lenient)
        if lenient and file_size is not None and file_size < header.file_size:
            return header.cut_off(file_size)
        if header.refused:  # whose sizes may be what is wrong
            return header
        if file_size is not None and file_size != header.file_size:
            raise HeaderError(_wrong_end(header, file_size))
        if len(data) > header.file_size:
            raise HeaderError(f"its tensors end at byte {header.file_size}, but {len(data)} bytes were given.")
        return header


def header_end(data: bytes, file_size: int | None, *, where: str) -> int:
    """As ``header_stop``, with the file's name in the error and what the file really is, if its first bytes tell."""
    with _named(where, data):
        return header_stop(data, file_size)


def header_stop(data: bytes, file_size: int | None = None) -> int:
    """Byte after the header, by the first 8 bytes; HeaderError for fewer, or a length past the limit or the file."""
    if len(data) < LENGTH_BYTES:
        raise HeaderError(f"the length field needs {LENGTH_BYTES} bytes, the file has {len(data)}.")
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise HeaderError(f"a length of at most {MAX_HEADER_BYTES} bytes was expected, found {length}.")
    if file_size is not None and LENGTH_BYTES + length > file_size:
        raise HeaderError(f"the length field says {length} bytes, which is past the end of a {file_size}-byte file.")
    return LENGTH_BYTES + length


@contextmanager
def _named(where: str, data: bytes) -> Iterator[None]:
    """Put the file's name before an error, and what the file really is where the data's first bytes tell."""
    try:
        yield
    except HeaderError as error:
        kind = _text_disguise(data[:DISGUISE_BYTES])
        raise HeaderError(f"Reading the header of {where}: {f'it is {kind}.' if kind else error}") from None


def _contiguous_size(tensors: Iterable[TensorInfo], *, holes: bool) -> int:
    """Bytes that the tensors fill together, one behind the other; holes may be where refused ones lie."""
    previous = 0
    for info in sorted(tensors, key=attrgetter("start", "stop")):
        if info.start < previous or (info.start > previous and not holes):
            kind = "a hole" if info.start > previous else "an overlap"
            raise HeaderError(
                f"tensor {quoted(info.name)} should start at byte {previous} of the buffer, where the one before it "
                f"ends, but starts at {info.start}: {kind}."
            )
        previous = info.stop
    return previous


def _wrong_end(header: Header, file_size: int) -> str:
    return f"its tensors end at byte {header.file_size}, the file at byte {file_size}."


def _parse(data: bytes, file_size: int | None, lenient: bool) -> Header:
    stop = header_stop(data, file_size)
    if len(data) < stop:
        raise HeaderError(f"the header ends at byte {stop}, but only {len(data)} bytes of the file were given.")
    memory, metadata = Memory(), dict[str, str]()
    tensors: dict[str, TensorInfo] = {}
    refused: dict[str, Refused] = {}
    known: dict[Any, Any] = {}  # hundreds of experts share a few dtypes and shapes, each in memory once
    last = 0
    for name, dtype, shape, start, end in read_entries(
        memoryview(data)[LENGTH_BYTES:stop], LENGTH_BYTES, memory, metadata
    ):
        try:
            if dtype in QUANTISED:
                raise HeaderError(wrong_dtype(name, dtype))
            begin, last = last if start == last else start, end
            dtype, shape = known.setdefault(dtype, dtype), known.setdefault(shape, shape)
            tensors[name] = TensorInfo(name, dtype, shape, begin, end)
        except HeaderError as error:
            if not lenient or start > end:
                raise
            refused[name] = Refused(end, str(error))
            memory.hold(2 * sys.getsizeof(refused[name].reason))  # once more in the error that is made of it
    return Header(tensors, metadata, stop, refused)


def disguise(start: bytes) -> str | None:
    """What a file that begins so really is, and what to do; None where its first bytes do not tell.

    >>> disguise(b"GGUF\\x03\\x00\\x00\\x00")
    'a GGUF file: give it the ending .gguf'
    """
    return next((text for pattern, text in _DISGUISES.items() if pattern.match(start)), None)


def _text_disguise(start: bytes) -> str | None:
    """The same for a file that should begin with the length of a header, which is never plain text."""
    shown = start.removeprefix(b"\xef\xbb\xbf")[:40].decode("ascii", "replace").strip()
    if len(start) >= 8 and re.match(rb"(\xef\xbb\xbf)?[\t\n\r -~]{5}", start):
        return disguise(start) or f"a text that begins with {shown!r}, not weights"
    if len(start) >= 8 and not start.strip(b"\0"):
        return "nothing but zeros where it begins, as a download has that is not finished"
    return disguise(start)

"""This module turns the first bytes of a safetensors file into a validated, immutable header.

Format: https://github.com/huggingface/safetensors#format. A file is an 8-byte little-endian length N, N bytes of
JSON, then the byte buffer. The reference for what is valid is ``safetensors.deserialize`` (0.8), and the two agree
except where this list says so:

=======================  ===========================  =====================================================
case                     reference                    here
=======================  ===========================  =====================================================
duplicate tensor name    accepted, the last one wins  refused: two readers could see two different tensors
tensor entry over 1 MiB  accepted                     refused: a shape or an unknown key made to take memory
metadata text over       accepted                     refused, unless it is plain ASCII
16 MiB
over 112 MiB in memory,  accepted                     refused: some 240,000 tensors, or 100 MB of plain metadata, fit
once parsed
unknown inner key        accepted                     accepted and ignored, so that newer writers stay readable
leading white space      accepted                     accepted: the bytes are unambiguous
null metadata            accepted                     accepted, same as no metadata
empty tensor name        accepted                     accepted: it can be no norm, and other tensors stay readable
=======================  ===========================  =====================================================

The limits keep what parsing takes under 256 MB for any input, the header's own bytes (at most 100 MB) included. The
buffer itself is not needed: with ``file_size`` the header is checked against the file's end all the same.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from lnsim.checkpoint.header_json import HeaderText, JsonObject, RawTensor
from lnsim.errors import HeaderError

__all__ = [
    "DTYPE_BITS",
    "LENGTH_BYTES",
    "MAX_HEADER_BYTES",
    "Header",
    "TensorInfo",
    "header_stop",
    "parse_header",
    "read_entries",
]

LENGTH_BYTES = 8
"""Bytes of the length field that opens a file."""

MAX_HEADER_BYTES = 100_000_000
"""The reference refuses a longer JSON; so do we."""

DTYPE_BITS: Mapping[str, int] = MappingProxyType(
    {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
    | dict.fromkeys(
        ("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"),
        8,
    )
    | dict.fromkeys(("I16", "U16", "F16", "BF16"), 16)
    | dict.fromkeys(("I32", "U32", "F32"), 32)
    | dict.fromkeys(("I64", "U64", "F64", "C64"), 64)
)
"""Bits of one element, for every dtype of the format."""

_METADATA_KEY = "__metadata__"
_FIELDS = ("dtype", "shape", "data_offsets")
_U64_LIMIT = 1 << 64
_MAX_DEPTH_OF_UNKNOWN = 125  # the reference allows 127 levels, and the file and the tensor's entry are two of them
_BYTES_OF_AN_ITEM = 120  # its place in a dict, beside key and value
_BYTES_OF_A_TEXT = 56  # beside its letters
_BYTES_OF_A_TENSOR = 400  # its TensorInfo with all numbers, its places in two dicts and in the order of the offsets


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor as the header describes it.

    Args:
        name: tensor name.
        dtype: the format's name of the dtype, a key of ``DTYPE_BITS``.
        shape: dimensions, row-major; empty for a scalar.
        start: first byte, relative to the byte buffer (the format's ``data_offsets``).
        stop: byte after the last, relative to the byte buffer.

    Raises:
        HeaderError: when ``stop - start`` is not the size that shape and dtype need.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.stop:
            raise HeaderError(
                f"Tensor {_quoted(self.name)}: data offsets must ascend; found [{self.start}, {self.stop}]."
            )
        expected = _n_bytes(self)
        if self.stop - self.start != expected:
            raise HeaderError(
                f"Tensor {_quoted(self.name)}: shape {list(self.shape)} of {self.dtype} needs {expected} bytes, "
                f"but its data offsets [{self.start}, {self.stop}] hold {self.stop - self.start}."
            )

    @property
    def n_bytes(self) -> int:
        """Bytes in the buffer."""
        return self.stop - self.start


@dataclass(frozen=True, slots=True)
class Header:
    """A valid header: tensors that fill the byte buffer without hole or overlap.

    Args:
        tensors: by name, in the order of the file's JSON.
        metadata: the free text map ``__metadata__``.
        buffer_start: first byte of the byte buffer in the file, that is 8 plus the length of the JSON.
    """

    tensors: Mapping[str, TensorInfo]
    metadata: Mapping[str, str]
    buffer_start: int
    buffer_size: int = field(init=False)
    """Bytes of the byte buffer, which is where the last tensor ends."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))
        object.__setattr__(self, "buffer_size", _contiguous_size(self.tensors.values()))

    @property
    def file_size(self) -> int:
        """Bytes of the whole file, as the header tells them."""
        return self.buffer_start + self.buffer_size

    def fits(self, file_size: int) -> bool:
        """Whether a file of this size can have this header, once its JSON is padded to a whole number of 8 bytes."""
        return 0 <= file_size - self.file_size < LENGTH_BYTES

    def moved(self, buffer_start: int) -> Header:
        """The same header before a byte buffer that starts elsewhere; its tensors need no second check."""
        return self._changed(tensors=self.tensors, buffer_start=buffer_start)

    def narrowed(self, names: Collection[str]) -> Header:
        """The same header with only these of its tensors, at their places in the same byte buffer."""
        kept = {name: info for name, info in self.tensors.items() if name in names}
        return self._changed(tensors=MappingProxyType(kept), buffer_start=self.buffer_start)

    def _changed(self, *, tensors: Mapping[str, TensorInfo], buffer_start: int) -> Header:
        other = _new(Header)
        values = {"tensors": tensors, "buffer_start": buffer_start}
        for name in ("tensors", "metadata", "buffer_start", "buffer_size"):
            object.__setattr__(other, name, values.get(name, getattr(self, name)))
        return other


def parse_header(data: bytes, file_size: int | None = None, *, where: str = "a safetensors file") -> Header:
    """Parse and validate the header at the start of a file.

    Args:
        data: the start of the file, at least as far as the header goes; more does no harm.
        file_size: bytes of the whole file, checked against the last tensor's end; None skips this check.
        where: the file, for messages, as ``repo@commit/file``.

    Raises:
        HeaderError: when the header is not valid, or ``data`` ends before it does.

    >>> entry = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    >>> parse_header(len(entry).to_bytes(8, "little") + entry, file_size=8 + len(entry) + 8).tensors["w"].shape
    (2,)
    """
    try:
        stop = header_stop(data, file_size)
        if len(data) < stop:
            raise HeaderError(f"the header ends at byte {stop}, but only {len(data)} bytes of the file were given.")
        text = HeaderText(data, LENGTH_BYTES, stop)
        tensors, metadata = read_entries(text)
        text.end()
        header = Header(tensors, metadata, stop)
        _check_end(header, len(data), file_size)
    except HeaderError as error:
        raise HeaderError(f"Reading the header of {where}: {error}") from None
    return header


def header_stop(data: bytes, file_size: int | None = None) -> int:
    """Byte after the header, which is also the first of the byte buffer; needs the file's first 8 bytes only.

    Raises:
        HeaderError: when there are fewer than 8 bytes, or the length is over the limit or past the file's end.
    """
    if len(data) < LENGTH_BYTES:
        raise HeaderError(f"the length field needs {LENGTH_BYTES} bytes, the file has {len(data)}.")
    length = int.from_bytes(data[:LENGTH_BYTES], "little")
    if length > MAX_HEADER_BYTES:
        raise HeaderError(f"a length of at most {MAX_HEADER_BYTES} bytes was expected, found {length}.")
    if file_size is not None and LENGTH_BYTES + length > file_size:
        raise HeaderError(f"the length field says {length} bytes, which is past the end of a {file_size}-byte file.")
    return LENGTH_BYTES + length


def read_entries(text: HeaderText) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """Tensors and metadata of the header's JSON that begins here, each tensor checked by itself.

    Raises:
        HeaderError: what is wrong with it.
    """
    tensors: dict[str, TensorInfo] = {}
    metadata: dict[str, str] | None = None
    for found in text.members():
        if isinstance(found, list):
            _add_run(text, found, tensors)
        elif found == _METADATA_KEY:
            if metadata is not None:
                raise HeaderError(f"'{_METADATA_KEY}' stands there twice.")
            metadata = _read_metadata(text)
        elif found in tensors:
            raise HeaderError(_twice(found))
        else:
            tensors[found] = _read_tensor(found, text.value())
            text.hold(_BYTES_OF_A_TENSOR + sys.getsizeof(found))
    return tensors, metadata or {}


def _add_run(text: HeaderText, run: list[RawTensor], tensors: dict[str, TensorInfo]) -> None:
    """Add tensors in the usual spelling: hundreds of experts share a few dtypes and shapes, which are read once."""
    text.hold(_BYTES_OF_A_TENSOR * len(run) + sum(_BYTES_OF_A_TEXT + len(raw[0]) for raw in run))
    known: dict[tuple[bytes, bytes], tuple[str, tuple[int, ...], int]] = {}
    stop = 0
    for raw_name, dtype, sizes, start_text, stop_text in run:
        name = raw_name.decode()
        if name in tensors:
            raise HeaderError(_twice(name))
        start, previous = int(start_text), stop
        if start == previous:
            start = previous  # one integer in memory for both
        stop = int(stop_text)
        kind = known.get((dtype, sizes))
        if kind is not None and stop - start == kind[2]:
            tensors[name] = _checked_before(name, kind[0], kind[1], start, stop)
            continue
        if dtype.decode() not in DTYPE_BITS:
            raise HeaderError(_wrong_dtype(name, dtype.decode()))
        shape = tuple(map(int, sizes.split(b","))) if sizes else ()
        info = tensors[name] = TensorInfo(name, dtype.decode(), shape, start, stop)
        known[dtype, sizes] = info.dtype, info.shape, info.n_bytes


def _checked_before(name: str, dtype: str, shape: tuple[int, ...], start: int, stop: int) -> TensorInfo:
    """A TensorInfo whose dtype, shape and size were checked together before; its checks are half its cost."""
    info = _new(TensorInfo)
    _set_name(info, name)
    _set_dtype(info, dtype)
    _set_shape(info, shape)
    _set_start(info, start)
    _set_stop(info, stop)
    return info


_new = object.__new__
_set_name, _set_dtype, _set_shape, _set_start, _set_stop = (
    getattr(TensorInfo, slot).__set__ for slot in ("name", "dtype", "shape", "start", "stop")
)


def _twice(name: str) -> str:
    return f"tensor {_quoted(name)} stands there twice; its bytes would be ambiguous."


def _read_metadata(text: HeaderText) -> dict[str, str]:
    if not text.starts(b"{"):
        if text.value() is None:
            return {}
        raise HeaderError(f"'{_METADATA_KEY}' must map strings to strings.")
    found: dict[str, str] = {}
    for key in text.members():
        if isinstance(key, list) or not text.starts(b'"'):
            raise HeaderError(f"'{_METADATA_KEY}' must map strings to strings.")
        found[key] = text.text()
        text.hold(_BYTES_OF_AN_ITEM + sys.getsizeof(key) + sys.getsizeof(found[key]))
    return found


def _wrong_dtype(name: str, dtype: object) -> str:
    return f"tensor {_quoted(name)}: dtype must be one of {', '.join(DTYPE_BITS)}; found {dtype!r:.80}."


def _read_tensor(name: str, value: Any) -> TensorInfo:
    fields = _fields(name, value)
    dtype, shape, offsets = (fields[key] for key in _FIELDS)
    if isinstance(dtype, JsonObject) and len(dtype) == 1 and dtype[0][1] is None:
        dtype = dtype[0][0]  # serde's long spelling of a bare word, which the reference takes as well
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise HeaderError(_wrong_dtype(name, dtype))
    if not _is_sizes(shape):
        raise HeaderError(f"tensor {_quoted(name)}: shape must list whole numbers from 0; found {shape!r:.80}.")
    if not _is_sizes(offsets) or len(offsets) != 2:
        raise HeaderError(f"tensor {_quoted(name)}: data_offsets must be two whole numbers; found {offsets!r:.80}.")
    return TensorInfo(name, dtype, tuple(shape), offsets[0], offsets[1])


def _fields(name: str, value: Any) -> dict[str, Any]:
    """The three fields of a tensor's entry, which may also be a list of them in order, as the reference takes it."""
    if type(value) is list and len(value) == len(_FIELDS):
        return dict(zip(_FIELDS, value, strict=True))
    if not isinstance(value, JsonObject):
        raise HeaderError(f"tensor {_quoted(name)}: an object with {', '.join(_FIELDS)} was expected.")
    found: dict[str, Any] = {}
    for key, content in value:
        if key not in _FIELDS:
            _check_unknown(name, key, content)
        elif key in found:
            raise HeaderError(f"tensor {_quoted(name)}: '{key}' stands there twice.")
        else:
            found[key] = content
    missing = [key for key in _FIELDS if key not in found]
    if missing:
        raise HeaderError(f"tensor {_quoted(name)}: {', '.join(missing)} missing.")
    return found


def _is_sizes(value: Any) -> bool:
    # type() and not isinstance(): True is an int to Python, and no size.
    return type(value) is list and all(type(size) is int and 0 <= size < _U64_LIMIT for size in value)


def _check_unknown(name: str, key: str, content: Any) -> None:
    """An ignored value must still be JSON that the reference can hold: finite numbers, limited depth."""
    for value, depth in _walk(content):
        if depth > _MAX_DEPTH_OF_UNKNOWN:
            raise HeaderError(f"tensor {_quoted(name)}: {_quoted(key)} is nested too deeply.")
        if type(value) in (int, float) and not _fits_double(value):
            raise HeaderError(f"tensor {_quoted(name)}: {_quoted(key)} holds a number out of range.")


def _walk(content: Any) -> Iterator[tuple[Any, int]]:
    """Every value below ``content`` with its depth, without recursion."""
    pending = [(content, 0)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, list):
            depth += 1
            inner = (item for _, item in value) if isinstance(value, JsonObject) else value
            pending.extend((item, depth) for item in inner)
        yield value, depth


def _fits_double(value: int | float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _n_bytes(info: TensorInfo) -> int:
    """Bytes that shape and dtype need; sizes that no 64-bit machine can count are errors, as in the reference."""
    count = 1
    for size in info.shape:
        count *= size
        if count >= _U64_LIMIT:
            break
    bits = count * DTYPE_BITS[info.dtype]
    if bits >= _U64_LIMIT:
        raise HeaderError(f"Tensor {_quoted(info.name)}: shape {list(info.shape)!s:.80} overflows 64 bits.")
    if bits % 8:
        raise HeaderError(f"Tensor {_quoted(info.name)}: {bits} bits of {info.dtype} do not fill whole bytes.")
    return bits // 8


def _contiguous_size(tensors: Iterable[TensorInfo]) -> int:
    """Bytes that the tensors fill together, one behind the other."""
    previous = 0
    for info in sorted(tensors, key=attrgetter("start", "stop")):
        if info.start != previous:
            kind = "a hole" if info.start > previous else "an overlap"
            raise HeaderError(
                f"tensor {_quoted(info.name)} should start at byte {previous} of the buffer, where the one before it "
                f"ends, but starts at {info.start}: {kind}."
            )
        previous = info.stop
    return previous


def _check_end(header: Header, n_given: int, file_size: int | None) -> None:
    expected = header.file_size
    if file_size is not None and file_size != expected:
        raise HeaderError(f"its tensors end at byte {expected}, the file at byte {file_size}.")
    if n_given > expected:
        raise HeaderError(f"its tensors end at byte {expected}, but {n_given} bytes were given.")


def _quoted(name: str) -> str:
    """A name from a file, made safe and short for a message."""
    return repr(name if len(name) <= 120 else name[:117] + "...")

"""This module turns the start of a GGUF file, version 2 or 3, into a header like that of a safetensors file.

Format: ggml's docs/gguf.md. A magic, the version, the numbers of tensors and of key-value pairs; the pairs, among them
whole vocabularies; then of each tensor its name, dimensions (the fastest first), type and offset; after padding the
data, from which offsets count. Nothing but the pairs' own lengths tells where the tensors are listed, so all of them
are walked over. They are read in pieces and forgotten: single values are kept, arrays never are.

llama.cpp leaves norms in F32 whatever the matrices become, so a GGUF file holds the γ of the checkpoint that it was
made of, each value converted exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import calcsize, unpack, unpack_from
from typing import Any

from lnsim.checkpoint.format.header import (
    DISGUISE_BYTES,
    MAX_HEADER_BYTES,
    Header,
    Refused,
    TensorInfo,
    disguise,
    n_bytes_of,
)
from lnsim.checkpoint.format.header_json import FORMATS, quoted
from lnsim.checkpoint.format.ranges import Ask, ByteRange
from lnsim.errors import HeaderError, named

GGUF_FORMAT = "gguf"  # what ``format`` is in the metadata of such a header
FIRST_BYTES = 1 << 20  # to ask for first: a header with a vocabulary has 2 to 10 MB

_MAX_PAIRS, _MAX_TENSORS, _MAX_ITEMS = 1 << 16, 200_000, 1 << 24
_MAX_NAME, _MAX_KEPT = 1 << 10, 1 << 10  # bytes of a key or a tensor's name, and of a text that is kept
_MAX_ALIGNMENT = 1 << 20
_MAX_DEPTH = 8  # arrays of arrays
_AT_LEAST = 1 << 18  # bytes: fewer make no request cheaper
_USUAL_TEXT = 14  # bytes of a token, with its length

_STRING, _ARRAY = 8, 9
_VALUES = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_TYPES = {number: name for name, number in FORMATS["ggml"]["types"].items()}


@dataclass(slots=True)
class _Cursor:
    """A place in the file, and the bytes from there on as far as they were read."""

    ask: Ask
    data: bytes
    file_size: int
    base: int = 0  # place of ``data`` in the file
    at: int = 0  # place in ``data``
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def position(self) -> int:
        """Bytes of the file that lie behind."""
        return self.base + self.at

    def need(self, n_bytes: int, likely: int = 0) -> None:
        """Have so many bytes from here on; ``likely`` more will be wanted soon."""
        if self.at + n_bytes <= len(self.data):
            return
        stop = self.position + n_bytes
        if stop > min(self.file_size, MAX_HEADER_BYTES):
            end = f"the file ends at byte {self.file_size}" if stop > self.file_size else "it may have 100 MB"
            raise HeaderError(f"the header goes on to byte {stop} at least, but {end}.")
        wanted = min(stop + max(likely, _AT_LEAST), self.file_size)
        held = self.base + len(self.data)
        self.data = self.data[self.at :] + self.ask(ByteRange(held, wanted))
        self.base, self.at = self.position, 0

    def skip(self, n_bytes: int) -> None:
        """Go on; what was not read is leapt over."""
        self.at += n_bytes
        if self.at > len(self.data):
            self.base, self.data, self.at = self.position, b"", 0

    def number(self, code: str) -> Any:
        size = calcsize(code)
        self.need(size)
        (value,) = unpack_from(code, self.data, self.at)
        self.at += size
        return value

    def count(self, code: str, most: int, what: str) -> int:
        value = int(self.number(code))
        if value > most:
            raise HeaderError(f"at most {most} {what} were expected, found {value}.")
        return value

    def text(self, what: str) -> str:
        """A name: its length, and so many bytes of UTF-8."""
        n_bytes = self.count("<Q", _MAX_NAME, f"bytes of {what}")
        self.need(n_bytes)
        self.at += n_bytes
        try:
            return self.data[self.at - n_bytes : self.at].decode("utf-8")
        except UnicodeDecodeError as error:
            raise HeaderError(f"UTF-8 was expected as {what}, found {error.reason}.") from None


def gguf_header(ask: Ask, start: bytes, file_size: int, where: str) -> Header:
    """The header of a GGUF file; HeaderError for one not valid, over 100 MB, big-endian or of another version.

    ``start`` are its first ``FIRST_BYTES``, or all of a smaller file; ``ask`` reads what they lack. The metadata are
    the single values among the pairs, as texts, but for those on the tokenizer. What lies beyond the end of a file that
    was cut off is among the refused.
    """
    with named(HeaderError, f"Reading the header of {where}"):
        cursor = _Cursor(ask, start, file_size)
        n_tensors, n_pairs = _opening(cursor)
        seen: set[str] = set()
        for _ in range(n_pairs):
            _pair(cursor, seen)
        tensors, refused = _tensors(cursor, n_tensors)
        alignment = _alignment(cursor.metadata)
        first = -(-cursor.position // alignment) * alignment
        end = max([0, *(one.stop for one in tensors.values()), *(one.stop for one in refused.values())])
        metadata = cursor.metadata | {"format": GGUF_FORMAT}
        header = Header(tensors, metadata, first, refused, buffer_size=end)
        _check_apart(header)
        return header.cut_off(file_size) if file_size < header.file_size else header


def _opening(cursor: _Cursor) -> tuple[int, int]:
    """The numbers of tensors and of pairs, behind magic and version."""
    cursor.need(24)
    magic, version = cursor.data[:4], unpack("<I", cursor.data[4:8])[0]
    if magic != b"GGUF":
        kind = disguise(cursor.data[:DISGUISE_BYTES])
        raise HeaderError(f"the magic 'GGUF' was expected, found {kind or repr(magic)}.")
    if version not in (2, 3):
        big = unpack(">I", cursor.data[4:8])[0] in (2, 3)
        told = "a big-endian file" if big else f"version {version}"
        raise HeaderError(f"GGUF of version 2 or 3, little-endian, was expected, found {told}. Convert it anew.")
    cursor.at = 8
    return cursor.count("<Q", _MAX_TENSORS, "tensors"), cursor.count("<Q", _MAX_PAIRS, "key-value pairs")


def _pair(cursor: _Cursor, seen: set[str]) -> None:
    """One key-value pair; a single value is kept as a text."""
    key = cursor.text("a key")
    if key in seen:
        raise HeaderError(f"each key once was expected, found {quoted(key)} twice.")
    seen.add(key)
    kind = cursor.number("<I")
    if kind == _ARRAY:
        _skip_array(cursor, key)
    elif kind == _STRING:
        n_bytes = cursor.count("<Q", MAX_HEADER_BYTES, f"bytes of the text of {quoted(key)}")
        cursor.need(n_bytes)
        if n_bytes <= _MAX_KEPT and not key.startswith("tokenizer."):
            cursor.metadata[key] = cursor.data[cursor.at : cursor.at + n_bytes].decode("utf-8", "replace")
        cursor.at += n_bytes
    elif kind in _VALUES:
        cursor.metadata[key] = str(cursor.number(_VALUES[kind]))
    else:
        raise HeaderError(f"a value type of 0 to 12 was expected for {quoted(key)}, found {kind}.")


def _skip_array(cursor: _Cursor, key: str, depth: int = 0) -> None:
    kind = cursor.number("<I")
    count = cursor.count("<Q", _MAX_ITEMS, f"items of {quoted(key)}")
    if kind in _VALUES:
        cursor.skip(count * calcsize(_VALUES[kind]))
    elif kind == _STRING:
        _skip_texts(cursor, count)
    elif kind == _ARRAY and depth < _MAX_DEPTH and count <= _MAX_PAIRS:
        for _ in range(count):
            _skip_array(cursor, key, depth + 1)
    else:
        raise HeaderError(f"an array of values or texts was expected for {quoted(key)}, found items of type {kind}.")


def _skip_texts(cursor: _Cursor, count: int) -> None:
    """Walk over texts; how long they were so far tells how many bytes to ask for next."""
    begin = cursor.position
    for done in range(count):
        if cursor.at + 8 > len(cursor.data):
            cursor.need(8, likely=_rest(cursor.position - begin, done, count))
        (n_bytes,) = unpack_from("<Q", cursor.data, cursor.at)
        if n_bytes > _MAX_ITEMS:
            raise HeaderError(f"at most {_MAX_ITEMS} bytes of a text were expected, found {n_bytes}.")
        if cursor.at + 8 + n_bytes > len(cursor.data):
            cursor.need(8 + n_bytes, likely=_rest(cursor.position - begin, done, count))
        cursor.at += 8 + n_bytes


def _rest(n_bytes: int, done: int, count: int) -> int:
    """Bytes that the other entries will take, and a little behind them; later ones are longer than the first."""
    each = 1.05 * n_bytes / done if done else _USUAL_TEXT
    return int(each * (count - done))


def _tensors(cursor: _Cursor, count: int) -> tuple[dict[str, TensorInfo], dict[str, Refused]]:
    """The tensors as they are listed, those of an unknown type apart; HeaderError for a name that comes twice."""
    tensors: dict[str, TensorInfo] = {}
    refused: dict[str, Refused] = {}
    begin = cursor.position
    for done in range(count):
        cursor.need(1, likely=_rest(cursor.position - begin, done, count))
        name = cursor.text("a tensor's name")
        if name in tensors or name in refused:
            raise HeaderError(f"each tensor once was expected, found {quoted(name)} twice.")
        rank = cursor.count("<I", 4, f"dimensions of tensor {quoted(name)}")
        shape = tuple(int(cursor.number("<Q")) for _ in range(rank))[::-1]
        kind, start = cursor.number("<I"), int(cursor.number("<Q"))
        if kind in _TYPES:
            dtype = _TYPES[kind]
            tensors[name] = TensorInfo(name, dtype, shape, start, start + n_bytes_of(name, dtype, shape))
        else:
            refused[name] = Refused(start, f"tensor {quoted(name)}: its type {kind} is none that is known.")
    return tensors, refused


def _alignment(metadata: Mapping[str, str]) -> int:
    told = metadata.get("general.alignment", "32")
    if not told.isdecimal() or not 0 < int(told) <= _MAX_ALIGNMENT:
        raise HeaderError(f"an alignment of 1 to {_MAX_ALIGNMENT} bytes was expected, found {told[:40]!r}.")
    return int(told)


def _check_apart(header: Header) -> None:
    """Raise HeaderError where two tensors share bytes."""
    previous, before = 0, ""
    for info in sorted(filter(lambda one: one.n_bytes, header.tensors.values()), key=lambda one: one.start):
        if info.start < previous:
            raise HeaderError(f"tensors apart were expected, found {quoted(info.name)} within {quoted(before)}.")
        previous, before = info.stop, info.name

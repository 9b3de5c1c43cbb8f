"""This module reads the JSON of a header, no laxer than the reference and at no more memory than it may take.

msgspec finds the members of an object and leaves their values as they stand (``Raw``, no copy), so that a hostile
header is measured before it costs memory. An entry in the spelling that every writer uses is decoded by msgspec as
well, any other by the standard parser, which can tell what is odd about it.
"""

from __future__ import annotations

import codecs
import json
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from lnsim.errors import HeaderError

FORMATS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("formats.toml").read_text("utf-8"))
DTYPE_BITS: Mapping[str, int] = FORMATS["safetensors"]["bits"]
_MAX_ENTRY_BYTES = 1 << 20  # of one tensor's entry, and characters of one name
_MAX_TEXT_BYTES = 1 << 24  # of one text; one of ASCII without escapes costs its own bytes only and may be longer
_MAX_HELD_BYTES = 112 << 20  # that all that is kept of one header may take in memory
_BYTES_OF_A_TENSOR = 400  # its TensorInfo with all numbers, its places in two dicts and in the order of the offsets
_BYTES_OF_A_SIZE = 8
_BYTES_OF_A_TEXT = sys.getsizeof("")
_BYTES_OF_AN_ITEM = 120 + _BYTES_OF_A_TEXT  # its place in a dict and an empty value, beside the key
SIZE_LIMIT = 1 << 64  # sizes and counts of bits from here on are errors, as in the reference
_CHECK_BYTES = 1 << 20
_MAX_DEPTH_OF_UNKNOWN = 125  # the reference allows 127 levels, and the file and the tensor's entry are two of them
_METADATA_KEY = "__metadata__"
_FIELDS = ("dtype", "shape", "data_offsets")


def quoted(name: str) -> str:
    """A name from a file, made safe and short for a message."""
    return repr(name if len(name) <= 120 else name[:117] + "...")


def wrong_dtype(name: str, dtype: object) -> str:
    """The sentence on a dtype that is none of the format's."""
    return f"tensor {quoted(name)}: dtype must be one of {', '.join(DTYPE_BITS)}; found {dtype!r:.80}."


class Memory:
    """Counts what is kept of a header, and refuses what gets too much."""

    held = 0

    def hold(self, n_bytes: int) -> None:
        """Count so many more; raises HeaderError when it gets too much."""
        self.held += n_bytes
        if self.held > _MAX_HELD_BYTES:
            raise HeaderError(f"what it lists takes more than {_MAX_HELD_BYTES} bytes of memory.")


class _AnyText(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, str)


class _Name(metaclass=_AnyText):
    """A key as msgspec hands it over one by one, so that it is counted before the next one is read."""


class _Entry(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A tensor's entry as every writer spells it."""

    dtype: str
    shape: tuple[_Size, ...]
    data_offsets: tuple[_Size, _Size]


Decoded = TypeVar("Decoded")
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_ENTRY = msgspec.json.Decoder(_Entry)
_TEXT = msgspec.json.Decoder(str)
_QUOTES_OF_AN_ENTRY = 8  # three fields and a dtype: none of them twice, and nothing else
_KINDS = {"array": "list", "null": "NoneType"}
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_PLAIN = re.compile(rb"[ -\[\]-\x7f]*+")


def _check_text(text: memoryview, first: int) -> None:
    """Check that this is UTF-8, and that no text in it would take several times its bytes in memory."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    plain = True
    for start in range(0, len(text), _CHECK_BYTES):
        piece = bytes(text[start : start + _CHECK_BYTES])
        plain = plain and piece.isascii() and b"\\" not in piece
        before = len(decoder.getstate()[0])
        try:
            decoder.decode(piece, final=start + _CHECK_BYTES >= len(text))
        except UnicodeDecodeError as error:
            place = first + start - before + error.start
            raise HeaderError(f"UTF-8 was expected, but byte {place} is not.") from None
    for found in _STRING.finditer(text) if len(text) > _MAX_TEXT_BYTES and not plain else ():
        size = found.end() - found.start()
        if size > _MAX_TEXT_BYTES and not _PLAIN.fullmatch(text, *found.span()):
            raise HeaderError(
                f"the text at byte {first + found.start()} has {size} bytes, more than {_MAX_TEXT_BYTES} bytes, "
                f"and is not plain ASCII; at most {_MAX_TEXT_BYTES} are read."
            )


def _members(
    text: memoryview | msgspec.Raw, memory: Memory, bytes_of_each: int, *, once: bool = False
) -> dict[str, msgspec.Raw]:
    """The members of a JSON object, their values as they stand there: ``Raw``, which costs no copy.

    So many bytes of memory are counted for each beside its name; ``once`` refuses a key that comes twice.
    """
    seen: set[str] = set()

    def take(_: type, name: str) -> str:
        if len(name) > _MAX_ENTRY_BYTES:
            raise HeaderError(f"a name has {len(name)} characters; at most {_MAX_ENTRY_BYTES} are read.")
        memory.hold(bytes_of_each + sys.getsizeof(name))
        if once and name in seen:
            what = f"'{name}' stands" if name == _METADATA_KEY else f"tensor {quoted(name)} stands"
            raise HeaderError(f"{what} there twice{'' if name == _METADATA_KEY else '; its bytes would be ambiguous'}.")
        if once:
            seen.add(name)
        return name

    decoder: Any = msgspec.json.Decoder(dict[_Name, msgspec.Raw], dec_hook=take)
    found: dict[str, msgspec.Raw] = _decoded(decoder, text)
    return found


def _decoded(decoder: msgspec.json.Decoder[Decoded], text: memoryview | msgspec.Raw) -> Decoded:
    """What a decoder makes of a text, or one error that says what is wrong with it."""
    try:
        return decoder.decode(text)
    except RecursionError:
        raise HeaderError("its JSON is nested too deeply.") from None
    except msgspec.ValidationError as error:
        found = str(error).rpartition("got `")[2].rstrip("`")
        raise HeaderError(f"a JSON object was expected, found {_KINDS.get(found, found)}.") from None
    except msgspec.DecodeError as error:
        if memoryview(text).nbytes <= _MAX_ENTRY_BYTES:
            _strict(bytes(text))  # whose errors say more
        raise HeaderError(f"JSON was expected: {str(error).removeprefix('JSON is malformed: ')}.") from None


def read_entries(
    text: memoryview, first: int, memory: Memory, metadata: dict[str, str]
) -> Iterator[tuple[str, str, tuple[int, ...], int, int]]:
    """Name, dtype, shape, start and stop of each tensor of a header's JSON; HeaderError for what is wrong with it.

    ``first`` is its first byte in the file, for messages; ``metadata`` takes what ``__metadata__`` holds.
    """
    _check_text(text, first)
    for name, raw in _members(text, memory, _BYTES_OF_A_TENSOR, once=True).items():
        if name == _METADATA_KEY:
            metadata.update(_metadata(raw, memory))
        else:
            dtype, shape, (start, stop) = _entry(name, raw)
            memory.hold(_BYTES_OF_A_SIZE * len(shape))
            yield name, dtype, shape, start, stop


def _metadata(raw: msgspec.Raw, memory: Memory) -> dict[str, str]:
    if _begins(raw, "n"):
        return {}
    wrong = HeaderError(f"'{_METADATA_KEY}' must map strings to strings.")
    if not _begins(raw, "{"):
        raise wrong
    found: dict[str, Any] = dict(_members(raw, memory, _BYTES_OF_AN_ITEM))
    for key, value in found.items():  # in place of the values as they stood there, for the memory
        if not _begins(value, '"'):
            raise wrong
        found[key] = _decoded(_TEXT, value)
        memory.hold(sys.getsizeof(found[key]) - _BYTES_OF_A_TEXT)
    return found


def _begins(raw: msgspec.Raw, sign: str) -> bool:
    return memoryview(raw)[0] == ord(sign)


def _entry(name: str, raw: msgspec.Raw) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    """Dtype, shape and offsets of a tensor as they stand there."""
    if memoryview(raw).nbytes > _MAX_ENTRY_BYTES:
        raise HeaderError(f"tensor {quoted(name)}: its entry is no JSON, or more than {_MAX_ENTRY_BYTES} bytes.")
    text = bytes(raw)
    if text.count(b'"') == _QUOTES_OF_AN_ENTRY and b"-" not in text:
        try:
            usual = _ENTRY.decode(text)
        except msgspec.DecodeError:
            pass  # what is odd about it, or wrong, is found below
        else:
            return usual.dtype, usual.shape, usual.data_offsets
    fields = _fields(name, _strict(text))
    dtype, shape, offsets = (fields[key] for key in _FIELDS)
    if isinstance(dtype, _Object) and len(dtype) == 1 and dtype[0][1] is None:
        dtype = dtype[0][0]  # serde's long spelling of a bare word, which the reference takes as well
    if not isinstance(dtype, str):
        raise HeaderError(wrong_dtype(name, dtype))
    if not _is_sizes(shape):
        raise HeaderError(f"tensor {quoted(name)}: shape must list whole numbers from 0; found {shape!r:.80}.")
    if not _is_sizes(offsets) or len(offsets) != 2:
        raise HeaderError(f"tensor {quoted(name)}: data_offsets must be two whole numbers; found {offsets!r:.80}.")
    return dtype, tuple(shape), (offsets[0], offsets[1])


class _Object(list[tuple[str, Any]]):
    """A JSON object as its pairs, since a dict would hide a key that comes twice."""


def _strict(text: bytes) -> Any:
    """JSON as strictly as the reference reads it: numbers are finite, -0 is no whole one, texts are characters."""
    try:
        value = json.loads(
            str(text, "utf-8"),
            object_pairs_hook=_Object,
            parse_constant=_refuse_constant,
            parse_int=_number,
            parse_float=_number,
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise HeaderError("its JSON is nested too deeply.") from None
    except UnicodeEncodeError:
        raise HeaderError("a string holds half a surrogate pair, which is no character.") from None
    except ValueError as error:
        raise HeaderError(f"JSON was expected: {error}.") from None
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _number(digits: str) -> int | float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is out of range")
    return int(digits) if digits.lstrip("-").isdecimal() and digits != "-0" else number


def _fields(name: str, value: Any) -> dict[str, Any]:
    """The three fields of a tensor's entry, which may also be a list of them in order, as the reference takes it."""
    if type(value) is list and len(value) == len(_FIELDS):
        return dict(zip(_FIELDS, value, strict=True))
    if not isinstance(value, _Object):
        raise HeaderError(f"tensor {quoted(name)}: an object with {', '.join(_FIELDS)} was expected.")
    found: dict[str, Any] = {}
    for key, content in value:
        if key in found:
            raise HeaderError(f"tensor {quoted(name)}: '{key}' stands there twice.")
        if key in _FIELDS:
            found[key] = content
        elif _is_too_deep(content):
            raise HeaderError(f"tensor {quoted(name)}: {quoted(key)} is nested too deeply.")
    missing = [key for key in _FIELDS if key not in found]
    if missing:
        raise HeaderError(f"tensor {quoted(name)}: {', '.join(missing)} missing.")
    return found


def _is_too_deep(content: Any) -> bool:
    level = [content]
    for _ in range(_MAX_DEPTH_OF_UNKNOWN + 1):
        lists = [value for value in level if isinstance(value, list)]
        level = [value[1] if isinstance(value, tuple) else value for inner in lists for value in inner or [None]]
    return bool(level)


def _is_sizes(value: Any) -> bool:
    # type() and not isinstance(): True is an int to Python, and no size.
    return type(value) is list and all(type(size) is int and 0 <= size < SIZE_LIMIT for size in value)

"""This module turns the JSON of a header into tensors and metadata, no laxer than the reference (see ``header.py``)."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lnsim.checkpoint.header_json import HeaderText, JsonObject, RawTensor
from lnsim.checkpoint.tensor_info import DTYPE_BITS, U64_LIMIT, TensorInfo, quoted
from lnsim.errors import HeaderError

__all__ = ["Refused", "read_entries"]

_METADATA_KEY = "__metadata__"
_FIELDS = ("dtype", "shape", "data_offsets")
_MAX_DEPTH_OF_UNKNOWN = 125  # the reference allows 127 levels, and the file and the tensor's entry are two of them
_BYTES_OF_AN_ITEM = 120  # its place in a dict, beside key and value
_BYTES_OF_A_TEXT = 56  # beside its letters
_BYTES_OF_A_TENSOR = 400  # its TensorInfo with all numbers, its places in two dicts and in the order of the offsets


@dataclass(frozen=True, slots=True)
class Refused:
    """The entry of a tensor whose place in the byte buffer is told, and whose dtype, shape and size do not fit.

    Args:
        start: first byte, relative to the byte buffer.
        stop: byte after the last.
        reason: what is wrong.
    """

    start: int
    stop: int
    reason: str


def read_entries(
    text: HeaderText, refused: dict[str, Refused] | None = None
) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    """Tensors and metadata of the header's JSON that begins here, each tensor checked by itself.

    Args:
        text: the JSON.
        refused: takes the entries whose dtype, shape and size do not fit; without it they are errors as well.

    Raises:
        HeaderError: what is wrong with it.
    """
    tensors: dict[str, TensorInfo] = {}
    metadata: dict[str, str] | None = None
    for found in text.members():
        if isinstance(found, list):
            _add_run(text, found, tensors, refused)
        elif found == _METADATA_KEY:
            if metadata is not None:
                raise HeaderError(f"'{_METADATA_KEY}' stands there twice.")
            metadata = _read_metadata(text)
        else:
            dtype, shape, start, stop = _read_tensor(found, text.value())
            _add(text, tensors, refused, found, dtype, shape, start, stop)
            text.hold(_BYTES_OF_A_TENSOR + sys.getsizeof(found))
    return tensors, metadata or {}


def _add_run(
    text: HeaderText, run: list[RawTensor], tensors: dict[str, TensorInfo], refused: dict[str, Refused] | None
) -> None:
    """Add tensors in the usual spelling: hundreds of experts share a few dtypes and shapes, which are read once."""
    text.hold(_BYTES_OF_A_TENSOR * len(run) + sum(_BYTES_OF_A_TEXT + len(raw[0]) for raw in run))
    known: dict[tuple[bytes, bytes], tuple[str, tuple[int, ...], int]] = {}
    stop = 0
    for raw_name, dtype, sizes, start_text, stop_text in run:
        name = raw_name.decode()
        start, previous = int(start_text), stop
        if start == previous:
            start = previous  # one integer in memory for both
        stop = int(stop_text)
        kind = known.get((dtype, sizes))
        if kind is not None and stop - start == kind[2]:
            _check_once(name, tensors, refused)
            tensors[name] = _checked_before(name, kind[0], kind[1], start, stop)
            continue
        shape = tuple(map(int, sizes.split(b","))) if sizes else ()
        info = _add(text, tensors, refused, name, dtype.decode(), shape, start, stop)
        if info is not None:
            known[dtype, sizes] = info.dtype, info.shape, info.n_bytes


def _add(
    text: HeaderText,
    tensors: dict[str, TensorInfo],
    refused: dict[str, Refused] | None,
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    start: int,
    stop: int,
) -> TensorInfo | None:
    """Add one tensor, or its entry to those refused."""
    _check_once(name, tensors, refused)
    try:
        if dtype not in DTYPE_BITS:
            raise HeaderError(_wrong_dtype(name, dtype))
        tensors[name] = TensorInfo(name, dtype, shape, start, stop)
    except HeaderError as error:
        if refused is None or start > stop:
            raise
        refused[name] = Refused(start, stop, str(error))
        text.hold(2 * sys.getsizeof(refused[name].reason))  # once more in the error that is made of it
        return None
    return tensors[name]


def _check_once(name: str, tensors: dict[str, TensorInfo], refused: dict[str, Refused] | None) -> None:
    if name in tensors or (refused and name in refused):
        raise HeaderError(f"tensor {quoted(name)} stands there twice; its bytes would be ambiguous.")


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
    return f"tensor {quoted(name)}: dtype must be one of {', '.join(DTYPE_BITS)}; found {dtype!r:.80}."


def _read_tensor(name: str, value: Any) -> tuple[str, tuple[int, ...], int, int]:
    """Dtype, shape, start and stop as they stand there."""
    fields = _fields(name, value)
    dtype, shape, offsets = (fields[key] for key in _FIELDS)
    if isinstance(dtype, JsonObject) and len(dtype) == 1 and dtype[0][1] is None:
        dtype = dtype[0][0]  # serde's long spelling of a bare word, which the reference takes as well
    if not isinstance(dtype, str):
        raise HeaderError(_wrong_dtype(name, dtype))
    if not _is_sizes(shape):
        raise HeaderError(f"tensor {quoted(name)}: shape must list whole numbers from 0; found {shape!r:.80}.")
    if not _is_sizes(offsets) or len(offsets) != 2:
        raise HeaderError(f"tensor {quoted(name)}: data_offsets must be two whole numbers; found {offsets!r:.80}.")
    return dtype, tuple(shape), offsets[0], offsets[1]


def _fields(name: str, value: Any) -> dict[str, Any]:
    """The three fields of a tensor's entry, which may also be a list of them in order, as the reference takes it."""
    if type(value) is list and len(value) == len(_FIELDS):
        return dict(zip(_FIELDS, value, strict=True))
    if not isinstance(value, JsonObject):
        raise HeaderError(f"tensor {quoted(name)}: an object with {', '.join(_FIELDS)} was expected.")
    found: dict[str, Any] = {}
    for key, content in value:
        if key not in _FIELDS:
            _check_unknown(name, key, content)
        elif key in found:
            raise HeaderError(f"tensor {quoted(name)}: '{key}' stands there twice.")
        else:
            found[key] = content
    missing = [key for key in _FIELDS if key not in found]
    if missing:
        raise HeaderError(f"tensor {quoted(name)}: {', '.join(missing)} missing.")
    return found


def _is_sizes(value: Any) -> bool:
    # type() and not isinstance(): True is an int to Python, and no size.
    return type(value) is list and all(type(size) is int and 0 <= size < U64_LIMIT for size in value)


def _check_unknown(name: str, key: str, content: Any) -> None:
    """An ignored value must still be JSON that the reference can hold: finite numbers, limited depth."""
    for value, depth in _walk(content):
        if depth > _MAX_DEPTH_OF_UNKNOWN:
            raise HeaderError(f"tensor {quoted(name)}: {quoted(key)} is nested too deeply.")
        if type(value) in (int, float) and not _fits_double(value):
            raise HeaderError(f"tensor {quoted(name)}: {quoted(key)} holds a number out of range.")


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

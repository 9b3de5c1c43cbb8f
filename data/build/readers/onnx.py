"""This module reads the initialisers of an ONNX file by walking its protobuf by hand.

Field numbers (onnx.proto3): ModelProto.graph is 7, GraphProto.node 1 and initializer 5; in a NodeProto input is 1 and
output 2; in a TensorProto dims is 1, data_type 2, name 8, raw_data 9, external_data 13. Only initialisers in raw_data
have the bytes of their tensor in one place; all others are refused where they occur, because a norm could hide among
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from lnsim.errors import FormatError
from readers.cursor import Cursor
from readers.directory import Directory, Entry

__all__ = ["matrices_by_bias", "read"]

GRAPH, NODE, INITIALIZER = 7, 1, 5
INPUT, OUTPUT = 1, 2
DIMS, DATA_TYPE, NAME, RAW_DATA = 1, 2, 8, 9
DOC_STRING = 12
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# ONNX data type -> (safetensors' name, bytes a value)
DTYPES = {
    1: ("F32", 4),
    2: ("U8", 1),
    3: ("I8", 1),
    4: ("U16", 2),
    5: ("I16", 2),
    6: ("I32", 4),
    7: ("I64", 8),
    9: ("BOOL", 1),
    10: ("F16", 2),
    11: ("F64", 8),
    16: ("BF16", 2),
}


def read(data: bytes, where: str) -> Directory:
    """Initialisers of an ONNX model; raises FormatError for a broken message or data outside ``raw_data``."""
    graphs = [span for field, span in _messages(Cursor(data, f"{where} as ONNX")) if field == GRAPH]
    if len(graphs) != 1:
        raise FormatError(f"Reading {where} as ONNX: the file holds {len(graphs)} graphs, expected exactly one.")
    entries = tuple(_initialiser(span) for field, span in _messages(graphs[0]) if field == INITIALIZER)
    return Directory(where, len(data), entries)


def matrices_by_bias(data: bytes, where: str) -> dict[str, str]:
    """Name of a matrix by that of the bias added to its product, for files that number the matrices they transposed."""
    (graph,) = (span for field, span in _messages(Cursor(data, f"{where} as ONNX")) if field == GRAPH)
    nodes = []
    for field, node in _messages(graph):
        if field == NODE:
            ends = [(number, span.text(span.stop - span.position, "a name")) for number, span in _messages(node)
                    if number in (INPUT, OUTPUT)]  # fmt: skip
            nodes.append(tuple([name for number, name in ends if number == end] for end in (INPUT, OUTPUT)))
    product_of = {
        outputs[0]: inputs[1] for inputs, outputs in nodes if len(inputs) == 2 and inputs[1].startswith("onnx::MatMul_")
    }
    added = [inputs for inputs, _ in nodes if len(inputs) == 2]
    return {bias: product_of[out] for pair in added for bias, out in (pair, pair[::-1]) if out in product_of}


def _varint(cursor: Cursor, what: str) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = cursor.number("B", what)
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
    raise FormatError(f"Reading {cursor.where}: {what} before byte {cursor.position} is longer than 64 bits.")


def _fields(cursor: Cursor) -> Iterator[tuple[int, int | Cursor]]:
    """Field number and value of every field of a message; bytes come as a cursor over just them."""
    while cursor.position < cursor.stop:
        key = _varint(cursor, "a field's key")
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            yield number, _varint(cursor, f"field {number}")
        elif wire in (BYTES, FIXED32, FIXED64):
            fixed = {FIXED32: 4, FIXED64: 8}
            size = fixed[wire] if wire in fixed else _varint(cursor, f"the length of field {number}")
            start = cursor.skip(size, f"field {number}")
            yield number, Cursor(cursor.data, cursor.where, start, start + size)
        else:
            raise FormatError(
                f"Reading {cursor.where}: field {number} before byte {cursor.position} has wire type {wire}, expected "
                "0, 1, 2 or 5. The file is not ONNX or is damaged."
            )


def _messages(cursor: Cursor) -> Iterator[tuple[int, Cursor]]:
    for number, value in _fields(cursor):
        if isinstance(value, Cursor):
            yield number, value


def _initialiser(cursor: Cursor) -> Entry:
    dims: list[int] = []
    found: dict[int, int | Cursor] = {}
    for number, value in _fields(cursor):
        if number == DIMS:
            dims += _dims(value)
        elif number in (DATA_TYPE, NAME, RAW_DATA):
            found[number] = value
        elif number != DOC_STRING:
            found.setdefault(-number, value)
    return _entry(cursor, tuple(dims), found)


def _dims(value: int | Cursor) -> list[int]:
    """Dimensions come one a field, or packed into one field."""
    if isinstance(value, int):
        return [value]
    dims = []
    while value.position < value.stop:
        dims.append(_varint(value, "a dimension"))
    return dims


def _entry(cursor: Cursor, shape: tuple[int, ...], found: dict[int, int | Cursor]) -> Entry:
    name, kind, raw = found.get(NAME), found.get(DATA_TYPE), found.get(RAW_DATA)
    if not isinstance(name, Cursor) or not isinstance(kind, int):
        raise FormatError(
            f"Reading {cursor.where}: the initialiser before byte {cursor.stop} lacks a name or a data type."
        )
    label = name.text(name.stop - name.position, "an initialiser's name")
    if not isinstance(raw, Cursor):
        others = sorted(-number for number in found if number < 0)
        raise FormatError(
            f"Reading {cursor.where}: initialiser '{label}' keeps its values in fields {others or 'none'}, expected "
            f"raw_data (field {RAW_DATA}). External and typed data are not read."
        )
    if kind not in DTYPES:
        raise FormatError(f"Reading {cursor.where}: initialiser '{label}' has data type {kind}, which is not read.")
    dtype, item_bytes = DTYPES[kind]
    if raw.stop - raw.position != prod(shape) * item_bytes:
        raise FormatError(
            f"Reading {cursor.where}: initialiser '{label}' of type {dtype} and shape {shape} has "
            f"{raw.stop - raw.position} bytes, expected {prod(shape) * item_bytes}."
        )
    return Entry(label, dtype, shape, raw.position, raw.stop)

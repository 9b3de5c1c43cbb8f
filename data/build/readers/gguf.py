"""This module lists the tensors of a GGUF file for the data build, by the reader of ``lnsim``."""

from __future__ import annotations

import json
from typing import Any

from lnsim.checkpoint.format.gguf import FIRST_BYTES, gguf_header
from readers.directory import Directory, Entry

__all__ = ["read"]


def read(data: bytes, where: str) -> Directory:
    """Tensors, and single values of the metadata, of a GGUF file; raises HeaderError, FormatError."""
    found = gguf_header(lambda span: data[span.start : span.stop], data[:FIRST_BYTES], len(data), where=where)
    first = found.buffer_start
    entries = (
        Entry(one.name, one.dtype, one.shape, first + one.start, first + one.stop) for one in found.tensors.values()
    )
    return Directory(where, len(data), tuple(entries), {key: _value(text) for key, text in found.metadata.items()})


def _value(text: str) -> Any:
    """The number that a text is, or the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text

"""This module reads the tensor list of a safetensors file through lnsim's own header parser."""

from __future__ import annotations

from lnsim.checkpoint.format.header import parse_header
from readers.directory import Directory, Entry

__all__ = ["read"]


def read(data: bytes, where: str) -> Directory:
    """Tensors and metadata of a safetensors file; raises HeaderError where the header is not valid."""
    header = parse_header(data, len(data), where=where)
    base = header.buffer_start
    entries = tuple(
        Entry(info.name, info.dtype, info.shape, base + info.start, base + info.stop)
        for info in header.tensors.values()
    )
    return Directory(where, len(data), entries, header.metadata)

"""A header of bytes that are all there, read as a file's are: its start first, then what the reader asks for."""

from __future__ import annotations

from lnsim.checkpoint.format import HeaderReader
from lnsim.checkpoint.format.header import Header
from lnsim.checkpoint.format.ranges import ByteRange


def header_by(reader: HeaderReader, content: bytes, first: int, where: str) -> Header:
    def ask(span: ByteRange) -> bytes:
        assert span.stop <= len(content)
        return content[span.start : span.stop]

    return reader(ask, content[:first], len(content), where=where)

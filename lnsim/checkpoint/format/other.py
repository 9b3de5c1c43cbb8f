"""This module knows the formats beside safetensors, by the ending of a file's name."""

from __future__ import annotations

from typing import Protocol

from lnsim.checkpoint.format.gguf import FIRST_BYTES, Ask, gguf_header
from lnsim.checkpoint.format.header import Header

__all__ = ["FIRST_BYTES", "other_format"]


class HeaderReader(Protocol):
    """Makes a header of the first bytes of a file, and of what it asks for beside them."""

    def __call__(self, ask: Ask, start: bytes, file_size: int, *, where: str) -> Header:
        """Raises HeaderError where the file is none of its format."""


_FORMATS: dict[str, HeaderReader] = {".gguf": gguf_header}


def other_format(name: str) -> HeaderReader | None:
    """What reads the header of a file of this name or address; None for safetensors."""
    return next((reader for ending, reader in _FORMATS.items() if name.endswith(ending)), None)

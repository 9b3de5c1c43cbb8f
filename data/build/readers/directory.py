"""This module holds what every reader gives out: the tensors of one file and the byte range of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from lnsim.errors import FormatError

__all__ = ["Directory", "Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor as its file lists it.

    Args:
        name: the name in the file.
        dtype: safetensors' name of the dtype (``F32``, ``F16``), or the format's own for quantised blocks (``Q4_1``).
        shape: dimensions, slowest first.
        start: first byte in the file.
        stop: byte after the last, so that ``[start, stop)`` is the byte range.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Directory:
    """All tensors of one file, checked: inside the file, named once, not overlapping.

    Args:
        where: the file, as messages name it.
        size: bytes of the file.
        entries: the tensors, in the order of the file's own list.
        header: what the file says about the model beside its tensors.
    """

    where: str
    size: int
    entries: tuple[Entry, ...]
    header: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "header", MappingProxyType(dict(self.header)))
        if not self.entries:
            raise FormatError(f"Reading {self.where}: the file lists no tensors at all; expected a model's weights.")
        self._check_names()
        self._check_ranges()

    def _check_names(self) -> None:
        seen: set[str] = set()
        for entry in self.entries:
            if not entry.name:
                raise FormatError(f"Reading {self.where}: a tensor at byte {entry.start} has an empty name.")
            if entry.name in seen:
                raise FormatError(
                    f"Reading {self.where}: tensor '{entry.name}' is listed twice; expected each name once."
                )
            seen.add(entry.name)

    def _check_ranges(self) -> None:
        previous: Entry | None = None
        for entry in sorted(self.entries, key=lambda entry: (entry.start, entry.stop)):
            if not 0 <= entry.start <= entry.stop <= self.size:
                raise FormatError(
                    f"Reading {self.where}: tensor '{entry.name}' claims bytes [{entry.start}, {entry.stop}), but the "
                    f"file has {self.size} bytes. It is cut short or damaged: take it from its package again."
                )
            if previous is not None and entry.start < previous.stop:
                raise FormatError(
                    f"Reading {self.where}: tensors '{previous.name}' and '{entry.name}' share bytes "
                    f"[{entry.start}, {min(entry.stop, previous.stop)}); expected ranges that do not overlap."
                )
            previous = entry if entry.stop > entry.start else previous

"""This module says what every source of a checkpoint offers, and reads its small JSON files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from lnsim.checkpoint.disguise import disguise
from lnsim.checkpoint.header import MAX_HEADER_BYTES, Header
from lnsim.errors import FormatError, HeaderError, LnsimError, TensorNotFoundError
from lnsim.tables import card, table

__all__ = [
    "MAX_ALL_TENSORS",
    "MAX_JSON_BYTES",
    "MAX_JSON_PARTS",
    "Checkpoint",
    "Progress",
    "Traffic",
    "by_shard",
    "check_parts",
    "check_totals",
    "checkpoint_card",
    "file_in",
    "locate",
    "no_progress",
    "parse_config",
    "parse_json",
]

MAX_JSON_BYTES = 64 * 1024 * 1024
"""A config or index over this size is refused: the largest known index has about 10 MB."""

MAX_JSON_PARTS = 3_000_000
"""Values of a config, index, listing or all headers of a repo; 150,000 tensors, more than any model has, have 2 million
in their headers."""

MAX_ALL_TENSORS = 300_000
"""Tensors of all shards together; the largest known checkpoint has half of that."""

Progress = Callable[[int, int], None]
"""Called with the steps done and the steps planned, from any thread."""


def no_progress(done: int, planned: int) -> None:
    """Report to nobody."""


@dataclass(slots=True)
class Traffic:
    """Requests made and bytes of bodies received; safe to count from many threads."""

    requests: int = 0
    bytes_received: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, *, requests: int = 0, received: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            self.requests += requests
            self.bytes_received += received


class Checkpoint(Protocol):
    """An opened checkpoint: its headers are known, its tensors can be read."""

    @property
    def source(self) -> str:
        """What was asked for, as a person wrote it."""

    @property
    def where(self) -> str:
        """``repo@commit``, with the part where it is one, or the path; for messages."""

    @property
    def repo_id(self) -> str | None:
        """The Hub's name."""

    @property
    def revision(self) -> str | None:
        """Branch, tag or commit asked for."""

    @property
    def commit(self) -> str | None:
        """Commit read."""

    @property
    def part(self) -> str:
        """Folder or file below the repo's root, for a part of a repo; empty for all of it."""

    @property
    def config(self) -> Mapping[str, Any] | None:
        """The parsed ``config.json``, None where there is none."""

    @property
    def headers(self) -> Mapping[str, Header]:
        """Header of each shard that was opened, by file name."""

    @property
    def faults(self) -> Mapping[str, LnsimError]:
        """By name, the tensors that are promised and cannot be read: the error that it is to ask for one."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for whoever reads the numbers."""

    @property
    def traffic(self) -> Traffic:
        """What it took so far."""

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors, all of them or an error."""

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all tensors but these."""

    def read_part(self, name: str, start: int, stop: int) -> bytes:
        """The bytes ``[start, stop)`` of one tensor, for one too large to hold."""


def checkpoint_card(found: Checkpoint) -> str:
    """An opened checkpoint as a notebook shows it: one row a file."""
    rows = [(name, len(one.tensors), one.file_size) for name, one in found.headers.items()]
    facts = (
        f"model type {(found.config or {}).get('model_type', 'not told')}",
        f"{sum(n for _, n, _ in rows):,} tensors in {len(rows)} files of {sum(size for *_, size in rows):,} bytes",
        f"commit {found.commit}" if found.commit else "no commit recorded",
        f"{found.traffic.requests} requests, {found.traffic.bytes_received:,} bytes" if found.traffic.requests else "",
    )
    shown = table(("file", "tensors", "bytes"), rows)
    return card(type(found).__name__, found.where, facts, [shown], [f"note: {note}" for note in found.notes])


def file_in(where: str, file: str) -> str:
    """A file of a checkpoint, for messages; the checkpoint may be this file itself."""
    return where if f"/{where}".endswith(f"/{file}") else f"{where}/{file}"


def locate(headers: Mapping[str, Header], *, where: str) -> dict[str, str]:
    """Shard of every tensor, by tensor name.

    Raises:
        FormatError: when two shards hold a tensor of the same name.
    """
    found: dict[str, str] = {}
    for shard, header in headers.items():
        for name in header.tensors:
            if name in found:
                raise FormatError(
                    f"Reading the headers of {where}: tensor {name!r:.160} lies in both {found[name]} and {shard}, "
                    f"so which one counts is unclear."
                )
            found[name] = shard
    return found


def check_totals(headers: Iterable[Header], *, where: str) -> None:
    """Refuse shards whose headers are fair each by itself and too much together; ask after each one that is read.

    Raises:
        HeaderError: when they have more bytes than one header may have, or too many tensors.
    """
    headers = list(headers)
    n_bytes = sum(header.buffer_start for header in headers)
    n_tensors = sum(len(header.tensors) for header in headers)
    if n_bytes > MAX_HEADER_BYTES or n_tensors > MAX_ALL_TENSORS:
        raise HeaderError(
            f"Reading the headers of {where}: at most {MAX_HEADER_BYTES} bytes and {MAX_ALL_TENSORS} tensors were "
            f"expected in all shards together, found {n_bytes} and {n_tensors} in the first {len(headers)}."
        )


def by_shard(
    names: Iterable[str], headers: Mapping[str, Header], faults: Mapping[str, LnsimError], *, where: str
) -> dict[str, list[str]]:
    """The tensor names wanted of each shard, by file name.

    Raises:
        TensorNotFoundError: when a name is in no shard.
        LnsimError: when one is among the faults.
    """
    shard_of = locate(headers, where=where)
    found: dict[str, list[str]] = {}
    for name in names:
        if name in faults:
            raise faults[name]
        if name not in shard_of:
            raise TensorNotFoundError(f"Reading {where}: no shard holds a tensor {name!r:.160}.")
        found.setdefault(shard_of[name], []).append(name)
    return found


def parse_config(text: bytes, *, where: str, max_parts: int = MAX_JSON_PARTS) -> dict[str, Any]:
    """The config as a dict; raises FormatError when it is not a JSON object, or one made to take memory."""
    check_parts(text, max_parts, where=where)
    content = parse_json(text, where=where)
    if not isinstance(content, dict):
        raise FormatError(f"Reading {where}: a JSON object was expected, found {type(content).__name__}.")
    return content


def parse_json(text: bytes, *, where: str) -> Any:
    """JSON of any kind; raises FormatError that says what the file is instead, where its first bytes tell."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = disguise(text)
        told = f", but it is {kind}" if kind else f" ({error!s:.120})"
        raise FormatError(f"Reading {where}: JSON was expected{told}.") from None


def check_parts(text: bytes, max_parts: int = MAX_JSON_PARTS, *, where: str) -> None:
    """Refuse JSON of so many values that they would take much more memory than their text.

    Raises:
        FormatError: with the number of signs that open or part values; 64 MB of ``[],`` would become 1.4 GB.
    """
    parts = sum(map(text.count, (b"{", b"[", b":", b",")))
    if parts > max_parts:
        raise FormatError(f"Reading {where}: at most {max_parts} JSON values were expected, found about {parts}.")

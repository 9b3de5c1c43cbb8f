"""This module holds an opened checkpoint, whatever its source, and reads its small JSON files."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lnsim.checkpoint.format.header import MAX_HEADER_BYTES, Header, TensorInfo, disguise
from lnsim.checkpoint.format.ranges import ByteRange, part_range, plan_reads, slice_reads
from lnsim.checkpoint.store import Provenance, read_provenance
from lnsim.errors import FormatError, HeaderError, LnsimError, TensorNotFoundError

__all__ = [
    "MAX_JSON_BYTES", "Checkpoint", "Fetch", "Progress", "Traffic", "check_totals", "file_in", "no_progress",
    "parse_config", "parse_json", "shared_progress",
]  # fmt: skip

MAX_JSON_BYTES = 64 * 1024 * 1024  # of a config or index; the largest known index has about 10 MB
_MAX_JSON_PARTS = 3_000_000  # values of a config, index or listing; more than any model needs
_MAX_ALL_TENSORS = 300_000  # of all shards together; the largest known checkpoint has half of that

Progress = Callable[[int, int], None]
"""Called with the steps done and the steps planned, from any thread."""


def no_progress(done: int, planned: int) -> None:
    """Report to nobody."""


def shared_progress(progress: Progress) -> Callable[[int], Progress]:
    """One progress for the reads of many checkpoints: what gives that of each, by its number."""
    counts: dict[int, tuple[int, int]] = {}
    lock = threading.Lock()

    def tell(number: int, done: int, planned: int) -> None:
        with lock:
            counts[number] = done, planned
            progress(*(sum(column) for column in zip(*counts.values(), strict=True)))

    return lambda number: partial(tell, number)


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


Fetch = Callable[[Sequence[tuple[str, ByteRange]], Progress], list[bytes]]
"""Reads ranges, each of a shard by its file name, and gives their bytes in the same order."""


@dataclass(slots=True)
class Checkpoint:
    """An opened checkpoint, on disk or on the Hub: its headers are known, its tensors can be read."""

    source: str  # what was asked for, as a person wrote it
    where: str  # ``repo@commit``, with the part where it is one, or the path; for messages
    headers: Mapping[str, Header]  # of each shard that was opened, by file name
    config: Mapping[str, Any] | None
    fetch: Fetch = field(repr=False)
    traffic: Traffic
    repo_id: str | None = None
    revision: str | None = None  # that was asked for
    commit: str | None = None  # that is read
    part: str = ""  # folder or file below the repo's root, for a part of a repo
    notes: tuple[str, ...] = ()  # sentences for whoever reads the numbers
    faults: dict[str, LnsimError] = field(default_factory=dict)  # what it is to ask for a tensor that cannot be read
    copies: Mapping[str, Header] = field(default_factory=dict)  # by shard, what must agree with what is read
    folder: Path | None = None  # where the shards lie; None on the Hub

    @property
    def tensors(self) -> dict[str, TensorInfo]:
        """Every tensor that can be read, by name."""
        return {name: info for header in self.headers.values() for name, info in header.tensors.items()}

    @property
    def shard_of(self) -> dict[str, str]:
        """The shard of every tensor that can be read; ``settle`` saw to it that none is in two."""
        return {name: shard for shard, header in self.headers.items() for name in header.tensors}

    @property
    def record(self) -> Provenance | None:
        """What an extract remembers of its checkpoint; None for any other checkpoint."""
        headers = list(self.headers.values())
        return read_provenance(headers[0]) if len(headers) == 1 else None

    def __repr__(self) -> str:
        return f"Checkpoint({self.where!r:.160}: {', '.join(self.headers)!r:.120})"

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors, all of them; ``progress`` is told how many reads are done of how many planned.

        Raises LnsimError when one of them is in no shard or cannot be read, or its copies differ.
        """
        names = list(names)
        found = self._read(self.headers, self._by_shard(names), progress)
        for shard, header in self.copies.items():
            again = [name for name in names if name in header.tensors]
            for name, copy in self._read(self.copies, {shard: again}).items():
                if found[name] != copy:
                    raise FormatError(
                        f"Reading {self.where}: tensor {name!r:.160} has other bytes in {shard} than in a file before "
                        f"it, so which copy counts is unclear."
                    )
        return found

    def read_part(self, name: str, start: int, stop: int) -> bytes:
        """The bytes ``[start, stop)`` of one tensor, for one too large to hold.

        Raises LnsimError as ``read``, outside the tensor, and where ranks share it: each may have another part of it.
        """
        (shard,) = self._by_shard([name])
        if any(name in header.tensors for header in self.copies.values()):
            raise FormatError(
                f"Reading {self.where}: tensor {name!r:.160} is split over ranks, and its parts are not put together."
            )
        (data,) = self.fetch([(shard, part_range(self.headers[shard], name, start, stop))], no_progress)
        return data

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all tensors but these, for the memory: a checkpoint may have a hundred thousand."""
        wanted = frozenset(names)
        self.headers = {shard: header.narrowed(wanted) for shard, header in self.headers.items()}
        self.copies = {shard: header.narrowed(wanted) for shard, header in self.copies.items()}
        self.faults = {name: error for name, error in self.faults.items() if name in wanted}

    def _read(
        self, headers: Mapping[str, Header], wanted_of: Mapping[str, list[str]], progress: Progress = no_progress
    ) -> dict[str, bytes]:
        planned = [[(shard, read) for read in plan_reads(headers[shard], names)] for shard, names in wanted_of.items()]
        # The first of each shard, then the second of each: what one shard must wait for, the others need not.
        jobs = [job for turn in zip_longest(*planned) for job in turn if job is not None]
        done = self.fetch([(shard, read.span) for shard, read in jobs], progress)
        empty = {name: b"" for names in wanted_of.values() for name in names}
        return empty | slice_reads([(read, data) for (_, read), data in zip(jobs, done, strict=True)])

    def _by_shard(self, names: Iterable[str]) -> dict[str, list[str]]:
        """The tensor names wanted of each shard, by file name."""
        shard_of = self.shard_of
        found: dict[str, list[str]] = {}
        for name in names:
            if name in self.faults:
                raise self.faults[name]
            if name not in shard_of:
                raise TensorNotFoundError(f"Reading {self.where}: no shard holds a tensor {name!r:.160}.")
            found.setdefault(shard_of[name], []).append(name)
        return found


def file_in(where: str, file: str) -> str:
    """A file of a checkpoint, for messages; the checkpoint may be this file itself."""
    return where if f"/{where}".endswith(f"/{file}") else f"{where}/{file}"


def check_totals(headers: Iterable[Header], *, where: str) -> None:
    """Refuse shards whose headers are fair each by itself and too much together; ask after each one that is read.

    Raises HeaderError when they have more bytes than one header may have, or too many tensors.
    """
    headers = list(headers)
    n_bytes = sum(header.buffer_start for header in headers)
    n_tensors = sum(len(header.tensors) for header in headers)
    if n_bytes > MAX_HEADER_BYTES or n_tensors > _MAX_ALL_TENSORS:
        raise HeaderError(
            f"Reading the headers of {where}: at most {MAX_HEADER_BYTES} bytes and {_MAX_ALL_TENSORS} tensors were "
            f"expected in all shards together, found {n_bytes} and {n_tensors} in the first {len(headers)}."
        )


def parse_config(text: bytes, *, where: str) -> dict[str, Any]:
    """The config as a dict; raises FormatError when it is not a JSON object, or as ``parse_json``."""
    content = parse_json(text, where=where)
    if not isinstance(content, dict):
        raise FormatError(f"Reading {where}: a JSON object was expected, found {type(content).__name__}.")
    return content


def parse_json(text: bytes, *, where: str) -> Any:
    """JSON of any kind; FormatError for what is none, with what the file is instead, where its first bytes tell.

    So many values that they take much more memory than their text are refused: 64 MB of ``[],`` would become 1.4 GB.
    """
    parts = sum(map(text.count, (b"{", b"[", b":", b",")))
    if parts > _MAX_JSON_PARTS:
        raise FormatError(f"Reading {where}: at most {_MAX_JSON_PARTS} JSON values were expected, found about {parts}.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = disguise(text)
        told = f", but it is {kind}" if kind else f" ({error!s:.120})"
        raise FormatError(f"Reading {where}: JSON was expected{told}.") from None

"""This module opens checkpoints on disk: a folder, one safetensors file, or a snapshot in the Hub's cache.

Files are read in place by position; nothing is loaded but the headers and the ranges asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lnsim.checkpoint.header import LENGTH_BYTES, Header, header_stop, parse_header
from lnsim.checkpoint.layout import CONFIG_NAME, Layout, check_index, find_layout, parse_index
from lnsim.checkpoint.ranges import ByteRange, part_range, plan_reads, slice_reads
from lnsim.checkpoint.source import (
    MAX_JSON_BYTES,
    Progress,
    Traffic,
    by_shard,
    check_totals,
    locate,
    no_progress,
    parse_config,
)
from lnsim.checkpoint.store import read_provenance
from lnsim.errors import FormatError, HeaderError, RangeError, SourceError, TensorNotFoundError

__all__ = ["LocalCheckpoint", "open_local"]


@dataclass(slots=True)
class LocalCheckpoint:
    """A checkpoint on disk; see ``Checkpoint`` for its attributes.

    Args:
        folder: where the shards lie.
    """

    folder: Path
    source: str
    where: str
    headers: Mapping[str, Header]
    config: Mapping[str, Any] | None
    repo_id: str | None = None
    revision: str | None = None
    commit: str | None = None
    notes: tuple[str, ...] = ()
    part: str = ""
    traffic: Traffic = field(default_factory=Traffic)

    def __repr__(self) -> str:
        return f"LocalCheckpoint({self.where!r:.160}: {', '.join(self.headers)!r:.120})"

    def _repr_html_(self) -> str:
        from lnsim.reprs.of_checkpoint import checkpoint

        return checkpoint("LocalCheckpoint", self)

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors.

        Raises:
            TensorNotFoundError: when a name is in no shard.
            RangeError: when a file ends before its header says.
        """
        wanted_of = by_shard(names, self.headers, where=self.where)
        found: dict[str, bytes] = {}
        for done, (shard, wanted) in enumerate(wanted_of.items(), 1):
            found.update(self._read_shard(shard, wanted))
            progress(done, len(wanted_of))
        return found

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all tensors but these, for the memory: a checkpoint may have a hundred thousand."""
        wanted = frozenset(names)
        self.headers = {shard: header.narrowed(wanted) for shard, header in self.headers.items()}

    def read_part(self, name: str, start: int, stop: int) -> bytes:
        """The bytes ``[start, stop)`` of one tensor; raises as ``read``, and RangeError outside the tensor."""
        shard_of = locate(self.headers, where=self.where)
        if name not in shard_of:
            raise TensorNotFoundError(f"Reading {self.where}: no shard holds a tensor {name!r:.160}.")
        shard = shard_of[name]
        span = part_range(self.headers[shard], name, start, stop)
        with _opened(self.folder / shard) as descriptor:
            data = _read_at(descriptor, span, where=f"{self.where}/{shard}")
        self.traffic.count(received=len(data))
        return data

    def _read_shard(self, shard: str, names: list[str]) -> dict[str, bytes]:
        header = self.headers[shard]
        reads = plan_reads(header, names)
        found = {name: b"" for name in names if not header.tensors[name].n_bytes}
        with _opened(self.folder / shard) as descriptor:
            pairs = [(read, _read_at(descriptor, read.span, where=f"{self.where}/{shard}")) for read in reads]
        self.traffic.count(received=sum(len(data) for _, data in pairs))
        return found | slice_reads(pairs)


def open_local(
    path: Path, *, source: str | None = None, repo_id: str | None = None, commit: str | None = None, part: str = ""
) -> LocalCheckpoint:
    """Open a folder or one ``.safetensors`` file and read its headers.

    Args:
        path: the folder or file.
        source: how messages and results call it; the path's own name by default.
        repo_id: the Hub's name, for a snapshot in its cache.
        commit: the snapshot's commit.
        part: the folder or file below the repo's root that the path is, for a snapshot.

    Raises:
        SourceError: when nothing is there; FormatError when it holds no safetensors weights; HeaderError when a header
            is wrong or the index and the headers disagree.
    """
    source = source or path.name
    where = f"{repo_id}@{commit}{'/' + part if part else ''}" if repo_id else source
    if path.is_dir():
        folder, layout = path, find_layout(sorted(os.listdir(path)), where=where)
    elif path.is_file():
        folder, layout = path.parent, Layout((path.name,))
    else:
        raise SourceError(f"Opening {source}: there is no such folder or file.")
    weight_map = _weight_map(folder, layout, where)
    shards = sorted(set(weight_map.values())) if weight_map else layout.shards
    headers: dict[str, Header] = {}
    for shard in shards:
        headers[shard] = _read_header(folder / shard, where=f"{where}/{shard}")
        if len(shards) > 1:
            check_totals(headers.values(), where=where)
    if weight_map:
        check_index(weight_map, locate(headers, where=where), where=where)
    config = _read_config(folder, where)
    found = LocalCheckpoint(folder, source, where, headers, config, repo_id, None, commit, layout.notes, part)
    return found if len(headers) > 1 else _with_provenance(found)


def _with_provenance(opened: LocalCheckpoint) -> LocalCheckpoint:
    """An extract carries its own config and origin; they count more than a file that lies beside it."""
    provenance = read_provenance(next(iter(opened.headers.values())))
    if provenance is not None:
        opened.config = provenance.config
        opened.source = provenance.source or opened.source
        opened.repo_id, opened.revision, opened.commit = provenance.repo_id, provenance.revision, provenance.commit
    return opened


def _weight_map(folder: Path, layout: Layout, where: str) -> dict[str, str]:
    if layout.index is None:
        return {}
    weight_map = parse_index(_read_small(folder / layout.index), where=where)
    absent = sorted(shard for shard in set(weight_map.values()) if not (folder / shard).is_file())
    if absent:
        raise FormatError(
            f"Opening {where}: its index names {len(set(weight_map.values()))} shards, but {absent[0]} is not there "
            f"({len(absent)} missing in all). Complete the download, or name the repo id to read it from the Hub."
        )
    return weight_map


def _read_config(folder: Path, where: str) -> dict[str, Any] | None:
    path = folder / CONFIG_NAME
    return parse_config(_read_small(path), where=f"{where}/{CONFIG_NAME}") if path.is_file() else None


def _read_small(path: Path) -> bytes:
    size = path.stat().st_size
    if size > MAX_JSON_BYTES:
        raise FormatError(f"Reading {path.name}: at most {MAX_JSON_BYTES} bytes were expected, the file has {size}.")
    return path.read_bytes()


def _read_header(path: Path, *, where: str) -> Header:
    with _opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        start = os.pread(descriptor, LENGTH_BYTES, 0)
        try:
            stop = header_stop(start, size)
        except HeaderError as error:
            raise HeaderError(f"Reading the header of {where}: {error}") from None
        return parse_header(_read_at(descriptor, ByteRange(0, stop), where=where), size, where=where)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A file descriptor without read-ahead, neither ours nor the system's: no page is read that was not asked for."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise SourceError(f"Opening {path.name}: {error.strerror}.") from error
    try:
        if hasattr(os, "posix_fadvise"):  # not on macOS and Windows
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_at(descriptor: int, span: ByteRange, *, where: str) -> bytes:
    """All bytes of the range: one ``pread`` may bring fewer than asked for."""
    pieces: list[bytes] = []
    position = span.start
    while position < span.stop:
        piece = os.pread(descriptor, span.stop - position, position)
        if not piece:
            raise RangeError(f"Reading bytes {span.start} to {span.stop} of {where}: the file ends at byte {position}.")
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)

"""This module opens checkpoints on disk: a folder, one safetensors file, or a snapshot in the Hub's cache.

Files are read in place by position; nothing is loaded but the headers and the ranges asked for.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any

from lnsim.checkpoint.adapter import adapter_error, is_adapter
from lnsim.checkpoint.contents import check_copies, check_whole, settle
from lnsim.checkpoint.disguise import DISGUISE_BYTES
from lnsim.checkpoint.header import Header, header_end, read_header
from lnsim.checkpoint.layout import ADAPTER_CONFIG_NAME, CONFIG_NAME, Layout, find_layout, named_file, parse_index
from lnsim.checkpoint.ranges import ByteRange, part_range, plan_reads, slice_reads
from lnsim.checkpoint.source import (
    MAX_JSON_BYTES,
    Progress,
    Traffic,
    by_shard,
    check_totals,
    checkpoint_card,
    file_in,
    no_progress,
    parse_config,
)
from lnsim.checkpoint.store import read_provenance
from lnsim.errors import FormatError, HeaderError, LnsimError, RangeError, SourceError

__all__ = ["LocalCheckpoint", "open_local", "path_on_disk"]


@dataclass(slots=True)
class LocalCheckpoint:
    """A checkpoint on disk; see ``Checkpoint`` for its attributes.

    Args:
        folder: where the shards lie.
        copies: further copies of the tensors, by shard, which must agree with those that are read.
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
    faults: Mapping[str, LnsimError] = field(default_factory=dict)
    copies: Mapping[str, Header] = field(default_factory=dict)
    part: str = ""
    traffic: Traffic = field(default_factory=Traffic)

    def __repr__(self) -> str:
        return f"LocalCheckpoint({self.where!r:.160}: {', '.join(self.headers)!r:.120})"

    def _repr_html_(self) -> str:
        return checkpoint_card(self)

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors.

        Raises:
            TensorNotFoundError: when a name is in no shard.
            RangeError: when a file ends before its header says.
            LnsimError: when one of them cannot be read, or its copies differ.
        """
        names = list(names)
        wanted_of = by_shard(names, self.headers, self.faults, where=self.where)
        found: dict[str, bytes] = {}
        for done, (shard, wanted) in enumerate(wanted_of.items(), 1):
            found.update(self._read_shard(shard, self.headers[shard], wanted))
            progress(done, len(wanted_of))
        for shard, header in self.copies.items():
            again = self._read_shard(shard, header, [name for name in names if name in header.tensors])
            check_copies(found, shard, again, where=self.where)
        return found

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all tensors but these, for the memory: a checkpoint may have a hundred thousand."""
        wanted = frozenset(names)
        self.headers = {shard: header.narrowed(wanted) for shard, header in self.headers.items()}
        self.copies = {shard: header.narrowed(wanted) for shard, header in self.copies.items()}
        self.faults = {name: error for name, error in self.faults.items() if name in wanted}

    def read_part(self, name: str, start: int, stop: int) -> bytes:
        """The bytes ``[start, stop)`` of one tensor; raises as ``read``, and RangeError outside the tensor."""
        (shard,) = by_shard([name], self.headers, self.faults, where=self.where)
        check_whole(name, self.copies.values(), where=self.where)
        span = part_range(self.headers[shard], name, start, stop)
        where = file_in(self.where, shard)
        with _opened(self.folder / shard, where) as file:
            data = _read_at(file, span, where=where)
        self.traffic.count(received=len(data))
        return data

    def _read_shard(self, shard: str, header: Header, names: Sequence[str]) -> dict[str, bytes]:
        reads = plan_reads(header, names)
        found = {name: b"" for name in names if not header.tensors[name].n_bytes}
        where = file_in(self.where, shard)
        with _opened(self.folder / shard, where) as file:
            pairs = [(read, _read_at(file, read.span, where=where)) for read in reads]
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
    if os.path.isdir(path):
        folder, layout = path, find_layout(_listing(path, where), where=where)
    else:
        _check_file(path, where, what="folder or file")
        folder, layout = path.parent, named_file(path.name)
    weight_map = _weight_map(folder, layout, where)
    layout = layout.listed(weight_map.values()) if weight_map else layout
    headers, unread = _read_headers(folder, layout, where)
    contents = settle(headers, where=where, weight_map=weight_map, unread=unread, replicated=layout.replicated)
    if is_adapter(headers):
        raise _adapter_error(folder, where)
    found = LocalCheckpoint(folder, source, where, contents.headers, None, repo_id, None, commit, part=part)
    found.notes = (*layout.notes, *contents.notes)
    found.faults, found.copies = contents.faults, contents.copies
    if len(headers) > 1 or not _take_provenance(found):
        found.config = _read_config(folder, CONFIG_NAME, where)
    return found


def path_on_disk(source: str) -> Path | None:
    """The path that a SOURCE names, where anything is there: a link that leads nowhere is, and is an error later."""
    path = Path(os.path.expanduser(source))
    try:
        os.lstat(path)
    except PermissionError:
        return path  # something that must not be looked at, which opening it will tell
    except (OSError, ValueError):  # not there, or no possible name: too long, with NUL, half a surrogate pair
        return None
    return path


def _adapter_error(folder: Path, where: str) -> FormatError:
    try:
        return adapter_error(_read_config(folder, ADAPTER_CONFIG_NAME, where), where)
    except SourceError:  # its own config cannot be read; that it is an adapter is true all the same
        return adapter_error(None, where)


def _take_provenance(opened: LocalCheckpoint) -> bool:
    """An extract carries its own config and origin; they count more than a file that lies beside it."""
    provenance = read_provenance(next(iter(opened.headers.values())))
    if provenance is None:
        return False
    opened.config = provenance.config
    opened.source = provenance.source or opened.source
    opened.repo_id, opened.revision, opened.commit = provenance.repo_id, provenance.revision, provenance.commit
    return True


def _listing(folder: Path, where: str) -> list[str]:
    """Names in a folder, and those of safetensors files in its folders as ``folder/file``."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise _unreadable(error, where) from error
    found = list(names)
    for name in names:
        if os.path.isdir(folder / name):
            with suppress(OSError):  # its weights would only be named, not read
                inner = sorted(os.listdir(folder / name))
                found += [f"{name}/{file}" for file in inner if file.endswith(".safetensors")]
    return found


def _weight_map(folder: Path, layout: Layout, where: str) -> dict[str, str]:
    return {} if layout.index is None else parse_index(_read_small(folder, layout.index, where), where=where)


def _read_headers(folder: Path, layout: Layout, where: str) -> tuple[dict[str, Header], dict[str, LnsimError]]:
    """Header of each shard; with an index, those that cannot be read are told apart with the reason."""
    headers: dict[str, Header] = {}
    unread: dict[str, LnsimError] = {}
    absent = [shard for shard in layout.shards if not os.path.lexists(folder / shard)] if layout.index else []
    for shard in layout.shards:
        try:
            if shard in absent:
                raise FormatError(
                    f"Opening {where}: its index names {len(layout.shards)} shards, but {shard} is not there "
                    f"({len(absent)} missing in all). Complete the download, or name the repo id to read it from the "
                    f"Hub."
                )
            headers[shard] = _read_header(folder / shard, where=file_in(where, shard))
        except (HeaderError, SourceError) as error:
            if layout.index is None:
                raise
            unread[shard] = error
        if len(layout.shards) > 1:
            check_totals(headers.values(), where=where)
    return headers, unread


def _read_config(folder: Path, name: str, where: str) -> dict[str, Any] | None:
    """A config, None where there is none; a link that leads nowhere is an error."""
    if not os.path.lexists(folder / name):
        return None
    return parse_config(_read_small(folder, name, where), where=f"{where}/{name}")


def _read_small(folder: Path, name: str, where: str) -> bytes:
    where = file_in(where, name)
    with _opened(folder / name, where) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_JSON_BYTES:
            raise FormatError(f"Reading {where}: at most {MAX_JSON_BYTES} bytes were expected, the file has {size}.")
        return _read_at(file, ByteRange(0, size), where=where) if size else b""


def _read_header(path: Path, *, where: str) -> Header:
    with _opened(path, where) as file:
        size = os.fstat(file.fileno()).st_size
        start = _read_at(file, ByteRange(0, min(size, DISGUISE_BYTES)), where=where) if size else b""
        stop = header_end(start, size, where=where)
        return read_header(_read_at(file, ByteRange(0, stop), where=where), size, where=where)


def _check_file(path: Path, where: str, *, what: str = "file") -> None:
    """Refuse what is no file to be read by position, before it is opened: a pipe would wait for ever.

    Raises:
        SourceError: what is there instead.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            raise SourceError(
                f"Opening {where}: it is a link to {os.readlink(path)!r:.200}, which is not there. Complete the "
                f"download or the copy, or name the repo id to read it from the Hub."
            ) from None
        raise SourceError(f"Opening {where}: there is no such {what}.") from None
    except (OSError, ValueError) as error:
        raise _unreadable(error, where) from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
        raise SourceError(f"Opening {where}: a file was expected, but it is {kind}.")


@contextmanager
def _opened(path: Path, where: str) -> Iterator[FileIO]:
    """A file without read-ahead, neither ours nor the system's: no page is read that was not asked for."""
    _check_file(path, where)
    try:
        file = FileIO(path)
    except OSError as error:
        raise _unreadable(error, where) from error
    with file:
        if hasattr(os, "posix_fadvise"):  # not on macOS and Windows
            with suppress(OSError):  # only a hint, which some file systems refuse
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        yield file


def _read_at(file: FileIO, span: ByteRange, *, where: str) -> bytes:
    """All bytes of the range: one reading may bring fewer than asked for. The file is this reader's own."""
    pieces: list[bytes] = []
    position = span.start
    try:
        file.seek(position)
        while position < span.stop:
            piece = file.read(span.stop - position)
            if not piece:
                raise RangeError(
                    f"Reading bytes {span.start} to {span.stop} of {where}: the file ends at byte {position}."
                )
            pieces.append(piece)
            position += len(piece)
    except OSError as error:
        raise _unreadable(error, where) from error
    return b"".join(pieces)


def _unreadable(error: OSError | ValueError, where: str) -> SourceError:
    """What the disk said, as one of ours."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"Opening {where}: it cannot be read ({reason}).")

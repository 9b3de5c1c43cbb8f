"""This module opens checkpoints on disk: a folder, one safetensors file, or a snapshot in the Hub's cache."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from lnsim.checkpoint.format import other_format
from lnsim.checkpoint.format.header import DISGUISE_BYTES, Header, header_end, parse_header
from lnsim.checkpoint.format.layout import ADAPTER_CONFIG_NAME, CONFIG_NAME, INDEX_NAME, Layout, find_layout, named_file
from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.checkpoint.hub.names import WEIGHTS, RepoName, is_repo_id
from lnsim.checkpoint.source import (
    MAX_JSON_BYTES,
    Checkpoint,
    Fetch,
    Progress,
    Traffic,
    check_totals,
    file_in,
    parse_config,
    settle,
)
from lnsim.checkpoint.token_texts import TOKENIZER_FILES
from lnsim.errors import FormatError, HeaderError, LnsimError, RangeError, SourceError
from lnsim.words import TEXTS

_OF_A_MODEL = "models--"
_SNAPSHOTS = "snapshots"
_SAYS: Mapping[str, str] = TEXTS["on_disk"]


def open_local(path: Path, *, source: str | None = None, where: str | None = None) -> Checkpoint:
    """Open a folder or one file of weights; ``source`` is what results call it, ``where`` what messages do.

    Raises SourceError when nothing is there, FormatError without safetensors weights, HeaderError for a wrong header.
    """
    source = source or path.name
    where = where or source
    if os.path.isdir(path):
        folder, layout = path, find_layout(_listing(path, where), where=where)
    else:
        _check_file(path, where, what="folder or file")
        folder, layout = path.parent, named_file(path.name)
    if layout.index is not None:
        layout = layout.indexed(_read_small(folder, layout.index, where), where=where)
    headers, unread = _read_headers(folder, layout, where)
    traffic = Traffic()
    opened = Checkpoint(source, where, headers, None, _fetch(folder, where, traffic), traffic)
    settle(opened, layout, unread, lambda: _read_config(folder, ADAPTER_CONFIG_NAME, where))
    opened.folder = folder
    there = [name for name in TOKENIZER_FILES if os.path.exists(folder / name)]
    opened.tokenizers = {name: partial(_read_start, folder, name, where, traffic) for name in there}
    if (record := opened.record) is None:
        opened.config = opened.config or _read_config(folder, CONFIG_NAME, where)
    else:  # an extract carries its own config and origin; they count more than a file that lies beside it
        opened.config, opened.source = record.config, record.source or source
        opened.repo_id, opened.revision, opened.commit = record.repo_id, record.revision, record.commit
    return opened


def _fetch(folder: Path, where: str, traffic: Traffic) -> Fetch:
    def fetch(jobs: Sequence[tuple[str, ByteRange]], progress: Progress) -> list[bytes]:
        found: list[bytes] = []
        for shard, span in jobs:
            named = file_in(where, shard)
            with _opened(folder / shard, named) as file:
                found.append(_read_at(file, span.start, span.stop, where=named))
            traffic.count(received=len(span))
            progress(len(found), len(jobs))
        return found

    return fetch


def _read_start(folder: Path, name: str, where: str, traffic: Traffic, n_bytes: int) -> bytes:
    """The first bytes of a file beside the shards, as far as it goes."""
    where = file_in(where, name)
    with _opened(folder / name, where) as file:
        data = _read_at(file, 0, min(n_bytes, os.fstat(file.fileno()).st_size), where=where)
    traffic.count(received=len(data))
    return data


def find_snapshot(path: Path) -> tuple[Path, RepoName] | None:
    """The snapshot's folder and what a path in the cache names, with its commit; None for any path elsewhere.

    Of ``models--owner--name`` itself that is what ``refs/main`` names, else the only snapshot; raises SourceError when
    there is more than one, or none.
    """
    whole = Path(os.path.abspath(path))  # as it was written: files of a snapshot are links that lead out of it
    home = next((one for one in (whole, *whole.parents) if one.name.startswith(_OF_A_MODEL)), None)
    if home is None or not os.path.isdir(home / _SNAPSHOTS):
        return None
    below = whole.relative_to(home).parts
    repo_id = home.name.removeprefix(_OF_A_MODEL).replace("--", "/")
    if below[:1] not in ((), (_SNAPSHOTS,)) or not is_repo_id(repo_id):
        return None
    commit = below[1] if len(below) > 1 else _commit_of(home, repo_id)
    return home / _SNAPSHOTS / commit, RepoName(repo_id, commit, "/".join(below[2:]))


def open_snapshot(folder: Path, name: RepoName) -> Checkpoint:
    """Open a snapshot, or the part that is named; raises as ``open_local``, SourceError for a blob that is gone."""
    path, commit = folder / name.part, folder.name
    _check_links(path, name.repo_id, commit)
    below = f"/{name.part}" if name.part else ""
    try:
        opened = open_local(path, source=f"{name.repo_id}{below}", where=f"{name.repo_id}@{commit}{below}")
    except FormatError as error:
        raise FormatError(_SAYS["partial_cache"].format(error=error, repo_id=name.repo_id, commit=commit)) from None
    opened.revision, opened.part = name.revision, name.part
    if opened.record is None:
        opened.repo_id, opened.commit = name.repo_id, commit
    return opened


def commit_of_reference(home: Path, name: str) -> str | None:
    """The commit of a branch, tag or ``refs/pr/3`` when it was last asked for; None where the cache does not tell."""
    try:
        return (home / "refs" / name).read_text("utf-8", "replace").strip()
    except (OSError, ValueError):  # none there, or none for us to read, or no name of a file
        return None


def _commit_of(home: Path, repo_id: str) -> str:
    there = [name for name in _listed(home / _SNAPSHOTS) if os.path.isdir(home / _SNAPSHOTS / name)]
    wanted = commit_of_reference(home, "main")
    if wanted in there or (wanted is None and len(there) == 1):
        return wanted or there[0]
    named = "it has no refs/main" if wanted is None else f"refs/main names {wanted!r:.60}, which is not there"
    told = ", ".join(there) or "none"
    raise SourceError(_SAYS["no_snapshot"].format(home=home, there=told, named=named, repo_id=repo_id))


def _check_links(path: Path, repo_id: str, commit: str) -> None:
    """Refuse a snapshot whose links lead nowhere: its blobs were deleted, to free the disk or by a moved cache."""
    whole = os.path.isdir(path)
    folder = path if whole else path.parent
    names = _listed(folder) if whole else [path.name, CONFIG_NAME]
    needed = [name for name in names if name.endswith(WEIGHTS) or name in (CONFIG_NAME, INDEX_NAME)]
    dead = [name for name in needed if os.path.islink(folder / name) and not os.path.exists(folder / name)]
    if dead:
        told = {"dead": dead[0], "n_dead": len(dead), "repo_id": repo_id, "commit": commit}
        raise SourceError(_SAYS["dead_blob"].format(**told))


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise SourceError(f"Opening {folder.name} in the Hub's cache: {error.strerror}.") from None


def path_on_disk(source: str) -> Path | None:
    """The path that a SOURCE names, where anything is there: a link that leads nowhere is, and is an error later."""
    if not source.strip():
        return None
    path = Path(os.path.expanduser(source))
    try:
        os.lstat(path)
    except PermissionError:
        return path  # something that must not be looked at, which opening it will tell
    except (OSError, ValueError):  # not there, or no possible name: too long, with NUL, half a surrogate pair
        return None
    return path


def _listing(folder: Path, where: str) -> list[str]:
    """Names in a folder, and those of safetensors files in its folders as ``folder/file``."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise _unreadable(error, where) from error
    return [*names, *sorted(path.relative_to(folder).as_posix() for path in folder.glob("*/*.safetensors"))]


def _read_headers(folder: Path, layout: Layout, where: str) -> tuple[dict[str, Header], dict[str, LnsimError]]:
    """Header of each shard; with an index, those that cannot be read are told apart with the reason."""
    headers: dict[str, Header] = {}
    unread: dict[str, LnsimError] = {}
    absent = [shard for shard in layout.shards if not os.path.lexists(folder / shard)] if layout.index else []
    for shard in layout.shards:
        try:
            if shard in absent:
                told = {"n_shards": len(layout.shards), "shard": shard, "n_absent": len(absent)}
                raise FormatError(_SAYS["no_shard"].format(where=where, **told))
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
        return _read_at(file, 0, size, where=where)


def _read_header(path: Path, *, where: str) -> Header:
    with _opened(path, where) as file:
        size, other = os.fstat(file.fileno()).st_size, other_format(path.name)
        n_bytes = min(size, DISGUISE_BYTES if other is None else other[1])
        start = _read_at(file, 0, n_bytes, where=where)
        if other is not None:
            return other[0](lambda span: _read_at(file, span.start, span.stop, where=where), start, size, where)
        stop = header_end(start, size, where=where)
        return parse_header(_read_at(file, 0, stop, where=where), size, where=where, lenient=True)


def _check_file(path: Path, where: str, *, what: str = "file") -> None:
    """Raise SourceError for what is no file to be read by position, before it is opened: a pipe would wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            raise SourceError(_SAYS["dead_link"].format(where=where, link=os.readlink(path))) from None
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


def _read_at(file: FileIO, start: int, stop: int, *, where: str) -> bytes:
    """All of the bytes `[start, stop)`: one reading may bring fewer than asked for. The file is this reader's own."""
    data = bytearray()
    try:
        file.seek(start)
        while piece := file.read(stop - start - len(data)):
            data += piece
    except OSError as error:
        raise _unreadable(error, where) from error
    if start + len(data) < stop:
        raise RangeError(f"Reading bytes {start} to {stop} of {where}: the file ends at byte {start + len(data)}.")
    return bytes(data)


def _unreadable(error: OSError | ValueError, where: str) -> SourceError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return SourceError(f"Opening {where}: it cannot be read ({reason}).")

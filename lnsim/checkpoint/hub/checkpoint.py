"""This module opens checkpoints on the Hub: commit first, then headers, then the ranges of the tensors wanted.

The commit is pinned before anything else is read, and every later request names it. A header is the first bytes of its
shard. A shard's address is resolved once, and its signed target serves all further ranges of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lnsim.checkpoint.contents import Contents, adapter_error, is_adapter, settle
from lnsim.checkpoint.format.header import MAX_HEADER_BYTES, Header
from lnsim.checkpoint.format.layout import ADAPTER_CONFIG_NAME, Layout, find_layout, named_file
from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.checkpoint.hub.repo import Repo, pin
from lnsim.checkpoint.hub.session import Settings
from lnsim.checkpoint.hub.shard import FIRST_WINDOW, RemoteShard, Window
from lnsim.checkpoint.source import (
    MAX_JSON_BYTES,
    Checkpoint,
    Progress,
    check_totals,
    no_progress,
    parse_config,
)
from lnsim.errors import HeaderError, HubError, LnsimError

__all__ = ["open_pinned", "pin_hub"]

_FAIR_SHARE = 1_000_000
"""Bytes that the header of each of many shards may have, however many they are."""


def pin_hub(repo_id: str, revision: str | None = None, part: str = "", *, settings: Settings | None = None) -> Repo:
    """The commit behind a revision, in one request.

    Raises:
        RepoNotFoundError, GatedError, RevisionError, NetworkError, OfflineError: each a sentence on what to do.
        SourceError: when it has no such part.
    """
    return pin(repo_id, revision, part, settings or Settings())


def open_pinned(repo: Repo, progress: Progress = no_progress) -> Checkpoint:
    """Open a pinned repo: its headers and its config; raises as ``pin_hub`` does, and FormatError without weights."""
    layout = named_file(repo.file) if repo.file else find_layout(repo.names, where=repo.where, typed=repo.typed)
    found = repo.transport.client.open(lambda: _open_shards(repo, layout, progress))
    contents = _settled(repo, layout, found)
    notes = (*layout.listed(found.files).notes, *contents.notes) if layout.index else (*layout.notes, *contents.notes)

    files, read_many = found.files, repo.transport.map  # and not the headers that came with them, for the memory

    def fetch(jobs: Sequence[tuple[str, ByteRange]], progress: Progress) -> list[bytes]:
        return read_many(lambda job: files[job[0]].read(job[1]), jobs, progress)

    return Checkpoint(
        f"{repo.repo_id}/{repo.part}" if repo.part else repo.repo_id,
        repo.where,
        contents.headers,
        found.config,
        fetch,
        repo.transport.traffic,
        repo.repo_id,
        repo.revision,
        repo.commit,
        repo.part,
        (*repo.notes, *notes),
        contents.faults,
        contents.copies,
    )


@dataclass(slots=True)
class _Shards:
    """The shards of a repo, and what came along.

    Args:
        files: by name.
        headers: of each file where it could be read.
        config: the repo's.
        weight_map: what the index says, where it was read.
        unread: by shard, why there is no header.
    """

    files: dict[str, RemoteShard]
    headers: dict[str, Header] = field(default_factory=dict)
    config: Mapping[str, Any] | None = None
    weight_map: Mapping[str, str] = field(default_factory=dict)
    unread: dict[str, LnsimError] = field(default_factory=dict)


def _settled(repo: Repo, layout: Layout, found: _Shards) -> Contents:
    headers = {name: found.headers[name] for name in found.files if name in found.headers}
    contents = settle(
        headers,
        where=repo.where,
        weight_map=found.weight_map,
        unread=found.unread,
        replicated=layout.replicated,
    )
    if is_adapter(headers):
        raise adapter_error(_adapter_config(repo), repo.where)
    return contents


def _adapter_config(repo: Repo) -> Mapping[str, Any] | None:
    if ADAPTER_CONFIG_NAME not in repo.sizes:
        return None
    where = repo.where_of(ADAPTER_CONFIG_NAME)
    data = repo.transport.get(repo.url(ADAPTER_CONFIG_NAME), where=where, max_bytes=MAX_JSON_BYTES)
    return parse_config(data, where=where)


def _open_shards(repo: Repo, layout: Layout, progress: Progress) -> _Shards:
    config = repo.transport.client.aside(repo.config)
    weight_map = repo.weight_map(layout.index) if layout.index is not None else {}
    names_of: dict[str, list[str]] = {}
    for name, shard in weight_map.items():
        names_of.setdefault(shard, []).append(name)
    there, unread = _there(repo, sorted(names_of) or layout.shards)
    found = _Shards(_files(repo, there), {}, None, weight_map, unread)
    longest = max(MAX_HEADER_BYTES // max(1, len(there)), _FAIR_SHARE)
    learnt: Window | None = None

    def read_header(shard: str) -> None:
        window = (learnt or Window()).size(names_of[shard]) if shard in names_of else FIRST_WINDOW
        try:
            found.headers[shard] = found.files[shard].read_header(window, longest)
        except HeaderError as error:
            if not weight_map:
                raise
            found.unread[shard] = error

    for shard in there[:1]:
        read_header(shard)
        # Shards of one model have entries of about one size: the first one tells what to ask for.
        learnt = Window.learnt(found.headers[shard]) if shard in found.headers else None
    repo.transport.map(read_header, there[1:], progress)
    check_totals(found.headers.values(), where=repo.where)
    found.config = config.result()
    return found


def _there(repo: Repo, names: Sequence[str]) -> tuple[list[str], dict[str, LnsimError]]:
    """The shards that the commit holds, and errors for those that it lacks."""
    absent = [name for name in names if name not in repo.sizes]
    missing: dict[str, LnsimError] = {
        name: HubError(
            f"Opening {repo.where}: its index names {name!r:.120}, which the commit does not hold ({len(absent)} such "
            f"in all). The upload is incomplete."
        )
        for name in absent
    }
    return [name for name in names if name not in missing], missing


def _files(repo: Repo, names: Iterable[str]) -> dict[str, RemoteShard]:
    return {name: RemoteShard(repo.url(name), repo.where_of(name), repo.transport) for name in names}

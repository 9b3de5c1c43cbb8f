"""This module opens checkpoints on the Hub: commit first, then headers, then the ranges of the tensors wanted.

The commit is pinned before anything else is read, and every later request names it. A header is the first bytes of its
shard. A shard's address is resolved once, and its signed target serves all further ranges of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeVar

from lnsim.checkpoint.adapter import adapter_error, is_adapter
from lnsim.checkpoint.contents import Contents, check_copies, check_whole, settle
from lnsim.checkpoint.header import MAX_HEADER_BYTES, Header
from lnsim.checkpoint.hub.cache import cached_snapshot
from lnsim.checkpoint.hub.repo import Repo, pin
from lnsim.checkpoint.hub.session import Settings
from lnsim.checkpoint.hub.shard import FIRST_WINDOW, RemoteShard
from lnsim.checkpoint.hub.transport import Transport
from lnsim.checkpoint.layout import ADAPTER_CONFIG_NAME, Layout, find_layout, named_file
from lnsim.checkpoint.local import LocalCheckpoint
from lnsim.checkpoint.ranges import Read, part_range, plan_reads, slice_reads
from lnsim.checkpoint.source import (
    MAX_JSON_BYTES,
    Progress,
    Traffic,
    by_shard,
    check_totals,
    checkpoint_card,
    no_progress,
    parse_config,
)
from lnsim.checkpoint.window import Window
from lnsim.errors import HeaderError, HubError, LnsimError

__all__ = ["HubCheckpoint", "open_hub", "open_pinned", "pin_hub"]

A = TypeVar("A")

_FAIR_SHARE = 1_000_000
"""Bytes that the header of each of many shards may have, however many they are."""


@dataclass(slots=True)
class HubCheckpoint:
    """A checkpoint on the Hub; see ``Checkpoint`` for its attributes.

    Args:
        files: the shards that were opened, by name.
        copies: the same files with the further copies that they hold of others' tensors.
    """

    source: str
    where: str
    repo_id: str | None
    revision: str | None
    commit: str | None
    config: Mapping[str, Any] | None
    files: Mapping[str, RemoteShard]
    transport: Transport
    notes: tuple[str, ...] = ()
    faults: Mapping[str, LnsimError] = field(default_factory=dict)
    copies: Mapping[str, RemoteShard] = field(default_factory=dict)
    part: str = ""

    @property
    def headers(self) -> Mapping[str, Header]:
        """Header of each shard, by file name."""
        return {name: shard.header for name, shard in self.files.items()}

    @property
    def traffic(self) -> Traffic:
        """Requests and bytes so far."""
        return self.transport.traffic

    def __repr__(self) -> str:
        return f"HubCheckpoint({self.where!r:.160}: {', '.join(self.headers)!r:.120})"

    def _repr_html_(self) -> str:
        return checkpoint_card(self)

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors, all of them.

        Raises:
            TensorNotFoundError: when a name is in no shard.
            HubError: or the subclass that fits, for the first range that could not be read.
            LnsimError: when one of them cannot be read, or its copies differ.
        """
        names = list(names)
        wanted = by_shard(names, self.headers, self.faults, where=self.where)
        found = self._fetch(wanted, self.files, progress)
        for name, shard in self.copies.items():
            again = [name for name in names if name in shard.header.tensors]
            check_copies(found, name, self._fetch({name: again}, self.copies), where=self.where)
        return found

    def _fetch(
        self, wanted_of: Mapping[str, list[str]], files: Mapping[str, RemoteShard], progress: Progress = no_progress
    ) -> dict[str, bytes]:
        jobs = _by_turns(
            [(files[name], read) for read in plan_reads(files[name].header, wanted)]
            for name, wanted in wanted_of.items()
        )
        done = self.transport.map(lambda job: job[0].read(job[1]), jobs, progress)
        empty = {name: b"" for wanted in wanted_of.values() for name in wanted}
        return empty | slice_reads([(read, data) for (_, read), data in zip(jobs, done, strict=True)])

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all tensors but these, for the memory: a checkpoint may have a hundred thousand."""
        wanted = frozenset(names)
        for shard in (*self.files.values(), *self.copies.values()):
            shard.keep_only(wanted)
        self.faults = {name: error for name, error in self.faults.items() if name in wanted}

    def read_part(self, name: str, start: int, stop: int) -> bytes:
        """The bytes ``[start, stop)`` of one tensor; raises as ``read``, and RangeError outside the tensor."""
        (holder,) = by_shard([name], self.headers, self.faults, where=self.where)
        check_whole(name, [copy.header for copy in self.copies.values()], where=self.where)
        shard = self.files[holder]
        part = Read(part_range(shard.header, name, start, stop), ())
        return self.transport.map(shard.read, [part])[0]


def open_hub(
    repo_id: str,
    revision: str | None = None,
    part: str = "",
    *,
    settings: Settings | None = None,
    progress: Progress = no_progress,
) -> HubCheckpoint | LocalCheckpoint:
    """Open a repo at a pinned commit; a complete snapshot in the Hub's cache is read in place instead.

    Args:
        repo_id: ``owner/name``, or the bare name of an old repo.
        revision: branch, tag or commit; the head of ``main`` by default.
        part: the folder or file of the repo to open; all of it by default.
        settings: patience and concurrency.
        progress: told how many headers were read.

    Raises:
        RepoNotFoundError, GatedError, RevisionError, NetworkError, OfflineError: each a sentence on what to do.
        SourceError: when it has no such part, FormatError when that has no safetensors weights.
    """
    cached = cached_snapshot(repo_id, revision, part)
    return cached if cached is not None else open_pinned(pin_hub(repo_id, revision, part, settings=settings), progress)


def pin_hub(repo_id: str, revision: str | None = None, part: str = "", *, settings: Settings | None = None) -> Repo:
    """The commit behind a revision, in one request; raises as ``open_hub`` does."""
    return pin(repo_id, revision, part, settings or Settings())


def open_pinned(repo: Repo, progress: Progress = no_progress) -> HubCheckpoint:
    """Open a pinned repo: its headers and its config; raises as ``open_hub`` does."""
    layout = named_file(repo.file) if repo.file else find_layout(repo.names, where=repo.where, typed=repo.typed)
    found = repo.transport.client.open(lambda: _open_shards(repo, layout, progress))
    contents = _settled(repo, layout, found)
    notes = (*layout.listed(found.files).notes, *contents.notes) if layout.index else (*layout.notes, *contents.notes)
    files = {name: found.files[name] for name in contents.headers}
    copies = {name: files[name].holding(header) for name, header in contents.copies.items()}
    for name, header in contents.headers.items():
        if header is not files[name].header:
            files[name].keep_only(header.tensors)
    return HubCheckpoint(
        f"{repo.repo_id}/{repo.part}" if repo.part else repo.repo_id,
        repo.where,
        repo.repo_id,
        repo.revision,
        repo.commit,
        found.config,
        files,
        repo.transport,
        (*repo.notes, *notes),
        contents.faults,
        copies,
        repo.part,
    )


@dataclass(slots=True)
class _Shards:
    """The shards of a repo, and what came along.

    Args:
        files: by name; without a header where it could not be read.
        config: the repo's.
        weight_map: what the index says, where it was read.
        unread: by shard, why there is no header.
    """

    files: dict[str, RemoteShard]
    config: Mapping[str, Any] | None = None
    weight_map: Mapping[str, str] = field(default_factory=dict)
    unread: dict[str, LnsimError] = field(default_factory=dict)


def _settled(repo: Repo, layout: Layout, found: _Shards) -> Contents:
    headers = {name: shard.header for name, shard in found.files.items() if name not in found.unread}
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
    found = _Shards(_files(repo, there), None, weight_map, unread)
    longest = max(MAX_HEADER_BYTES // max(1, len(there)), _FAIR_SHARE)
    learnt: Window | None = None

    def read_header(shard: str) -> None:
        window = (learnt or Window()).size(names_of[shard]) if shard in names_of else FIRST_WINDOW
        try:
            found.files[shard].read_header(window, longest)
        except HeaderError as error:
            if not weight_map:
                raise
            found.unread[shard] = error

    for shard in there[:1]:
        read_header(shard)
        # Shards of one model have entries of about one size: the first one tells what to ask for.
        learnt = None if shard in unread else Window.learnt(found.files[shard].header)
    repo.transport.map(read_header, there[1:], progress)
    check_totals((shard.header for name, shard in found.files.items() if name not in unread), where=repo.where)
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


def _by_turns(groups: Iterable[list[A]]) -> list[A]:
    """The first of each group, then the second of each: what one shard must wait for, the others need not."""
    return [item for turn in zip_longest(*groups) for item in turn if item is not None]

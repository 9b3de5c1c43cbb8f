"""This module opens checkpoints on the Hub: commit first, then headers, then the ranges of the tensors wanted.

The commit is pinned before anything else is read, and every later request names it. Headers come in one call where the
Hub offers that (sharded repos, head of ``main``), else as the first bytes of each shard. A shard's address is resolved
once, and its signed target serves all further ranges of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

from lnsim.checkpoint.header import MAX_HEADER_BYTES, Header
from lnsim.checkpoint.hub.all_headers import headers_in_one_call
from lnsim.checkpoint.hub.cache import cached_snapshot
from lnsim.checkpoint.hub.client import Settings, stopped_by_hand
from lnsim.checkpoint.hub.repo import Repo, pin
from lnsim.checkpoint.hub.shard import FIRST_WINDOW, RemoteShard
from lnsim.checkpoint.hub.transport import Transport
from lnsim.checkpoint.layout import Layout, check_index, find_layout
from lnsim.checkpoint.local import LocalCheckpoint
from lnsim.checkpoint.ranges import Read, part_range, plan_reads, slice_reads
from lnsim.checkpoint.source import Progress, Traffic, by_shard, check_totals, locate, no_progress
from lnsim.checkpoint.window import Window
from lnsim.errors import HeaderError, HubError, TensorNotFoundError

__all__ = ["HubCheckpoint", "open_hub", "open_pinned", "pin_hub"]

A = TypeVar("A")

_few_at_a_time = threading.BoundedSemaphore(2)
"""Checkpoints whose headers are read one by one: each has many to ask for, and holds an index until they are there."""

_FAIR_SHARE = 1_000_000
"""Bytes that the header of each of many shards may have, however many they are."""

_CHEAP = 4 * 1024
_DEAR = 16 * 1024
"""Bytes that it may cost to check a header, in each shard, and in one of a checkpoint."""


@dataclass(slots=True)
class HubCheckpoint:
    """A checkpoint on the Hub; see ``Checkpoint`` for its attributes.

    Args:
        files: the shards that were opened, by name.
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
        from lnsim.reprs.of_checkpoint import checkpoint

        return checkpoint("HubCheckpoint", self)

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors, all of them.

        Raises:
            TensorNotFoundError: when a name is in no shard.
            HubError: or the subclass that fits, for the first range that could not be read.
        """
        names = list(names)
        with stopped_by_hand():
            found = self._read(names, progress)
            if found is None:
                self._read_headers_again(names)
                found = self._read(names, progress)
        if found is None:
            raise HubError(f"Reading {self.where}: its headers changed while it was read. Try again.")
        return found

    def _read(self, names: Sequence[str], progress: Progress) -> dict[str, bytes] | None:
        """The bytes; None where a header that came without its file turns out to be another than the file's."""
        wanted_of = by_shard(names, self.headers, where=self.where)
        plans = [(self.files[name], plan_reads(self.files[name].header, wanted)) for name, wanted in wanted_of.items()]
        to_verify = _worth_verifying(plans)
        jobs = _by_turns([(shard, read) for read in plan] for shard, plan in plans)

        def do(job: tuple[RemoteShard, Read]) -> bytes | None:
            shard, read = job
            return shard.read_from_start(read) if to_verify.get(shard.where) is read else shard.read(read)

        done = self.transport.map(do, jobs, progress)
        brought = [(read, data) for (_, read), data in zip(jobs, done, strict=True) if data is not None]
        if len(brought) < len(jobs):
            return None
        empty = {name: b"" for wanted in wanted_of.values() for name in wanted}
        return empty | slice_reads(brought)

    def _read_headers_again(self, names: Sequence[str]) -> None:
        """Read every header from its file; what was chosen by the other headers must be there all the same."""
        before = self._shapes(names)
        self.transport.map(RemoteShard.read_header, self.files.values())
        after = self._shapes(names)
        changed = [name for name in names if after.get(name) != before[name]]
        if changed:
            raise HeaderError(
                f"Reading {self.where}: the Hub told other headers than its files have; tensor {changed[0]!r:.160} and "
                f"{len(changed)} in all are not what they were said to be. Try again."
            )

    def _shapes(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        wanted = frozenset(names)
        return {
            name: info.shape
            for header in self.headers.values()
            for name, info in header.tensors.items()
            if name in wanted
        }

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget all tensors but these, for the memory: a checkpoint may have a hundred thousand."""
        wanted = frozenset(names)
        for shard in self.files.values():
            shard.keep_only(wanted)

    def read_part(self, name: str, start: int, stop: int) -> bytes:
        """The bytes ``[start, stop)`` of one tensor; raises as ``read``, and RangeError outside the tensor."""
        shard_of = locate(self.headers, where=self.where)
        if name not in shard_of:
            raise TensorNotFoundError(f"Reading {self.where}: no shard holds a tensor {name!r:.160}.")
        shard = self.files[shard_of[name]]
        part = Read(part_range(shard.header, name, start, stop), ())
        with stopped_by_hand():
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
    with stopped_by_hand():
        return pin(repo_id, revision, part, settings or Settings())


def open_pinned(repo: Repo, progress: Progress = no_progress) -> HubCheckpoint:
    """Open a pinned repo: its headers and its config; raises as ``open_hub`` does."""
    layout = Layout((repo.file,)) if repo.file else find_layout(repo.names, where=repo.where, typed=repo.typed)
    with stopped_by_hand():
        files, config = _open_shards(repo, layout, progress)
    return HubCheckpoint(
        f"{repo.repo_id}/{repo.part}" if repo.part else repo.repo_id,
        repo.where,
        repo.repo_id,
        repo.revision,
        repo.commit,
        config,
        files,
        repo.transport,
        (*repo.notes, *layout.notes),
        repo.part,
    )


def _open_shards(
    repo: Repo, layout: Layout, progress: Progress
) -> tuple[dict[str, RemoteShard], Mapping[str, Any] | None]:
    together = headers_in_one_call(repo, layout)
    if together is not None:
        files = _shards(repo, sorted(together.headers))
        for name, shard in files.items():
            shard.take_header(together.headers[name], repo.sizes[name])
        return files, together.config
    config_to_come = repo.transport.client.aside(repo.config)
    with _few_at_a_time:
        files = _shards_one_by_one(repo, layout, progress)
    return files, config_to_come.result()


def _shards_one_by_one(repo: Repo, layout: Layout, progress: Progress) -> dict[str, RemoteShard]:
    weight_map = repo.weight_map() if layout.index is not None else {}
    names_of: dict[str, list[str]] = {}
    for name, shard in weight_map.items():
        names_of.setdefault(shard, []).append(name)
    files = _shards(repo, sorted(names_of) or layout.shards)
    first, *others = files
    longest = max(MAX_HEADER_BYTES // len(files), _FAIR_SHARE)
    files[first].read_header(Window().size(names_of[first]) if first in names_of else FIRST_WINDOW, longest)
    # Shards of one model have entries of about one size: the first one tells what to ask for.
    learnt = Window.learnt(files[first].header)

    def read_header(shard: str) -> None:
        files[shard].read_header(learnt.size(names_of[shard]) if shard in names_of else FIRST_WINDOW, longest)

    repo.transport.map(read_header, others, progress)
    check_totals((shard.header for shard in files.values()), where=repo.where)
    if weight_map:
        tensors = locate({name: shard.header for name, shard in files.items()}, where=repo.where)
        check_index(weight_map, tensors, where=repo.where)
    return files


def _shards(repo: Repo, names: Iterable[str]) -> dict[str, RemoteShard]:
    absent = [name for name in names if name not in repo.sizes]
    if absent:
        raise HubError(
            f"Opening {repo.where}: its index names {absent[0]!r:.120}, which the commit does not hold "
            f"({len(absent)} such in all). The upload is incomplete."
        )
    return {name: RemoteShard(repo.url(name), repo.where_of(name), repo.transport) for name in names}


def _worth_verifying(plans: Sequence[tuple[RemoteShard, Sequence[Read]]]) -> dict[str, Read]:
    """First reads that shall bring the true header along, where the header came without its file.

    That is every shard where it costs next to nothing, and the cheapest of all: an answer of another commit would show.
    """
    firsts = [(shard.where, plan[0]) for shard, plan in plans if plan and not shard.from_file]
    cheap = {where: read for where, read in firsts if read.span.start <= _CHEAP}
    if cheap or not firsts:
        return cheap
    where, read = min(firsts, key=lambda first: first[1].span.start)
    return {where: read} if read.span.start <= _DEAR else {}


def _by_turns(groups: Iterable[list[A]]) -> list[A]:
    """The first of each group, then the second of each: what one shard must wait for, the others need not."""
    return [item for turn in zip_longest(*groups) for item in turn if item is not None]

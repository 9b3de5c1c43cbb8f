"""This module opens checkpoints on the Hub: commit first, then headers, then the ranges of the tensors wanted.

The commit is pinned before anything else is read, and every later request names it. Headers come in one call where the
Hub offers that (sharded repos, head of ``main``), else as the first bytes of each shard. A shard's address is resolved
once, and its signed target serves all further ranges of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from huggingface_hub import constants, hf_hub_url
from huggingface_hub.file_download import repo_folder_name

from lnsim.checkpoint.answers import NotThereError
from lnsim.checkpoint.header import Header
from lnsim.checkpoint.layout import CONFIG_NAME, INDEX_NAME, Layout, check_index, find_layout, parse_index
from lnsim.checkpoint.local import LocalCheckpoint, open_local
from lnsim.checkpoint.ranges import Read, part_range, plan_reads, slice_reads
from lnsim.checkpoint.remote_shard import FIRST_WINDOW, RemoteShard
from lnsim.checkpoint.source import MAX_JSON_BYTES, Progress, Traffic, by_shard, locate, no_progress, parse_config
from lnsim.checkpoint.transport import Settings, Transport
from lnsim.errors import HubError, LnsimError, RepoNotFoundError, TensorNotFoundError

__all__ = ["HubCheckpoint", "open_hub"]

A = TypeVar("A")
B = TypeVar("B")

_ONE_CALL_FROM = 3
"""Shards from which one call for all headers, and a second look at the commit, are fewer requests."""

_MAX_HEADERS_BYTES = 512 * 1024 * 1024


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

    @property
    def headers(self) -> Mapping[str, Header]:
        """Header of each shard, by file name."""
        return {name: shard.header for name, shard in self.files.items()}

    @property
    def traffic(self) -> Traffic:
        """Requests and bytes so far."""
        return self.transport.traffic

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors, all of them.

        Raises:
            TensorNotFoundError: when a name is in no shard.
            HubError: or the subclass that fits, for the first range that could not be read.
        """
        wanted_of = by_shard(names, self.headers, where=self.where)
        jobs = _by_turns(
            [(self.files[shard], read) for read in plan_reads(self.files[shard].header, wanted)]
            for shard, wanted in wanted_of.items()
        )
        done = _in_threads(lambda job: job[0].read(job[1]), jobs, self.transport.settings, progress)
        empty = {name: b"" for wanted in wanted_of.values() for name in wanted}
        return empty | slice_reads((read, data) for (_, read), data in zip(jobs, done, strict=True))

    def read_part(self, name: str, start: int, stop: int) -> bytes:
        """The bytes ``[start, stop)`` of one tensor; raises as ``read``, and RangeError outside the tensor."""
        shard_of = locate(self.headers, where=self.where)
        if name not in shard_of:
            raise TensorNotFoundError(f"Reading {self.where}: no shard holds a tensor {name!r:.160}.")
        shard = self.files[shard_of[name]]
        return shard.read(Read(part_range(shard.header, name, start, stop), ()))


def open_hub(
    repo_id: str, revision: str | None = None, *, settings: Settings | None = None, progress: Progress = no_progress
) -> HubCheckpoint | LocalCheckpoint:
    """Open a repo at a pinned commit; a complete snapshot in the Hub's cache is read in place instead.

    Args:
        repo_id: ``owner/name``, or the bare name of an old repo.
        revision: branch, tag or commit; the head of ``main`` by default.
        settings: patience and concurrency.
        progress: told how many headers were read.

    Raises:
        RepoNotFoundError, GatedError, RevisionError, NetworkError, OfflineError: each a sentence on what to do.
        FormatError: when the repo has no safetensors weights.
    """
    cached = _cached_snapshot(repo_id, revision)
    if cached is not None:
        return cached
    transport = Transport(settings or Settings(), Traffic())
    repo = _pin(transport, repo_id, revision)
    layout = find_layout(repo.names, where=repo.where)
    with _pool(1) as pool:
        config_to_come = pool.submit(_get_config, transport, repo)
        files = _open_shards(transport, repo, layout, progress)
        config = config_to_come.result()
    return HubCheckpoint(repo_id, repo.where, repo_id, revision, repo.commit, config, files, transport, layout.notes)


@dataclass(frozen=True, slots=True)
class _Repo:
    """A repo at a commit: its files, each with its size where the Hub tells it."""

    repo_id: str
    revision: str | None
    commit: str
    sizes: Mapping[str, int | None]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.sizes)

    @property
    def where(self) -> str:
        return f"{self.repo_id}@{self.commit[:12]}"

    def url(self, name: str) -> str:
        return hf_hub_url(self.repo_id, name, revision=self.commit, endpoint=constants.ENDPOINT)


def _pin(transport: Transport, repo_id: str, revision: str | None) -> _Repo:
    """The commit behind a revision, and the files it holds with their sizes."""
    where = f"{repo_id}@{revision or 'main'}"
    url = f"{constants.ENDPOINT}/api/models/{quote(repo_id)}"
    if revision is not None:
        url += f"/revision/{quote(revision, safe='')}"
    try:
        text = transport.get(f"{url}?blobs=true", where=where, max_bytes=MAX_JSON_BYTES, compressed=True)
    except NotThereError:
        raise RepoNotFoundError(f"Reading {where}: the Hub has no such repo. Check the spelling.") from None
    content = parse_config(text, where=where)
    commit, siblings = content.get("sha"), content.get("siblings")
    if not isinstance(commit, str) or not _is_commit(commit) or not isinstance(siblings, list):
        raise HubError(
            f"Reading {where}: a commit and a list of files were expected, found keys {sorted(content)!s:.120}."
        )
    entries = [entry for entry in siblings if isinstance(entry, dict) and isinstance(entry.get("rfilename"), str)]
    return _Repo(repo_id, revision, commit, {entry["rfilename"]: _size(entry.get("size")) for entry in entries})


def _size(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _get_config(transport: Transport, repo: _Repo) -> dict[str, Any] | None:
    if CONFIG_NAME not in repo.names:
        return None
    where = f"{repo.where}/{CONFIG_NAME}"
    return parse_config(transport.get(repo.url(CONFIG_NAME), where=where, max_bytes=MAX_JSON_BYTES), where=where)


def _open_shards(transport: Transport, repo: _Repo, layout: Layout, progress: Progress) -> dict[str, RemoteShard]:
    if layout.index is not None and repo.revision in (None, "main") and len(layout.shards) >= _ONE_CALL_FROM:
        entries = _headers_in_one_call(transport, repo)
        if entries is not None:
            files = _shards(transport, repo, sorted(entries))
            _in_threads(
                lambda name: files[name].take_header(entries[name], repo.sizes[name]),
                files,
                transport.settings,
                progress,
            )
            return files
    weight_map = _get_index(transport, repo) if layout.index is not None else {}
    files = _shards(transport, repo, sorted(set(weight_map.values())) or layout.shards)
    first, *others = files.values()
    first.read_header()
    # Shards of one model have headers of about one size: the first one tells what to ask for.
    window = min(FIRST_WINDOW, first.header.buffer_start * 5 // 4 + 4096)
    _in_threads(lambda shard: shard.read_header(window), others, transport.settings, progress)
    if weight_map:
        tensors = locate({name: shard.header for name, shard in files.items()}, where=repo.where)
        check_index(weight_map, tensors, where=repo.where)
    return files


def _shards(transport: Transport, repo: _Repo, names: Iterable[str]) -> dict[str, RemoteShard]:
    absent = [name for name in names if name not in repo.names]
    if absent:
        raise HubError(
            f"Opening {repo.where}: its index names {absent[0]!r:.120}, which the commit does not hold "
            f"({len(absent)} such in all). The upload is incomplete."
        )
    return {name: RemoteShard(repo.url(name), f"{repo.where}/{name}", transport) for name in names}


def _get_index(transport: Transport, repo: _Repo) -> dict[str, str]:
    where = f"{repo.where}/{INDEX_NAME}"
    return parse_index(
        transport.get(repo.url(INDEX_NAME), where=where, max_bytes=MAX_JSON_BYTES, compressed=True), where=repo.where
    )


def _headers_in_one_call(transport: Transport, repo: _Repo) -> dict[str, Any] | None:
    """Every shard's header at the head of ``main``; None where this endpoint has no such call, or main moved.

    The call names no commit, so the head is asked for again afterwards: only if it has not moved are these the headers
    of the pinned commit.
    """
    url = f"{constants.ENDPOINT}/api/models/{quote(repo.repo_id)}/safetensors-metadata/{INDEX_NAME}"
    where = f"all headers of {repo.where}"
    try:
        content = parse_config(
            transport.get(url, where=where, max_bytes=_MAX_HEADERS_BYTES, compressed=True), where=where
        )
    except NotThereError:
        return None
    headers = content.get("headers")
    if not isinstance(headers, dict) or not headers or not all(isinstance(entry, dict) for entry in headers.values()):
        raise HubError(f"Reading {where}: an object 'headers' was expected, found keys {sorted(content)!s:.120}.")
    if _pin(transport, repo.repo_id, repo.revision).commit != repo.commit:
        return None  # main has moved; the pinned commit's own files still say what it holds
    return headers


def _cached_snapshot(repo_id: str, revision: str | None) -> LocalCheckpoint | None:
    """The snapshot in the Hub's cache, where it is certain to be what the Hub would serve.

    That is so for a full commit, which cannot change, and when the network is switched off. A branch may have moved, so
    with a network it is asked for.
    """
    folder = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo_id, repo_type="model")
    name = revision or "main"
    if not _is_commit(name):
        reference = folder / "refs" / name
        if not constants.is_offline_mode() or ".." in name or not reference.is_file():
            return None
        name = reference.read_text().strip()
    snapshot = folder / "snapshots" / name
    if not _is_commit(name) or not snapshot.is_dir():
        return None
    try:
        opened = open_local(snapshot, source=repo_id, repo_id=repo_id, commit=name)
    except LnsimError:
        # An incomplete snapshot is common: a tokenizer was fetched, or a download is under way. The Hub has it whole.
        if constants.is_offline_mode():
            raise
        return None
    opened.revision = revision
    return opened


def _by_turns(groups: Iterable[list[A]]) -> list[A]:
    """The first of each group, then the second of each: what one shard must wait for, the others need not."""
    return [item for turn in zip_longest(*groups) for item in turn if item is not None]


def _is_commit(text: str) -> bool:
    return len(text) == 40 and all(character in "0123456789abcdef" for character in text)


def _in_threads(work: Callable[[A], B], items: Iterable[A], settings: Settings, progress: Progress) -> list[B]:
    """Results in the order of the items; the first error stops what has not begun and is raised."""
    items = list(items)
    with _pool(settings.max_in_flight) as pool:
        futures = [pool.submit(work, item) for item in items]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            progress(done, len(items))
        return [future.result() for future in futures]


@contextmanager
def _pool(size: int) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(size, thread_name_prefix="lnsim")
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)

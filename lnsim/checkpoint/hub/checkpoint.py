"""This module opens checkpoints on the Hub: commit first, then headers, then the ranges of the tensors wanted.

The commit is pinned before anything else is read, and every later request names it. A header is the first bytes of its
shard; how many to ask for is guessed from the names that an index lists. A shard's address is resolved once, and its
signed target serves all further ranges of it; where that refuses, it is resolved again, since signatures expire.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import Any
from urllib.parse import quote

from huggingface_hub import constants
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # exported in all its versions, undeclared

from lnsim.checkpoint.format import other_format
from lnsim.checkpoint.format.header import LENGTH_BYTES, MAX_HEADER_BYTES, Header, header_end, parse_header
from lnsim.checkpoint.format.layout import ADAPTER_CONFIG_NAME, CONFIG_NAME, Layout, find_layout, named_file
from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.checkpoint.hub.answers import DeadAddressError, ForbiddenError, NotThereError
from lnsim.checkpoint.hub.cache import MAIN, is_commit
from lnsim.checkpoint.hub.names import WEIGHTS, RepoName, check_endpoint
from lnsim.checkpoint.hub.session import Settings, client_for
from lnsim.checkpoint.hub.transport import Transport
from lnsim.checkpoint.source import (
    MAX_JSON_BYTES,
    Checkpoint,
    Progress,
    check_totals,
    no_progress,
    parse_config,
    settle,
)
from lnsim.checkpoint.token_texts import TOKENIZER_FILES
from lnsim.errors import (
    FormatError,
    HeaderError,
    HubError,
    LnsimError,
    RangeError,
    RepoNotFoundError,
    RevisionError,
    SourceError,
)

FIRST_WINDOW = 100_000  # bytes asked for first: 97 % of the headers on the Hub fit (huggingface_hub's own figure)
_AROUND = 120  # bytes around the entries: length field, braces, ``__metadata__`` as writers fill it, padding
_LEAST = 4096  # fewer bytes than this make no request cheaper
_MAX_HIDDEN_SIZE = 1 << 16
_SMALL_TENSORS = 2048  # bytes of a wider dtype that writers put before the norms, such as a router's correction bias
_LIKE_A_NORM = re.compile(r"(norm|(?:^|[._])ln)[^.]*\.(weight|bias|gamma|beta)$", re.IGNORECASE)
_FAIR_SHARE = 1_000_000  # bytes that the header of each of many shards may have, however many they are


@dataclass(frozen=True, slots=True)
class Repo:
    """A repo at a commit, or the files of one of its folders below the repo's root."""

    repo_id: str
    revision: str | None  # None for the head of ``main``
    commit: str
    names: Sequence[str]  # of the files below the folder
    transport: Transport = field(repr=False)
    folder: str = ""
    file: str = ""  # the only one that is wanted; empty for whatever holds the weights
    notes: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """``repo@commit``, for messages; with the folder or file where it is a part."""
        return self.where_of(self.file).rstrip("/")

    @property
    def part(self) -> str:
        """The folder or file that was asked for; empty for the whole repo."""
        return f"{self.folder}/{self.file}".strip("/")

    @property
    def typed(self) -> str:
        """What to type for this, as a SOURCE."""
        revision = self.revision or MAIN
        revision = revision if revision.startswith("refs/") else quote(revision, safe="")
        return f"{self.repo_id}@{revision}/{self.part}".rstrip("/")

    def where_of(self, name: str) -> str:
        """``repo@commit/folder/name`` of a file, for messages."""
        return f"{self.repo_id}@{self.commit[:12]}/{self._path(name)}"

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}" if self.folder else name

    def url(self, name: str) -> str:
        """Address of a file at the pinned commit."""
        return f"{constants.ENDPOINT}/{self.repo_id}/resolve/{self.commit}/{quote(self._path(name))}"

    def small(self, name: str, *, compressed: bool = False) -> bytes:
        """A whole small file."""
        where, url = self.where_of(name), self.url(name)
        return self.transport.get(url, where=where, max_bytes=MAX_JSON_BYTES, compressed=compressed)

    def start(self, name: str, n_bytes: int) -> bytes:
        """The first bytes of a file, as far as it goes."""
        return self.transport.get_start(self.url(name), n_bytes, where=self.where_of(name))

    def config(self, name: str = CONFIG_NAME) -> dict[str, Any] | None:
        """A parsed config, None where the repo has none of this name."""
        return parse_config(self.small(name), where=self.where_of(name)) if name in self.names else None


def pin(name: RepoName, *, settings: Settings | None = None) -> Repo:
    """The commit behind a revision, and the files it holds, or those of a part of it: one request.

    Raises HubError with a sentence on what to do, SourceError when the commit has no such part.
    """
    check_endpoint(constants.ENDPOINT)
    transport = Transport(client_for(settings or Settings()))
    try:
        commit, names = _ask(transport, name.repo_id, name.revision)
    except RevisionError as error:
        if not name.part or not name.revision or "/" in name.revision:
            raise
        branch = quote(f"{name.revision}/{name.part}", safe="")
        raise RevisionError(
            f"{error} Behind the @ it ends at the first slash: where the slash belongs to a branch's name, write "
            f"{name.repo_id}@{branch:.160}, or use --revision."
        ) from None
    repo = Repo(name.repo_id, name.revision, commit, names, transport)
    return _narrowed(repo, name.part) if name.part else repo


def open_pinned(repo: Repo, progress: Progress = no_progress) -> Checkpoint:
    """Open a pinned repo, when it is its turn: headers and config; raises LnsimError."""
    layout = named_file(repo.file) if repo.file else find_layout(repo.names, where=repo.where, typed=repo.typed)
    return repo.transport.client.open(lambda: _open(repo, layout, progress))


def _open(repo: Repo, layout: Layout, progress: Progress) -> Checkpoint:
    config = repo.transport.client.aside(repo.config)
    if layout.index is not None:
        layout = layout.indexed(repo.small(layout.index, compressed=True), where=repo.where)
    absent = [name for name in layout.shards if name not in repo.names]
    unread: dict[str, LnsimError] = {
        name: HubError(
            f"Opening {repo.where}: its index names {name!r:.120}, which the commit does not hold ({len(absent)} such "
            f"in all). The upload is incomplete."
        )
        for name in absent
    }
    there = [name for name in layout.shards if name not in unread]
    files = {name: RemoteShard(repo.url(name), repo.where_of(name), repo.transport) for name in there}
    headers = _read_headers(repo, files, layout.weight_map, unread, progress)
    read_many = repo.transport.map

    def fetch(jobs: Sequence[tuple[str, ByteRange]], progress: Progress) -> list[bytes]:
        return read_many(lambda job: files[job[0]].read(job[1]), jobs, progress)

    source = f"{repo.repo_id}/{repo.part}".rstrip("/")
    found = {name: headers[name] for name in there if name in headers}
    told = repo.repo_id, repo.revision, repo.commit, repo.part, repo.notes
    opened = Checkpoint(source, repo.where, found, config.result(), fetch, repo.transport.traffic, *told)
    opened.tokenizers = {name: partial(repo.start, name) for name in TOKENIZER_FILES if name in repo.names}
    return settle(opened, layout, unread, lambda: repo.config(ADAPTER_CONFIG_NAME))


def _read_headers(
    repo: Repo,
    files: Mapping[str, RemoteShard],
    weight_map: Mapping[str, str],
    unread: dict[str, LnsimError],
    progress: Progress,
) -> dict[str, Header]:
    """The header of each file; with an index, `unread` takes the errors of those that cannot be read."""
    names_of: dict[str, list[str]] = {}
    for name, shard in weight_map.items():
        names_of.setdefault(shard, []).append(name)
    longest = max(MAX_HEADER_BYTES // max(1, len(files)), _FAIR_SHARE)
    headers: dict[str, Header] = {}
    learnt = Window()

    def read_header(shard: str) -> None:
        try:
            window = learnt.size(names_of[shard]) if weight_map else FIRST_WINDOW
            headers[shard] = files[shard].read_header(window, longest)
        except HeaderError as error:
            if not weight_map:
                raise
            unread[shard] = error

    there = list(files)
    for shard in there[:1]:
        read_header(shard)
        # Shards of one model have entries of about one size: the first one tells what to ask for.
        learnt = Window.learnt(headers[shard]) if shard in headers else learnt
    repo.transport.map(read_header, there[1:], progress)
    check_totals(headers.values(), where=repo.where)
    return headers


def _narrowed(repo: Repo, part: str) -> Repo:
    """The repo as if one of its folders were all of it, or one of its files with the config beside it."""
    folder, _, file = part.rpartition("/") if part in repo.names else (part, "", "")
    if file and not file.endswith((*WEIGHTS, ".safetensors.index.json", ".bin.index.json")):
        raise FormatError(
            f"Opening {repo.where}/{part}: a folder, a .safetensors, .bin or .gguf file was expected. Name its folder, "
            f"{repo.typed}{'/' + folder if folder else ''}, or another file."
        )
    start = f"{folder}/" if folder else ""
    below = [name.removeprefix(start) for name in repo.names if name.startswith(start)]
    if not below:
        raise SourceError(f"Opening {repo.where}/{part}: the commit has no such folder or file. {_weights_of(repo)}")
    unused = folder and CONFIG_NAME in repo.names and CONFIG_NAME not in below
    notes = (f"{folder} has no {CONFIG_NAME}; the one in the repo's root was not used.",) if unused else ()
    return replace(repo, names=below, folder=folder, file=file, notes=notes)


def _weights_of(repo: Repo) -> str:
    folders = sorted({name.rpartition("/")[0] for name in repo.names if name.endswith(WEIGHTS)})
    if not folders:
        return "It holds no weights that are read at all."
    shown = ", ".join(f"{repo.typed}/{one}".rstrip("/") for one in folders[:3])
    return f"Weights are in {shown}{f' and {len(folders) - 3} more folders' if len(folders) > 3 else ''}."


def _ask(transport: Transport, repo_id: str, revision: str | None) -> tuple[str, list[str]]:
    where = f"{repo_id}@{revision or MAIN}"
    url = f"{constants.ENDPOINT}/api/models/{quote(repo_id)}"
    if revision is not None:
        url += f"/revision/{quote(revision, safe='')}"
    try:
        data = transport.get(url, where=where, max_bytes=MAX_JSON_BYTES, compressed=True)
    except NotThereError:
        raise RepoNotFoundError(f"Reading {where}: the Hub has no such repo. Check the spelling.") from None
    content = parse_config(data, where=where)
    commit, siblings = content.get("sha"), content.get("siblings")
    if not isinstance(commit, str) or not is_commit(commit) or not isinstance(siblings, list):
        raise HubError(
            f"Reading {where}: a commit and a list of files were expected, found keys {sorted(content)!s:.120}."
        )
    names = [entry.get("rfilename") for entry in siblings if isinstance(entry, dict)]
    return commit, [name for name in names if isinstance(name, str)]


@dataclass(slots=True)
class RemoteShard:
    """One safetensors file on the Hub."""

    url: str
    where: str
    transport: Transport
    start: bytes = field(default=b"", repr=False)  # behind the header, as far as it came along with that
    file_size: int | None = None  # by the server: a file that was cut off has fewer bytes than its header says
    buffer_start: int = 0  # where ``start`` begins
    _address: httpx.URL | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def read_header(self, window: int = FIRST_WINDOW, longest: int = MAX_HEADER_BYTES) -> Header:
        """The header, in one request where it fits the window; HeaderError where it has more bytes than ``longest``."""
        other = other_format(self.url)
        data, self.file_size = self._ask(ByteRange(0, window if other is None else other[1]), may_be_clipped=True)
        if other is not None:
            return other[0](lambda span: self._ask(span)[0], data, self.file_size, self.where)
        stop = header_end(data, self.file_size, where=self.where)
        if stop > longest:
            raise HeaderError(
                f"Reading the header of {self.where}: at most {longest} bytes were expected for one of so many shards, "
                f"found {stop}."
            )
        if stop > len(data):
            data += self._ask(ByteRange(len(data), stop))[0]
        self.start, self.buffer_start = data[stop:], stop
        return parse_header(data, self.file_size, where=self.where, lenient=True)

    def read(self, span: ByteRange) -> bytes:
        """A range behind the header; no request is made for what came along with that."""
        first = self.buffer_start
        if span.stop <= first + len(self.start):
            return self.start[span.start - first : span.stop - first]
        data, file_size = self._ask(span)
        if file_size != self.file_size:
            raise RangeError(
                f"Reading {self.where}: its header describes {self.file_size} bytes, the server serves a "
                f"file of {file_size}. The file was replaced while it was read; try again."
            )
        return data

    def _ask(self, span: ByteRange, *, may_be_clipped: bool = False) -> tuple[bytes, int]:
        """A range, from an address resolved anew where the one known is dead or refuses: signatures expire.

        Where other reads have used up the fresh one as well, the last try is made with an address of its own.
        """
        address = self._known_address()
        for own in (False, True):
            try:
                return self.transport.get_range(
                    address, span, where=self.where, may_be_clipped=may_be_clipped, leave_if_dead=True
                )
            except (ForbiddenError, DeadAddressError):
                resolve = self.transport.resolve
                address = resolve(self.url, where=self.where) if own else self._known_address(instead_of=address)
        return self.transport.get_range(address, span, where=self.where, may_be_clipped=may_be_clipped)

    def _known_address(self, *, instead_of: httpx.URL | None = None) -> httpx.URL:
        with self._lock:
            if self._address is None or self._address is instead_of:
                self._address = self.transport.resolve(self.url, where=self.where)
            return self._address


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of a checkpoint's headers before they are read, and so how many bytes to ask for first.

    One shard's header shows how many bytes an entry has in this checkpoint. Where a norm opens the byte buffer, the
    window takes it along: that saves a request a shard.
    """

    per_entry: float = 84.0  # bytes of an entry beside its name
    norm_bytes: int = 0  # of one norm vector; 0 where that is not known

    @classmethod
    def learnt(cls, header: Header) -> Window:
        """What the header of one shard shows about the others'."""
        names = list(header.tensors)
        text = header.buffer_start - LENGTH_BYTES - sum(map(len, names))
        sizes = [info.n_bytes for name, info in header.tensors.items() if _like_a_norm(name)]
        return cls(text / max(1, len(names)) + 1, max(sizes) if sizes else _row_bytes(header))

    def size(self, names: Collection[str]) -> int:
        """Bytes to ask for first of a shard that holds these tensors."""
        header = sum(len(name.encode("utf-8", "surrogatepass")) for name in names) + self.per_entry * len(names)
        # The norms that come first, in the order of the names that writers use within a dtype.
        n_norms = sum(1 for _ in takewhile(_like_a_norm, sorted(names)))
        norms = n_norms * self.norm_bytes + _SMALL_TENSORS if n_norms and self.norm_bytes else 0
        return max(_LEAST, int(header) + _AROUND + norms)


def _row_bytes(header: Header) -> int:
    """Bytes of a vector of the hidden size, which is a side of nearly every matrix; 0 where there is no matrix."""
    matrices = [info for info in header.tensors.values() if len(info.shape) == 2 and info.n_bytes]
    sides = Counter(side for info in matrices for side in info.shape)
    if not matrices:
        return 0
    hidden_size = max(sides, key=lambda side: (sides[side], side))
    widest = max(info.n_bytes // (info.shape[0] * info.shape[1]) for info in matrices)
    return min(hidden_size, _MAX_HIDDEN_SIZE) * max(1, widest)


def _like_a_norm(name: str) -> bool:
    lower = name.lower()  # the pattern alone takes 4 us a name, and some checkpoints have 100,000
    return ("norm" in lower or "ln" in lower) and _LIKE_A_NORM.search(name) is not None

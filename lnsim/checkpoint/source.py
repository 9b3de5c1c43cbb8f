"""This module holds an opened checkpoint, whatever its source, decides which of its tensors count, and reads its JSON.

What cannot be read is an error once it is asked for, and a note until then: nobody needs the matrices. Where there is
an index, it decides: a tensor counts in the shard that the index names for it and nowhere else.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from lnsim.checkpoint.families.config import gguf_config
from lnsim.checkpoint.families.names import adapter_kind, norm_names
from lnsim.checkpoint.format.gguf import GGUF_FORMAT
from lnsim.checkpoint.format.header import MAX_HEADER_BYTES, Header, TensorInfo, disguise
from lnsim.checkpoint.format.ranges import ByteRange, plan_reads, slice_reads
from lnsim.checkpoint.store import Provenance, read_provenance
from lnsim.errors import FormatError, HeaderError, LnsimError, TensorNotFoundError

if TYPE_CHECKING:
    from lnsim.checkpoint.format.layout import Layout
    from lnsim.checkpoint.token_texts import FileStart

MAX_JSON_BYTES = 64 * 1024 * 1024  # of a config or index; the largest known index has about 10 MB
_MAX_JSON_PARTS = 3_000_000  # values of a config, index or listing; more than any model needs
_MAX_ALL_TENSORS = 300_000  # of all shards together; the largest known checkpoint has half of that

Progress = Callable[[int, int], None]  # called with the steps done and the steps planned, from any thread


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


# Reads ranges, each of a shard by its file name, and gives their bytes in the same order.
Fetch = Callable[[Sequence[tuple[str, ByteRange]], Progress], list[bytes]]


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
    tokenizers: Mapping[str, FileStart] = field(default_factory=dict)  # the files of its tokenizer, by name

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

    def read(self, names: Iterable[str], progress: Progress = no_progress) -> dict[str, bytes]:
        """Bytes of the tensors; LnsimError when one is in no shard or cannot be read, or its copies differ."""
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
        found = empty | slice_reads([(read, data) for (_, read), data in zip(jobs, done, strict=True)])
        for shard, names in wanted_of.items():
            for name in headers[shard].checks.keys() & set(names):
                expected, checksum = headers[shard].checks[name], crc32(found[name])
                if checksum != expected:
                    raise FormatError(
                        f"Reading tensor {name!r:.160} of {file_in(self.where, shard)}: a CRC-32 of {expected:08x} was "
                        f"expected, by the file's directory, found {checksum:08x}. It is damaged, or was not written "
                        f"by torch.save with checksums."
                    )
        return found

    def _by_shard(self, names: Iterable[str]) -> dict[str, list[str]]:
        shard_of = self.shard_of
        found: dict[str, list[str]] = {}
        for name in names:
            if name in self.faults:
                raise self.faults[name]
            if name not in shard_of:
                raise TensorNotFoundError(f"Reading {self.where}: no shard holds a tensor {name!r:.160}.")
            found.setdefault(shard_of[name], []).append(name)
        return found


def settle(
    opened: Checkpoint,
    layout: Layout,
    unread: Mapping[str, LnsimError],
    adapter_config: Callable[[], Mapping[str, Any] | None],
) -> Checkpoint:
    """Decide what of a checkpoint counts: its headers are narrowed to that, its faults, copies and notes are filled.

    It comes with the headers as each shard's file has them; ``unread`` are shards that the index names and whose
    headers cannot be read, with the reasons. Raises LnsimError for the first tensor where none can be read, and for
    an adapter.
    """
    headers, weight_map = opened.headers, layout.weight_map
    opened.notes += layout.notes
    # A GGUF model tells itself what it is, of a split one the first part, whatever config lies beside it.
    own = (gguf_config(one.metadata) for one in headers.values() if one.metadata.get("format") == GGUF_FORMAT)
    opened.config = next(filter(None, own), opened.config)
    refused = {
        name: HeaderError(f"Reading the header of {file_in(opened.where, shard)}: {entry.reason}")
        for shard, header in headers.items()
        for name, entry in header.refused.items()
        if not weight_map or weight_map.get(name) == shard
    }
    _refuse(opened, refused, "with a wrong entry in the header, or beyond the end of the file")
    if weight_map:
        _by_index(opened, weight_map, unread)
    else:
        _by_headers(opened, layout.replicated)
    if opened.faults and not any(header.tensors for header in opened.headers.values()):
        raise next(iter(opened.faults.values()))
    if _is_adapter(headers):
        raise _adapter_error(adapter_config, opened.where)
    return opened


def _refuse(opened: Checkpoint, faults: Mapping[str, LnsimError], why: str) -> None:
    """Take tensors that cannot be read, with a note on how many and the first."""
    opened.faults |= faults
    if faults:
        name, error = next(iter(faults.items()))
        opened.notes += (
            f"Not asked for and not readable: {_tensors(faults)} {why}; the first is {name!r:.120} "
            f"({str(error).partition('; ')[0].rstrip('.'):.300}).",
        )


def _by_index(opened: Checkpoint, weight_map: Mapping[str, str], unread: Mapping[str, LnsimError]) -> None:
    headers, faults = opened.headers, opened.faults
    lost = {name: unread[shard] for name, shard in weight_map.items() if shard in unread}
    _refuse(opened, lost, f"in {len(unread)} of the index's files, which cannot be read")
    elsewhere = [
        name
        for name, shard in weight_map.items()
        if shard in headers and name not in headers[shard].tensors and name not in faults
    ]
    _refuse(opened, _misplaced(elsewhere, headers, weight_map, opened.where), "not where the index says")
    extra = {
        name: shard for shard, header in headers.items() for name in header.tensors if weight_map.get(name) != shard
    }
    _narrow(opened, weight_map)
    if unlisted := {name: shard for name, shard in extra.items() if name not in weight_map}:
        norms = norm_names({name: headers[shard].tensors[name].shape for name, shard in unlisted.items()}, ())
        first = norms[0].name if norms else next(iter(unlisted))
        opened.notes += (
            f"Left out, since the index does not list them: {_tensors(unlisted)}, {len(norms)} by name of a norm; the "
            f"first is {first!r:.120} in {unlisted[first]}.",
        )
    twice = [name for name in extra if name in weight_map and name not in faults]
    if twice:
        opened.notes += (
            f"In more than one file: {_tensors(twice)}; the index decides, so the first, {twice[0]!r:.120}, is that of "
            f"{weight_map[twice[0]]} and not that of {extra[twice[0]]}.",
        )


def _narrow(opened: Checkpoint, shard_of: Mapping[str, str]) -> None:
    opened.headers = {
        shard: header.narrowed({name for name in header.tensors if shard_of.get(name) == shard})
        for shard, header in opened.headers.items()
    }


def _misplaced(
    names: Iterable[str], headers: Mapping[str, Header], weight_map: Mapping[str, str], where: str
) -> dict[str, LnsimError]:
    """Errors for tensors that the index names and their shards lack (huggingface_hub issue 4725)."""
    names = list(names)
    holder = {name: shard for shard, header in headers.items() for name in header.tensors} if names else {}
    return {
        name: HeaderError(
            f"Comparing the index of {where} with its shards: tensor {name!r:.160} should lie in {weight_map[name]}, "
            f"but {f'lies in {holder[name]}' if name in holder else 'no shard holds it'}; {len(names)} such in all. "
            f"The upload is incomplete or mixed; nothing was read."
        )
        for name in names
    }


def _by_headers(opened: Checkpoint, replicated: bool) -> None:
    headers = opened.headers
    if len(headers) == 1:  # the usual case, and of up to 100,000 tensors
        return
    first: dict[str, str] = {}
    clashes: dict[str, LnsimError] = {}
    copied: dict[str, set[str]] = {}
    for shard, header in headers.items():
        for name, info in header.tensors.items():
            other = first.setdefault(name, shard)
            if other == shard:
                continue
            known = headers[other].tensors[name]
            if replicated and (known.dtype, known.shape) == (info.dtype, info.shape):
                copied.setdefault(shard, set()).add(name)
            else:
                clashes[name] = FormatError(
                    f"Reading the headers of {opened.where}: tensor {name!r:.160} lies in both {other} and {shard}, so "
                    f"which one counts is unclear."
                )
    _refuse(opened, clashes, "in more than one file, and no index says which counts")
    _narrow(opened, {name: shard for name, shard in first.items() if name not in clashes})
    opened.copies = {shard: headers[shard].narrowed(names - clashes.keys()) for shard, names in copied.items()}
    if replicated:
        opened.notes += (
            f"Split over {len(headers)} ranks: each file may have its own copy of a tensor; the copies of what is "
            f"asked for are compared byte by byte.",
        )


def _tensors(names: Sized) -> str:
    return f"{len(names)} tensor{'' if len(names) == 1 else 's'}"


def _is_adapter(headers: Mapping[str, Header]) -> bool:
    """Whether files or tensors have the names of an adapter's, and no tensor that of a norm."""
    shapes = {name: info.shape for header in headers.values() for name, info in header.tensors.items()}
    named = any(shard.startswith("adapter_model") for shard in headers) or adapter_kind(shapes) is not None
    return named and not norm_names(shapes, ())


def _adapter_error(read_config: Callable[[], Mapping[str, Any] | None], where: str) -> FormatError:
    """The error for an adapter, which names its base model where its own config does."""
    try:
        config = read_config() or {}
    except LnsimError:  # its own config cannot be read; that it is an adapter is true all the same
        config = {}
    kind, base = config.get("peft_type"), config.get("base_model_name_or_path")
    told = f" ({'LoRA' if kind == 'LORA' else kind:.40})" if isinstance(kind, str) else " (LoRA or one of its kin)"
    of = f" of {base:.200}" if isinstance(base, str) and base else ""
    return FormatError(f"Opening {where}: it is an adapter{told}{of}, without norms of its own: name its base model.")


def file_in(where: str, file: str) -> str:
    """A file of a checkpoint, for messages; the checkpoint may be this file itself."""
    return where if f"/{where}".endswith(f"/{file}") else f"{where}/{file}"


def check_totals(headers: Iterable[Header], *, where: str) -> None:
    """Refuse shards whose headers are fair each by itself and too much together, with HeaderError."""
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

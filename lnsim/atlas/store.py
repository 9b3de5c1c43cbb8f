"""This module keeps an atlas: a folder with the extracts of many checkpoints, their sketches, and a journal of both.

``extracts/`` holds what ``lnsim extract`` keeps. ``sketches.zarr`` is one Zarr store: a group a hidden size, in it an
array a role, ``(n_models, hidden_size)``, float32, in chunks of some models; a row of zeros says that a model has no
such norm. ``journal.jsonl`` has one line a model, appended when its extract and its row are there; that line, once it
ends, makes the model part of the atlas. So whatever is killed whenever, the atlas opens with all models but those under
way: their extracts are not read from the Hub again, and their rows are written anew. The newer line of a branch that
moved takes the place of the older one; no row changes once a line names it. One process writes, any number may read.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lnsim.atlas.sketch import Floats, Sketch, sketch
from lnsim.checkpoint.extract import extract_many
from lnsim.checkpoint.reading import Question
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.errors import LnsimError, SourceError, StoreError

_EXTRACTS, _SKETCHES, _JOURNAL, _LOCK = "extracts", "sketches.zarr", "journal.jsonl", ".lock"
_CHUNK = 256  # models: 4 MiB of 4,096 channels
_BATCH = 32  # sources that are asked for together, and then written down
BLOCK = 1024
"""Models of which sketches are held at a time, 16 MiB a role of 4,096 channels."""


def needed(name: str) -> Any:
    """A module of the extra ``[atlas]``; SourceError says how to install it where it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise SourceError(
            f"Working on an atlas: the package '{error.name}' is not installed. Install it by: "
            "pip install 'lnsim[atlas]'"
        ) from None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checkpoint to add: its source, the roles to read where not the usual ones, and what is known of it."""

    source: str
    roles: tuple[str, ...] = ()
    known: str = ""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the journal: a model of the atlas."""

    source: str
    roles: tuple[str, ...]
    known: str
    name: str  # what the reader called it
    commit: str | None
    digest: str  # of the bytes of its norms
    path: str  # of its extract, below ``extracts``
    hidden_size: int
    row: int  # in the arrays of its hidden size

    @property
    def title(self) -> str:
        """Its source, and the roles that were asked for where these are not the usual ones: a newer line of the same
        title takes its place.
        """
        return f"{self.source} ({', '.join(self.roles)})" if self.roles else self.source


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one source: its entry, or an error."""

    wanted: Wanted
    result: Entry | LnsimError
    new: bool = False  # whether it is new, or moved
    requests: int = 0
    bytes_received: int = 0


class Atlas:
    """The models in a folder, which the first ``add`` makes, as they were when it was opened.

    StoreError where the journal is damaged. ``entries`` are the models by title, the newest line of each.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open()

    def _open(self) -> None:
        lines = _read_journal(self.folder / _JOURNAL)
        self.entries = {entry.title: entry for entry in lines}
        self._n_rows: dict[int, int] = {}  # those of entries that were replaced too
        for entry in lines:
            self._n_rows[entry.hidden_size] = max(entry.row + 1, self._n_rows.get(entry.hidden_size, 0))

    def of_size(self, hidden_size: int) -> list[Entry | None]:
        """By row, the model whose sketch stands there; None for one that was replaced."""
        found: list[Entry | None] = [None] * self._n_rows.get(hidden_size, 0)
        for entry in self.entries.values():
            if entry.hidden_size == hidden_size:
                found[entry.row] = entry
        return found

    def add(self, wanted: Iterable[Wanted], in_flight: int = 16, progress: Progress = no_progress) -> Iterator[Added]:
        """Read checkpoints and keep them; what is there at the same commit is not read again, one that fails is told.

        The answers come in turn, each when it is written down. StoreError where another process writes.
        """
        with _locked(self.folder):
            self._open()  # another process may have added; what it left unfinished is cut off
            with (self.folder / _JOURNAL).open("ab+") as journal:
                journal.seek(0)
                journal.truncate(journal.read().rfind(b"\n") + 1)
            for some in _batches(wanted):
                yield from self._add(some, in_flight, progress)

    def _add(self, wanted: Sequence[Wanted], in_flight: int, progress: Progress) -> Iterator[Added]:
        """One batch: extracts first, then rows, then lines."""
        questions = [Question.of(one.source, one.roles or None) for one in wanted]
        answers = extract_many(questions, out=self.folder / _EXTRACTS, in_flight=in_flight, progress=progress)
        done: list[Added] = []
        new: dict[int, list[tuple[Entry, Sketch]]] = {}
        for one, found in zip(wanted, answers, strict=True):
            if isinstance(found, LnsimError):
                done.append(Added(one, found))
                continue
            size, path = found.hidden_size, found.path.name if found.path else ""
            row = self._n_rows.get(size, 0) + len(new.get(size, ()))
            entry = Entry(one.source, one.roles, one.known, found.source, found.commit, found.digest, path, size, row)
            kept = self.entries.get(entry.title)
            if kept is not None and msgspec.structs.replace(kept, row=row, known=one.known) == entry:
                done.append(Added(one, kept, False, found.requests, found.bytes_received))
            else:
                new.setdefault(size, []).append((entry, sketch(found)))
                done.append(Added(one, entry, True, found.requests, found.bytes_received))
        self._write(new)
        yield from done

    def _write(self, new: Mapping[int, Sequence[tuple[Entry, Sketch]]]) -> None:
        for size, some in new.items():
            write_rows(self.folder, size, some[0][0].row, [one for _, one in some])
        entries = [entry for some in new.values() for entry, _ in some]
        with (self.folder / _JOURNAL).open("ab") as journal:
            journal.write(b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
            journal.flush()
            os.fsync(journal.fileno())
        self.entries |= {entry.title: entry for entry in entries}
        self._n_rows |= {size: some[-1][0].row + 1 for size, some in new.items()}


def write_rows(folder: Path, hidden_size: int, start: int, sketches: Sequence[Sketch]) -> None:
    """Write sketches as the rows from `start` on; nobody sees them before the journal names them."""
    group = _group(folder, hidden_size, "a")
    there = dict(group.arrays())
    stop = start + len(sketches)
    for role in dict.fromkeys([*there, *(role for one in sketches for role in one)]):
        array = there.get(role)
        if array is None:
            # Not compressed: noise would shrink by a tenth, and reading would take five times as long.
            shape, chunks = (0, hidden_size), (_CHUNK, hidden_size)
            array = group.create_array(role, shape=shape, chunks=chunks, dtype="float32", compressors=None)
        values = np.stack([one.get(role, np.zeros(hidden_size, np.float32)) for one in sketches])
        if values.any() or array.shape[0] > start:  # what a killed process left there must not stay
            array.resize((max(stop, array.shape[0]), hidden_size))
            array[start:stop] = values


def read_block(folder: Path, hidden_size: int, start: int, stop: int) -> Sketch:
    """The sketches of some rows by role, shape ``(stop - start, hidden_size)``; zeros for no such norm."""
    found: dict[str, Floats] = {}
    for role, array in _group(folder, hidden_size, "r").arrays():
        part = np.asarray(array[start : min(stop, array.shape[0])], dtype=np.float32)
        short = stop - start - len(part)
        found[role] = np.pad(part, ((0, short), (0, 0))) if short else part
    return found


def _batches(wanted: Iterable[Wanted]) -> Iterator[list[Wanted]]:
    """Some at a time, none twice; a source with several roles is in several batches, since these share its extract."""
    some: dict[str, Wanted] = {}
    for one in {(one.source, one.roles): one for one in wanted}.values():
        if len(some) == _BATCH or one.source in some:
            yield list(some.values())
            some = {}
        some[one.source] = one
    if some:
        yield list(some.values())


def extract_path(folder: Path, entry: Entry) -> Path:
    """Where the extract of a model of an atlas lies."""
    return folder / _EXTRACTS / entry.path


def _read_journal(path: Path) -> list[Entry]:
    """Every finished line; one that was cut short is not there yet."""
    found: list[Entry] = []
    try:
        for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
            found.append(msgspec.json.decode(line, type=Entry))
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(
            f"Opening the atlas: line {len(found) + 1} of '{path}' is no entry, or cannot be read ({error!s:.200}). "
            "Take that line out, and add its source again."
        ) from None
    return found


def _group(folder: Path, hidden_size: int, mode: str) -> Any:
    zarr = needed("zarr")
    return zarr.open_group(str(folder / _SKETCHES), path=str(hidden_size), mode=mode, zarr_format=3)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Nobody else writes meanwhile; the lock falls with the process."""
    filelock = needed("filelock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / _LOCK, timeout=0):
            yield
    except filelock.Timeout:
        raise StoreError(f"Adding to the atlas '{folder}': another process does. Wait until it is done.") from None
    except OSError as error:
        raise StoreError(
            f"Writing into the atlas '{folder}': {error.strerror or error}. What it had, it has."
        ) from error

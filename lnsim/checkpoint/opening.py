"""This module decides what a SOURCE means: a path, a stored model's name, or a repo id on the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lnsim.checkpoint.local import LocalCheckpoint, open_local, path_on_disk
from lnsim.checkpoint.source import Checkpoint, Progress, Traffic, no_progress
from lnsim.errors import SourceError
from lnsim.paths import find_stored, near_stored, stored_models

if TYPE_CHECKING:
    from lnsim.checkpoint.hub.repo import Repo

__all__ = [
    "IN_FLIGHT",
    "Found",
    "RepoName",
    "find_source",
    "open_checkpoint",
    "open_found",
    "open_stored",
    "parse_repo_name",
]

IN_FLIGHT = 16
"""Requests at once, unless told otherwise."""

# The Hub's own rule: letters, digits, '-', '_' and '.', at most 96 characters a part, at most one slash.
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_REPO_ID = re.compile(rf"(?:{_PART}/)?{_PART}", re.ASCII)

_NEARLY = 0.75
"""A name alone that is at least so much like a stored model's, as difflib counts, is taken for a slip."""


@dataclass(frozen=True, slots=True)
class RepoName:
    """A repo on the Hub and the revision asked for, None for the head of ``main``."""

    repo_id: str
    revision: str | None
    part: str = ""


def parse_repo_name(text: str, revision: str | None = None) -> RepoName:
    """Split ``repo@revision``; the revision may also come apart, but not both ways.

    Raises:
        SourceError: when the text cannot be a repo id.

    >>> parse_repo_name("Qwen/Qwen3-4B@main")
    RepoName(repo_id='Qwen/Qwen3-4B', revision='main')
    """
    repo_id, at, given = text.partition("@")
    if at and revision is not None:
        raise SourceError(f"Opening '{text}': the revision is given twice, as '{given}' and as '{revision}'.")
    if at and not given:
        raise SourceError(f"Opening '{text}': a revision was expected behind the @.")
    if not _REPO_ID.fullmatch(repo_id) or ".." in repo_id or "--" in repo_id:
        raise SourceError(
            f"Opening {text!r:.200}: there is no such file or folder, no stored model of this name, and it cannot be "
            f"a repo id (owner/name). `lnsim list` shows the stored models."
        )
    return RepoName(repo_id, given or revision)


@dataclass(slots=True)
class Found:
    """What a SOURCE names: something on disk, or a repo on the Hub whose commit is asked for once, when it matters.

    Args:
        source: as a person wrote it.
        path: on disk.
        repo_name: on the Hub; exactly one of the two is there.
        in_flight: requests at once.
    """

    source: str
    path: Path | None = None
    repo_name: RepoName | None = None
    in_flight: int = IN_FLIGHT
    _repo: Repo | None = None

    def commit(self) -> str | None:
        """The commit that the Hub would read; one request, or none where the revision is a commit itself.

        None for what lies on disk.

        Raises:
            LnsimError: what the Hub answered, as a sentence.
        """
        if self.repo_name is None:
            return None
        from lnsim.checkpoint.hub import cached_snapshot, is_commit

        repo_id, revision = self.repo_name.repo_id, self.repo_name.revision
        if revision is not None and is_commit(revision):
            return revision
        snapshot = cached_snapshot(repo_id, revision)
        return self.pinned().commit if snapshot is None else snapshot.commit

    def pinned(self) -> Repo:
        """The repo at its commit, asked for once; raises SourceError for what lies on disk."""
        from lnsim.checkpoint.hub import Settings, pin_hub

        if self.repo_name is None:
            raise SourceError(f"Opening '{self.source}': it lies on disk and has no commit.")
        if self._repo is None:
            settings = None if self.in_flight == IN_FLIGHT else Settings(max_in_flight=self.in_flight)
            self._repo = pin_hub(self.repo_name.repo_id, self.repo_name.revision, settings=settings)
        return self._repo

    @property
    def traffic(self) -> Traffic:
        """What finding its commit took."""
        return Traffic() if self._repo is None else self._repo.transport.traffic


def find_source(source: str, revision: str | None = None, *, in_flight: int = IN_FLIGHT) -> Found:
    """Decide what a SOURCE names, without any request.

    A path that exists comes first, then a stored model's name, then the Hub.

    Raises:
        SourceError: when the source can be none of them, is nearly a stored model's name, or a revision is given for
            one that has none.
    """
    on_disk = _find_on_disk(source)
    if on_disk is None:
        if revision is None:
            _check_no_slip(source)
        return Found(source, repo_name=parse_repo_name(source, revision), in_flight=in_flight)
    if revision is not None:
        raise SourceError(f"Opening '{source}': it lies on disk, where there is no revision '{revision}' to choose.")
    return Found(source, on_disk)


def open_found(found: Found, *, progress: Progress = no_progress) -> Checkpoint:
    """Open what a SOURCE named, headers only; only a repo uses the network.

    Raises:
        LnsimError: what the path or the Hub answered, as a sentence.
    """
    if found.repo_name is None:
        return open_local(Path(found.source) if found.path is None else found.path, source=found.source)
    # Imported here, so that no local reader pays for the network code.
    from lnsim.checkpoint.hub import cached_snapshot, open_pinned

    snapshot = cached_snapshot(found.repo_name.repo_id, found.repo_name.revision)
    return snapshot if snapshot is not None else open_pinned(found.pinned(), progress)


def open_checkpoint(source: str, revision: str | None = None, *, progress: Progress = no_progress) -> Checkpoint:
    """Open whatever a SOURCE names, headers only; raises as ``find_source`` and ``open_found`` do."""
    return open_found(find_source(source, revision), progress=progress)


def open_stored(source: str) -> LocalCheckpoint:
    """Open a stored model's name or a path, and never the network.

    Raises:
        SourceError: when neither is there; near names are suggested.
    """
    path = path_on_disk(source)
    if path is not None:
        return open_local(path, source=source)
    return open_local(find_stored(source), source=source)


def _find_on_disk(source: str) -> Path | None:
    path = path_on_disk(source)
    if path is not None:
        return path
    if source.startswith((".", "~", "/")) or source.endswith(".safetensors"):
        raise SourceError(f"Opening '{source}': there is no such file or folder.")
    wanted = source.lower()
    if "/" not in source and any(name.lower() == wanted for name in stored_models()):
        return find_stored(source)
    return None


def _check_no_slip(source: str) -> None:
    """Refuse a name alone that is nearly a stored model's: few repos have no owner, and the network is not asked."""
    near = near_stored(source, _NEARLY) if not {"/", "@"} & set(source) else ()
    if near:
        names = ", ".join(f"'{name}'" for name in near)
        raise SourceError(
            f"Opening '{source}': there is no such file or folder and no stored model of this name. Did you mean "
            f"{names}? A repo on the Hub is written owner/name, or name@main where it has no owner."
        )

"""This module decides what a SOURCE means: a path, a stored model's name, or a repo on the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lnsim.checkpoint.hub.names import RepoName, check_endpoint, parse_repo_name
from lnsim.checkpoint.local import find_snapshot, open_local, open_snapshot, path_on_disk
from lnsim.checkpoint.source import Checkpoint, Progress, Traffic, no_progress
from lnsim.errors import RepoNotFoundError, SourceError
from lnsim.paths import find_stored, near_stored, stored_models

if TYPE_CHECKING:
    from lnsim.checkpoint.hub.checkpoint import Repo

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

_LOOKS_LOCAL = re.compile(r"[.~/]|[A-Za-z]:[\\/]|.*\\")
"""How a path begins that was meant as one, on Windows too."""

_NEARLY = 0.75
"""A name alone that is at least so much like a stored model's, as difflib counts, is taken for a slip."""


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
        from lnsim.checkpoint.hub.cache import cached_snapshot, is_commit

        revision = self.repo_name.revision
        if revision is not None and is_commit(revision):
            return revision
        snapshot = cached_snapshot(self.repo_name.repo_id, revision, self.repo_name.part)
        return self.pinned().commit if snapshot is None else snapshot.commit

    def pinned(self) -> Repo:
        """The repo at its commit, asked for once; raises SourceError for what lies on disk."""
        from lnsim.checkpoint.hub.checkpoint import pin
        from lnsim.checkpoint.hub.session import Settings

        if self.repo_name is None:
            raise SourceError(f"Opening '{self.source}': it lies on disk and has no commit.")
        if self._repo is None:
            settings = None if self.in_flight == IN_FLIGHT else Settings(max_in_flight=self.in_flight)
            name = self.repo_name
            try:
                self._repo = pin(name.repo_id, name.revision, name.part, settings=settings)
            except RepoNotFoundError as error:
                if not name.part or "@" in self.source or ":" in self.source:
                    raise
                raise RepoNotFoundError(f"{error} There is no such file or folder here either.") from None
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
        HubError: when it lies on the Hub, and ``HF_ENDPOINT`` is no address.
    """
    on_disk = _find_on_disk(source)
    if on_disk is None:
        if revision is None:
            _check_no_slip(source)
        check_endpoint()
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
        return _open_path(Path(found.source) if found.path is None else found.path, found.source)
    # Imported here and below, so that no local reader pays for the network code.
    from lnsim.checkpoint.hub.cache import cached_snapshot

    name = found.repo_name
    snapshot = cached_snapshot(name.repo_id, name.revision, name.part)
    if snapshot is not None:
        return snapshot
    from lnsim.checkpoint.hub.checkpoint import open_pinned

    return open_pinned(found.pinned(), progress)


def open_checkpoint(source: str, revision: str | None = None, *, progress: Progress = no_progress) -> Checkpoint:
    """Open whatever a SOURCE names, headers only; raises as ``find_source`` and ``open_found`` do."""
    return open_found(find_source(source, revision), progress=progress)


def open_stored(source: str) -> Checkpoint:
    """Open a stored model's name or a path, and never the network.

    Raises:
        SourceError: when neither is there; near names are suggested.
    """
    path = path_on_disk(source) if source.strip() else None
    return _open_path(find_stored(source.rstrip("/")) if path is None else path, source)


def _open_path(path: Path, source: str) -> Checkpoint:
    cached = find_snapshot(path)
    if cached is None:
        return open_local(path, source=source)
    folder, name = cached
    return open_snapshot(folder, name, folder.name)


def _find_on_disk(source: str) -> Path | None:
    path = path_on_disk(source) if source.strip() else None
    if path is not None:
        return path
    plain = source.rstrip("/")
    # A file named with its folder, or behind an @ or an address, may be one on the Hub.
    at_most_a_folder = plain.count("/") < 2 and not {"@", ":"} & set(plain)
    if not plain or _LOOKS_LOCAL.match(source) or (plain.endswith(".safetensors") and at_most_a_folder):
        raise SourceError(f"Opening '{source}': there is no such file or folder.")
    if "/" not in plain and any(name.lower() == plain.lower() for name in stored_models()):
        return find_stored(plain)
    return None


def _check_no_slip(source: str) -> None:
    """Refuse a name alone that is nearly a stored model's: few repos have no owner, and the network is not asked."""
    near = near_stored(source, _NEARLY) if not {"/", "@"} & set(source.rstrip("/")) else ()
    if near:
        names = ", ".join(f"'{name}'" for name in near)
        raise SourceError(
            f"Opening '{source}': there is no such file or folder and no stored model of this name. Did you mean "
            f"{names}? A repo on the Hub is written owner/name, or name@main where it has no owner."
        )

"""This module decides what a SOURCE means, a path, a stored model's name or a repo on the Hub, and names its extract.

The names of all extracts of one call are known, and held against what lies in the folder, before anything is read: a
file that is no extract of the same source is never a target.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lnsim.checkpoint.hub.names import WEIGHTS, RepoName, check_endpoint, parse_repo_name, without_ending
from lnsim.checkpoint.local import find_snapshot, open_local, open_snapshot, path_on_disk
from lnsim.checkpoint.source import Checkpoint, Progress, Traffic, no_progress
from lnsim.checkpoint.store import Identity, provenance_at
from lnsim.errors import RepoNotFoundError, SourceError, StoreError
from lnsim.paths import extract_name, find_stored, near_stored, stored_models

if TYPE_CHECKING:
    from lnsim.checkpoint.hub.checkpoint import Repo

IN_FLIGHT = 16  # requests at once, unless told otherwise
_LOOKS_LOCAL = re.compile(r"[.~/]|[A-Za-z]:[\\/]|.*\\")  # what was meant as a path, on Windows too
_NEARLY = 0.75  # a name alone that is at least so much like a stored model's, as difflib counts, is taken for a slip


@dataclass(slots=True)
class Found:
    """What a SOURCE names: something on disk, or a repo on the Hub whose commit is asked for once, when it matters."""

    source: str
    path: Path | None = None  # of this and the next exactly one is there
    repo_name: RepoName | None = None
    in_flight: int = IN_FLIGHT
    _repo: Repo | None = None

    def commit(self) -> str | None:
        """The commit that the Hub would read, None on disk: at most one request, LnsimError where it fails."""
        if self.repo_name is None:
            return None
        from lnsim.checkpoint.hub.cache import cached_snapshot, is_commit

        if self.repo_name.revision is not None and is_commit(self.repo_name.revision):
            return self.repo_name.revision
        snapshot = cached_snapshot(self.repo_name)
        return self.pinned(self.repo_name).commit if snapshot is None else snapshot.commit

    def pinned(self, name: RepoName) -> Repo:
        """The repo of this name at its commit, asked for once; raises LnsimError with what the Hub answered."""
        from lnsim.checkpoint.hub.checkpoint import pin
        from lnsim.checkpoint.hub.session import Settings

        if self._repo is None:
            settings = None if self.in_flight == IN_FLIGHT else Settings(max_in_flight=self.in_flight)
            try:
                self._repo = pin(name, settings=settings)
            except RepoNotFoundError as error:
                if not name.part or "@" in self.source or ":" in self.source:
                    raise
                raise RepoNotFoundError(f"{error} There is no such file or folder here either.") from None
        return self._repo

    @property
    def traffic(self) -> Traffic:
        """What finding its commit took."""
        return Traffic() if self._repo is None else self._repo.transport.traffic


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the norms of one source come from, and the names that its extract may have."""

    source: str
    identity: Identity
    names: tuple[str, ...]  # of files, the shortest first; each tells more of the source than the one before
    commit: str | None = None
    folder: Path | None = None  # of the checkpoint, where it is one on disk


def find_source(source: str, revision: str | None = None, *, in_flight: int = IN_FLIGHT) -> Found:
    """Decide what a SOURCE names, without any request: a path, then a stored model, then a repo on the Hub.

    Raises SourceError when it can be none of them, is nearly a stored model's name, or has no revisions and one is
    given; HubError for a repo where ``HF_ENDPOINT`` is no address.
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
    """Open what a SOURCE named, headers only; raises LnsimError with what the path or the Hub answered."""
    if found.repo_name is None:
        return _open_path(found.path or Path(found.source), found.source)
    # Imported here and below, so that no local reader pays for the network code.
    from lnsim.checkpoint.hub.cache import cached_snapshot

    if (snapshot := cached_snapshot(found.repo_name)) is not None:
        return snapshot
    from lnsim.checkpoint.hub.checkpoint import open_pinned

    return open_pinned(found.pinned(found.repo_name), progress)


def open_checkpoint(source: str, revision: str | None = None, *, progress: Progress = no_progress) -> Checkpoint:
    """Open whatever a SOURCE names, headers only; raises as ``find_source`` and ``open_found`` do."""
    return open_found(find_source(source, revision), progress=progress)


def open_stored(source: str) -> Checkpoint:
    """Open a stored model's name or repo id, or a path, never the network; SourceError, with near names, for none."""
    return _open_path(path_on_disk(source) or _of_repo_id(source) or find_stored(source.rstrip("/")), source)


def _of_repo_id(source: str) -> Path | None:
    """The one extract that was made from the files of this repo, under whatever name it is stored."""
    if source.count("/") != 1:
        return None
    kept = {path: provenance_at(path) for path in stored_models().values()}
    of_repo = [path for path, provenance in kept.items() if provenance and provenance.repo_id == source]
    return of_repo[0] if len(of_repo) == 1 else None


def origin_of(found: Found) -> Origin:
    """What a SOURCE is and how its extract may be called; raises LnsimError when the Hub does not tell the commit."""
    if found.repo_name is not None:
        commit, part = found.commit(), found.repo_name.part
        return _of_repo(found.source, Identity("repo", found.repo_name.repo_id, part), commit)
    path = found.path or Path(found.source)
    whole = Path(os.path.abspath(path))
    cached = find_snapshot(whole)
    if cached is not None:
        return _of_repo(found.source, Identity("repo", cached[1].repo_id, cached[1].part), cached[1].revision)
    kept = provenance_at(whole) if whole.is_file() else None
    if kept is not None and kept.identity.kind == "repo":
        return _of_repo(found.source, kept.identity, kept.commit)
    # The path on this machine, so that it can be known again, and not be read.
    digest = hashlib.sha256(os.fsencode(os.path.realpath(whole))).hexdigest()[:32]
    identity = Identity("path", digest) if kept is None else kept.identity
    return Origin(found.source, identity, _path_names(whole), None, whole if whole.is_dir() else None)


def choose_paths(origins: Sequence[Origin], folder: Path) -> list[Path | StoreError]:
    """Where each extract goes, or why it can go nowhere in this folder.

    An extract of the same source that is there already keeps its name. Else a name is the shortest that neither another
    source of the call nor a file in the folder has.
    """
    first = {origin.identity: origin for origin in reversed(origins)}  # one that stands there twice has one name
    kept = {one: path for one, origin in first.items() if (path := _kept_path(origin, folder)) is not None}
    names = {one: list(origin.names) for one, origin in first.items() if one not in kept}
    while clashing := _clashing(names, folder):
        longer = [one for one in clashing if len(names[one]) > 1]
        if not longer:
            break
        for one in longer:
            names[one].pop(0)
    paths = kept | {one: folder / left[0] for one, left in names.items()}
    return [_answer(origin, paths[origin.identity], origin.identity in clashing, folder) for origin in origins]


def _open_path(path: Path, source: str) -> Checkpoint:
    cached = find_snapshot(path)
    if cached is None:
        return open_local(path, source=source)
    return open_snapshot(*cached)


def _find_on_disk(source: str) -> Path | None:
    if (path := path_on_disk(source)) is not None:
        return path
    plain = source.strip().rstrip("/")
    # A file named with its folder, or behind an @ or an address, may be one on the Hub.
    at_most_a_folder = plain.count("/") < 2 and not {"@", ":"} & set(plain)
    if not plain or _LOOKS_LOCAL.match(source) or (plain.endswith(WEIGHTS) and at_most_a_folder):
        raise SourceError(f"Opening '{source}': there is no such file or folder.")
    names = ((name, f"{path.parent.name}/{path.stem}") for name, path in stored_models().items())
    return find_stored(plain) if any(plain.lower() in map(str.lower, both) for both in names) else None


def lies_on_disk(source: str) -> bool:
    """True for a stored model or what was meant as a path, there or not: neither has a revision to choose."""
    try:
        return _find_on_disk(source) is not None
    except SourceError:
        return True


def _check_no_slip(source: str) -> None:
    """Refuse a name alone that is nearly a stored model's: few repos have no owner, and the network is not asked."""
    near = near_stored(source, _NEARLY) if not {"/", "@"} & set(source.rstrip("/")) else ()
    if near:
        names = ", ".join(f"'{name}'" for name in near)
        raise SourceError(
            f"Opening '{source}': there is no such file or folder and no stored model of this name. Did you mean "
            f"{names}? A repo on the Hub is written owner/name, or name@main where it has no owner."
        )


def _of_repo(source: str, identity: Identity, commit: str | None) -> Origin:
    label = "/".join(filter(None, (identity.name, without_ending(identity.part))))
    return Origin(source, identity, (extract_name(label, commit),), commit)


def _path_names(path: Path) -> tuple[str, ...]:
    parts = list(path.parts[1:]) or ["model"]
    parts[-1] = without_ending(parts[-1])
    labels = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
    return tuple(dict.fromkeys(extract_name(label, None, keep_end=True) for label in labels))


def _kept_path(origin: Origin, folder: Path) -> Path | None:
    paths = (folder / name for name in origin.names)
    return next((path for path in paths if (kept := provenance_at(path)) and kept.identity == origin.identity), None)


def _clashing(names: dict[Identity, list[str]], folder: Path) -> list[Identity]:
    """Those whose first name another one has as well, whatever its capitals, or a file in the folder."""
    users = Counter(left[0].casefold() for left in names.values())
    return [one for one, (name, *_) in names.items() if users[name.casefold()] > 1 or os.path.lexists(folder / name)]


def _answer(origin: Origin, path: Path, clashes: bool, folder: Path) -> Path | StoreError:
    lead = f"Keeping the norms of '{origin.source}'"
    if origin.folder is not None and folder.exists() and os.path.samefile(origin.folder, folder):
        return StoreError(
            f"{lead}: '{folder}' holds the checkpoint itself, where an extract could be taken for its weights. Name "
            f"another folder with --out. Nothing was read."
        )
    if clashes:
        return StoreError(
            f"{lead}: '{path}' is the name of another file or source, and is not replaced, since it is no extract of "
            f"this source. Move it away, or name another folder with --out. Nothing was read."
        )
    return path

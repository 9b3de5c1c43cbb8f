"""This module names the extracts of one call: after a repo and its commit, or after as much of a path as is needed.

All names are known, and held against what lies in the folder, before anything is read. A file that is no extract of the
same source is never a target.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lnsim.checkpoint.local import find_snapshot
from lnsim.checkpoint.opening import Found
from lnsim.checkpoint.store import Identity, provenance_at
from lnsim.errors import StoreError
from lnsim.paths import extract_name

__all__ = ["Origin", "choose_paths", "origin_of"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the norms of one source come from, and the names that its extract may have.

    Args:
        source: as a person wrote it.
        identity: what the source is.
        names: file names, the shortest first; each tells more of the source than the one before.
        commit: of the repo, where it is one.
        folder: that holds the checkpoint, where that is a folder on disk.
    """

    source: str
    identity: Identity
    names: tuple[str, ...]
    commit: str | None = None
    folder: Path | None = None


def origin_of(found: Found) -> Origin:
    """What a SOURCE is and how its extract may be called; for a repo this asks for its commit.

    Raises:
        LnsimError: when the Hub does not tell the commit.
    """
    if found.repo_name is not None:
        commit, part = found.commit(), found.repo_name.part
        return _of_repo(found.source, Identity("repo", found.repo_name.repo_id, part), commit)
    path = Path(found.source) if found.path is None else found.path
    whole = Path(os.path.abspath(path))
    cached = find_snapshot(whole)
    if cached is not None:
        return _of_repo(found.source, Identity("repo", cached[1].repo_id, cached[1].part), cached[1].revision)
    kept = provenance_at(whole) if whole.is_file() else None
    if kept is not None and kept.identity.kind == "repo":
        return _of_repo(found.source, kept.identity, kept.commit)
    identity = Identity("path", _digest(whole)) if kept is None else kept.identity
    return Origin(found.source, identity, _path_names(whole), None, whole if whole.is_dir() else None)


def choose_paths(origins: Sequence[Origin], folder: Path) -> list[Path | StoreError]:
    """Where each extract goes, or why it can go nowhere in this folder.

    An extract of the same source that is there already keeps its name. Else a name is the shortest that neither another
    source of the call nor a file in the folder has.
    """
    first = {origin.identity: origin for origin in reversed(origins)}  # one that stands there twice has one name
    taken = {one: path for one, origin in first.items() if (path := _kept_path(origin, folder)) is not None}
    open_ones = {one: origin for one, origin in first.items() if one not in taken}
    levels = dict.fromkeys(open_ones, 0)
    while clashing := _clashing(open_ones, levels, folder):
        longer = [one for one in clashing if levels[one] + 1 < len(open_ones[one].names)]
        if not longer:
            break
        for one in longer:
            levels[one] += 1
    named = {one: folder / origin.names[levels[one]] for one, origin in open_ones.items()}
    return [_answer(origin, taken | named, clashing, folder) for origin in origins]


def _of_repo(source: str, identity: Identity, commit: str | None) -> Origin:
    label = "/".join(filter(None, (identity.name, identity.part.removesuffix(".safetensors"))))
    return Origin(source, identity, (extract_name(label, commit),), commit)


def _path_names(path: Path) -> tuple[str, ...]:
    parts = list(path.parts[1:]) or ["model"]
    parts[-1] = parts[-1].removesuffix(".safetensors")
    labels = ("/".join(parts[-count:]) for count in range(1, len(parts) + 1))
    return tuple(dict.fromkeys(extract_name(label, None, keep_end=True) for label in labels))


def _digest(path: Path) -> str:
    """A path on this machine, so that it can be known again, and not be read."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]


def _kept_path(origin: Origin, folder: Path) -> Path | None:
    """The extract of this source that is there already."""
    paths = (folder / name for name in origin.names)
    return next((path for path in paths if (kept := provenance_at(path)) and kept.identity == origin.identity), None)


def _clashing(origins: dict[Identity, Origin], levels: dict[Identity, int], folder: Path) -> list[Identity]:
    """Those whose name another one has as well, whatever its capitals, or a file in the folder."""
    users: dict[str, list[Identity]] = {}
    for one, origin in origins.items():
        users.setdefault(origin.names[levels[one]].casefold(), []).append(one)
    return [
        one
        for one, origin in origins.items()
        if len(users[origin.names[levels[one]].casefold()]) > 1 or os.path.lexists(folder / origin.names[levels[one]])
    ]


def _answer(
    origin: Origin, paths: dict[Identity, Path], clashing: Sequence[Identity], folder: Path
) -> Path | StoreError:
    lead = f"Keeping the norms of '{origin.source}'"
    if origin.folder is not None and folder.exists() and os.path.samefile(origin.folder, folder):
        return StoreError(
            f"{lead}: '{folder}' holds the checkpoint itself, where an extract could be taken for its weights. Name "
            f"another folder with --out. Nothing was read."
        )
    path = paths[origin.identity]
    if origin.identity in clashing:
        return StoreError(
            f"{lead}: '{path}' is the name of another file or source, and is not replaced, since it is no extract of "
            f"this source. Move it away, or name another folder with --out. Nothing was read."
        )
    return path

"""This module opens what lies in the Hub's cache on disk as the repo at its commit."""

from __future__ import annotations

import os
from pathlib import Path

from lnsim.checkpoint.layout import CONFIG_NAME, INDEX_NAME
from lnsim.checkpoint.local import LocalCheckpoint, open_local
from lnsim.checkpoint.repo_name import RepoName, is_repo_id
from lnsim.errors import FormatError, SourceError

__all__ = ["commit_of_reference", "find_snapshot", "open_snapshot"]

_OF_A_MODEL = "models--"
_SNAPSHOTS = "snapshots"


def find_snapshot(path: Path) -> tuple[Path, RepoName] | None:
    """The snapshot's folder and what a path in the cache names, with its commit; None for any path elsewhere.

    Of ``models--owner--name`` itself that is what ``refs/main`` names, else the only snapshot.

    Raises:
        SourceError: when there is more than one, or none.
    """
    whole = Path(os.path.abspath(path))  # as it was written: files of a snapshot are links that lead out of it
    home = next((one for one in (whole, *whole.parents) if one.name.startswith(_OF_A_MODEL)), None)
    if home is None or not os.path.isdir(home / _SNAPSHOTS):
        return None
    below = whole.relative_to(home).parts
    repo_id = home.name.removeprefix(_OF_A_MODEL).replace("--", "/")
    if below[:1] not in ((), (_SNAPSHOTS,)) or not is_repo_id(repo_id):
        return None
    commit = below[1] if len(below) > 1 else _commit_of(home, repo_id)
    return home / _SNAPSHOTS / commit, RepoName(repo_id, commit, "/".join(below[2:]))


def open_snapshot(folder: Path, name: RepoName, commit: str) -> LocalCheckpoint:
    """Open a snapshot, or the part of it that is named.

    Raises:
        LnsimError: as ``open_local``; SourceError when files that are needed are no longer in the cache.
    """
    path = folder / name.part
    _check_links(path, name.repo_id, commit)
    typed = f"{name.repo_id}/{name.part}" if name.part else name.repo_id
    try:
        opened = open_local(path, source=typed, repo_id=name.repo_id, commit=commit, part=name.part)
    except FormatError as error:
        raise FormatError(
            f"{error} The Hub's cache may hold only some of its files: with a network, {name.repo_id}@{commit} is read "
            f"from the Hub."
        ) from None
    opened.revision = name.revision
    return opened


def commit_of_reference(home: Path, name: str) -> str | None:
    """The commit of a branch, tag or ``refs/pr/3`` when it was last asked for; None where the cache does not tell."""
    try:
        return (home / "refs" / name).read_text("utf-8", "replace").strip()
    except (OSError, ValueError):  # none there, or none for us to read, or no name of a file
        return None


def _commit_of(home: Path, repo_id: str) -> str:
    there = [name for name in _listed(home / _SNAPSHOTS) if os.path.isdir(home / _SNAPSHOTS / name)]
    wanted = commit_of_reference(home, "main")
    if wanted in there or (wanted is None and len(there) == 1):
        return wanted or there[0]
    named = "it has no refs/main" if wanted is None else f"refs/main names {wanted!r:.60}, which is not there"
    raise SourceError(
        f"Opening {home.name}: one snapshot was expected, found {', '.join(there) or 'none'}, and {named}. Name one "
        f"snapshot's folder, or the repo, {repo_id}, to read it from the Hub."
    )


def _check_links(path: Path, repo_id: str, commit: str) -> None:
    """Refuse a snapshot whose links lead nowhere: its blobs were deleted, to free the disk or by a moved cache."""
    whole = os.path.isdir(path)
    folder = path if whole else path.parent
    names = _listed(folder) if whole else [path.name, CONFIG_NAME]
    needed = [name for name in names if name.endswith(".safetensors") or name in (CONFIG_NAME, INDEX_NAME)]
    dead = [name for name in needed if os.path.islink(folder / name) and not os.path.exists(folder / name)]
    if dead:
        raise SourceError(
            f"Opening {repo_id}@{commit[:12]} in the Hub's cache: {dead[0]!r:.120} is a link to a file that is no "
            f"longer there ({len(dead)} such in all). Download it again (`hf download {repo_id} --revision {commit}`), "
            f"or name the repo, {repo_id}@{commit}, to read it from the Hub."
        )


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise SourceError(f"Opening {folder.name} in the Hub's cache: {error.strerror}.") from None

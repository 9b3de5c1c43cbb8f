"""This module decides what a SOURCE means: a path, a stored model's name, or a repo id on the Hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lnsim.checkpoint.local import LocalCheckpoint, open_local
from lnsim.checkpoint.source import Checkpoint, Progress, no_progress
from lnsim.errors import SourceError
from lnsim.paths import find_stored, stored_models

__all__ = ["RepoName", "open_checkpoint", "open_stored", "parse_repo_name"]

# The Hub's own rule: letters, digits, '-', '_' and '.', at most 96 characters a part, at most one slash.
_PART = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"
_REPO_ID = re.compile(rf"(?:{_PART}/)?{_PART}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RepoName:
    """A repo on the Hub and the revision asked for, None for the head of ``main``."""

    repo_id: str
    revision: str | None


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


def open_checkpoint(source: str, revision: str | None = None, *, progress: Progress = no_progress) -> Checkpoint:
    """Open whatever a SOURCE names, headers only.

    A path that exists comes first, then a stored model's name, then the Hub, the only case that uses the network.

    Raises:
        SourceError: when the source can be none of them, or a revision is given for one that has none.
        LnsimError: what the path or the Hub answered, as a sentence.
    """
    on_disk = _find_on_disk(source)
    if on_disk is not None:
        if revision is not None:
            raise SourceError(
                f"Opening '{source}': it lies on disk, where there is no revision '{revision}' to choose."
            )
        return open_local(on_disk, source=source)
    name = parse_repo_name(source, revision)
    # Imported here: the client library takes a third of a second that no local reader should pay.
    from lnsim.checkpoint.hub import open_hub

    return open_hub(name.repo_id, name.revision, progress=progress)


def open_stored(source: str) -> LocalCheckpoint:
    """Open a stored model's name or a path, and never the network.

    Raises:
        SourceError: when neither is there; near names are suggested.
    """
    path = Path(source).expanduser()
    if path.exists():
        return open_local(path, source=source)
    return open_local(find_stored(source), source=source)


def _find_on_disk(source: str) -> Path | None:
    path = Path(source).expanduser()
    if path.exists():
        return path
    if source.startswith((".", "~", "/")) or source.endswith(".safetensors"):
        raise SourceError(f"Opening '{source}': there is no such file or folder.")
    wanted = source.lower()
    if "/" not in source and any(name.lower() == wanted for name in stored_models()):
        return find_stored(source)
    return None

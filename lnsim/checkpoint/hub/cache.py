"""This module finds snapshots in the Hub's cache on disk that are certain to be what the Hub would serve."""

from __future__ import annotations

import os
from pathlib import Path

from huggingface_hub import constants

from lnsim.checkpoint.hub.names import RepoName
from lnsim.checkpoint.local import commit_of_reference, open_snapshot
from lnsim.checkpoint.source import Checkpoint
from lnsim.errors import LnsimError

MAIN = "main"


def is_commit(text: str) -> bool:
    """Whether a revision is a full commit, which never changes."""
    return len(text) == 40 and all(character in "0123456789abcdef" for character in text)


def cached_snapshot(repo: RepoName) -> Checkpoint | None:
    """The snapshot of a full commit, which cannot change; with the network switched off, that of a branch as well.

    None where the cache has no whole one: a branch may have moved, so with a network the Hub is asked. Raises
    LnsimError, with the network switched off, where the snapshot that is there cannot be read.
    """
    folder = Path(constants.HF_HUB_CACHE) / constants.REPO_ID_SEPARATOR.join(("models", *repo.repo_id.split("/")))
    name = repo.revision or MAIN
    if not is_commit(name):
        if not constants.is_offline_mode() or ".." in name:
            return None
        name = commit_of_reference(folder, name) or ""
    snapshot = folder / "snapshots" / name
    if not is_commit(name) or not os.path.isdir(snapshot):
        return None
    try:
        opened = open_snapshot(snapshot, repo)
    except LnsimError:
        # An incomplete snapshot is common: a tokenizer was fetched, or a download is under way. The Hub has it whole.
        if constants.is_offline_mode():
            raise
        return None
    return None if opened.faults and not constants.is_offline_mode() else opened

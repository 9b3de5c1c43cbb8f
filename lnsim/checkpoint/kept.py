"""This module finds an extract that answers a question already, so that the Hub need not be asked twice."""

from __future__ import annotations

from pathlib import Path

from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.opening import Found
from lnsim.checkpoint.question import Question
from lnsim.checkpoint.reading import ASKED_KEY, Reading, read_norms
from lnsim.checkpoint.store import extract_name, read_provenance
from lnsim.errors import LnsimError

__all__ = ["kept_reading"]


def kept_reading(found: Found, question: Question, folder: Path, name: str | None = None) -> Reading | None:
    """The extract of the same repo, commit and question in a folder; None where there is none, or it cannot be read.

    For a branch or tag this asks the Hub for the commit, in one request.

    Raises:
        LnsimError: when the Hub does not tell the commit.
    """
    if found.repo_name is None:
        return None
    repo_id = found.repo_name.repo_id
    if name is None and not any(folder.glob(f"{extract_name(repo_id, None).removesuffix('.safetensors')}@*")):
        return None  # nothing of this repo: its commit can be asked for when it is opened
    commit = found.commit()
    if commit is None:
        return None
    path = folder / (name or extract_name(repo_id, commit))
    if not path.is_file():
        return None
    try:
        opened = open_local(path)
        provenance = read_provenance(next(iter(opened.headers.values())))
        if provenance is None or (provenance.repo_id, provenance.commit) != (repo_id, commit):
            return None
        if provenance.extra.get(ASKED_KEY) != question.record():
            return None
        return read_norms(opened)
    except LnsimError:
        return None  # a damaged extract is read anew, and replaced

"""This module finds what an extract holds already: the answer to a question, or vectors that must not be lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.question import Question
from lnsim.checkpoint.reading import ANSWERS_KEY, ROLES_KEY, Reading, read_norms
from lnsim.checkpoint.store import Identity, json_texts, kept_header, read_provenance
from lnsim.errors import LnsimError, StoreError

__all__ = ["Kept", "find_kept", "kept_reading"]


@dataclass(frozen=True, slots=True)
class Kept:
    """An extract of the same source and commit that lies where a new one would.

    Args:
        path: where it lies.
        names: the tensors that it holds.
        roles: the role keys that it holds.
        answers: the questions that it answers.
    """

    path: Path
    names: tuple[str, ...]
    roles: tuple[str, ...]
    answers: tuple[str, ...]


def find_kept(path: Path, identity: Identity, commit: str | None) -> Kept | None:
    """The extract at a path, where it is one of this source and commit; it may be damaged behind its header."""
    header = kept_header(path)
    provenance = None if header is None else read_provenance(header)
    if header is None or provenance is None or (provenance.identity, provenance.commit) != (identity, commit):
        return None
    try:
        roles, answers = (tuple(json_texts(header.metadata, key)) for key in (ROLES_KEY, ANSWERS_KEY))
    except StoreError:
        roles, answers = (), ()  # a damaged record answers nothing; the vectors stay all the same
    return Kept(path, tuple(header.tensors), roles, answers)


def kept_reading(question: Question, kept: Kept) -> Reading | None:
    """The answer to a question about a repo at a commit; None where the extract does not hold it, or is damaged."""
    if not question.answered_by(kept.answers, kept.roles):
        return None
    try:
        # The family that was named, if any, stands in the extract's config.
        return read_norms(open_local(kept.path), replace(question, model_type=None), as_asked=True)
    except LnsimError:
        return None  # it is read anew, and replaced

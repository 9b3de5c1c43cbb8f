"""This module keeps the record of a run: what ran, how long it took, what failed, from which commits.

It is ``reports/<study>/run.json``. Seconds stand here and in the index only, so that reports are the same at every run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from lnsim.errors import NotebookError
from lnsim.report.notebooks import Outcome
from lnsim.report.saving import write_whole
from lnsim.text import json_text
from studies.run.agreement import Agreement

_STATES = ("done", "failed")


class Recorded(Outcome, frozen=True):
    """How one notebook ended, and how far its tables agree with the recorded ones, where it did not fail."""

    agreement: Agreement | None = None

    def __post_init__(self) -> None:
        if self.status not in _STATES or (self.status == "failed") != bool(self.error):
            raise NotebookError(
                f"Recording notebook {self.number}: status '{self.status}' with error {self.error!r}; expected 'done' "
                "without an error or 'failed' with one."
            )

    @property
    def ending(self) -> str:
        """``done``, or ``failed`` with its error."""
        return self.status if self.error is None else f"{self.status}: {self.error}"

    @property
    def state(self) -> str:
        """The words of the index: ``done, 3.1 s`` or ``failed: ...``."""
        return f"done, {self.seconds:.1f} s" if self.status == "done" else self.ending


class StudyRun(Struct, frozen=True, rename={"outcomes": "notebooks"}):
    """One study's run."""

    study: str
    source: str  # where the vectors came from, or what was asked for where nothing ran
    outcomes: Mapping[str, Recorded] = {}  # one a notebook that ran, by number
    not_run: Mapping[str, str] = {}  # by number, or ``all``, why a notebook was not run
    command: str = ""  # the command that would run what could not be run, or an empty text
    commits: Mapping[str, str | None] = {}  # by model key, the commit, or None where none is on record
    versions: Mapping[str, str] = {}
    settings: Mapping[str, Any] = {}  # parameters given on the command line

    def succeeded(self, numbers: Collection[str]) -> bool:
        """True where none of the notebooks of these numbers failed."""
        return all(one.status == "done" for number, one in self.outcomes.items() if number in numbers)

    def agreements(self, numbers: Collection[str] | None = None) -> list[Agreement]:
        """How far the notebooks of these numbers, or all, agree with the record."""
        chosen = [one for number, one in sorted(self.outcomes.items()) if numbers is None or number in numbers]
        return [one.agreement for one in chosen if one.agreement is not None]

    def summary(self, numbers: Collection[str]) -> str:
        """One line a notebook of these numbers: study, name, seconds, status; then why others, or all, were not run."""
        ran = [outcome for number, outcome in sorted(self.outcomes.items()) if number in numbers]
        lines = [f"{self.study:<14} {one.file:<28} {one.seconds:6.1f} s  {one.ending}" for one in ran]
        if "all" in self.not_run:
            lines.append(f"{self.study:<14} {'others ' * bool(ran)}not run: {self.not_run['all']} {self.command}")
        return "\n".join(lines)


def save_run(path: Path, run: StudyRun) -> Path:
    """Write the record as JSON, one key a line."""
    content = msgspec.to_builtins(run, order="sorted")
    for fields in content["notebooks"].values():
        del fields["number"]  # it is the key
    return write_whole(path, (json_text(content, indent=1) + "\n").encode("utf-8"))


def load_run(path: Path) -> StudyRun | None:
    """The record in a file; None where there is no file."""
    if not path.is_file():
        return None
    try:
        content = msgspec.json.decode(path.read_bytes())
        notebooks = {number: {**fields, "number": number} for number, fields in content["notebooks"].items()}
        return msgspec.convert({**content, "notebooks": notebooks}, StudyRun)
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise NotebookError(
            f"Reading {path.name} of '{path.parent.name}': it is not the record of a run ({error}). Remove the file "
            "and run again."
        ) from error

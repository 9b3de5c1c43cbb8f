"""This module writes the page of two models that someone asks about: one notebook, run into a folder of its own.

The folder can be sent as it is: the page, the extracts of the two, its tables and figures. The command that stands on
the page makes it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lnsim.checkpoint.extract import Extracted, extract_and_keep
from lnsim.checkpoint.source import Progress
from lnsim.errors import NotebookError
from lnsim.paths import extract_name, notebooks_dir, project_root
from lnsim.report.notebooks import execute, notebook_of_two
from lnsim.report.pair_view import Comparison
from lnsim.report.saving import claim_folder, write_whole
from lnsim.text import json_text, printable

_RECORD = "comparison.json"
_TIMEOUT = 600
_LONGEST_NAME = 40


def write_page_of_two(
    folder: Path, a: Extracted, b: Extracted, found: Comparison, parameters: Mapping[str, Any], progress: Progress
) -> Path:
    """Run the notebook of two models, and write its page, ``index.html``.

    The folder is new, empty, or that of an earlier page on the same two; the parameters are all but the models and it.
    NotebookError where it is another or cannot be written, the vectors are synthetic, or the notebook fails.
    """
    from lnsim.report.html import read_report, write_report

    for one in (a, b):
        if "replica" in one.vectors.provenance:  # the page would call it real weights
            raise NotebookError(
                f"Writing a report on '{one.question.source}': it is a replica, synthetic, and says nothing about a "
                "model. run_all.py makes the pages of a replica, marked as such."
            )
    _check_folder(folder, found.names)
    claim_folder(folder)
    progress(0, 1)
    try:
        parameters = {**parameters, **_keep(folder / "vectors", a, b)}
        write_whole(folder / _RECORD, (json_text(found.record(), indent=1) + "\n").encode("utf-8"))
    except OSError as error:
        raise NotebookError(f"Writing a report into '{folder}': {error.strerror or error}.") from error
    notebook = notebook_of_two(notebooks_dir())
    executed = folder / notebook.path.name
    outcome = execute(notebook, executed, parameters, project_root(), _TIMEOUT)
    if outcome.error is not None:
        raise NotebookError(
            f"Writing a report into '{folder}': {outcome.error}. '{executed.name}' there holds all up to that cell."
        )
    title = f"Do the norm vectors of {parameters['name_a']} and {parameters['name_b']} share a pattern?"
    page = write_report(replace(read_report(executed), title=title), folder / "index.html")
    progress(1, 1)
    return page


def _check_folder(folder: Path, names: tuple[str, str]) -> None:
    """Refuse a file, and the folder of a page on other models: it would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise NotebookError(f"Writing a report into '{folder}': it is a file; name a folder.")
    record = folder / _RECORD
    if not record.is_file():
        return
    try:
        earlier = json.loads(record.read_text("utf-8"))
        two = (earlier["a"], earlier["b"])
    except (ValueError, KeyError, TypeError):
        two = ("other", "other")
    if two != names:
        raise NotebookError(
            f"Writing a report into '{folder}': it holds a report on other models ({two[0]:.80} and {two[1]:.80}); "
            "name a new or an empty folder."
        )


def _keep(folder: Path, *two: Extracted) -> dict[str, Any]:
    """Write the extracts of the two; their places and names as the notebook takes them."""
    names = [_name(one.question.source) for one in two]
    if names[0] == names[1]:
        names = [f"{name} ({side})" for name, side in zip(names, "ab", strict=True)]
    given: dict[str, Any] = {}
    for side, name, one in zip("ab", names, two, strict=True):
        path = folder / f"{side}-{extract_name(name, one.vectors.commit)}"
        if one.prepared is not None:
            one.keep(path)
        else:
            source = str(one.vectors.path or one.vectors.source)
            how: dict[str, Any] = {"out": folder, "name": path.name, "evidence": one.question.evidence}
            extract_and_keep(source, one.question.roles, **how)
        given |= {side: str(path.resolve()), f"name_{side}": name}
    return given


def _name(source: str) -> str:
    """What readers call a source: the last part of a path or repo id, without a revision."""
    last = source.rstrip("/\\").replace("\\", "/").rpartition("/")[2].removesuffix(".safetensors")
    text = printable(last.partition("@")[0]).strip() or "model"
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"

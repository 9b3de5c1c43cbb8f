"""This module writes the page of models that someone asks about: one notebook, run into a folder of its own.

The folder can be sent as it is: the page, the extracts of its models, its tables and figures. The command that stands
on the page makes it again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lnsim.checkpoint.extract import Extracted, extract_and_keep
from lnsim.checkpoint.source import Progress
from lnsim.errors import NotebookError
from lnsim.measure.many import Relation
from lnsim.paths import extract_name, notebooks_dir, project_root
from lnsim.report.notebooks import Notebook, execute, question_of
from lnsim.report.pair_view import Comparison
from lnsim.report.saving import NOT_WRITTEN, claim_folder, write_whole, writing
from lnsim.text import json_text, printable

_TIMEOUT = 600
_LONGEST_NAME = 40


def write_page_of_two(
    folder: Path, a: Extracted, b: Extracted, found: Comparison, parameters: Mapping[str, Any], progress: Progress
) -> Path:
    """Run the notebook of two models, and write its page, ``index.html``.

    The folder is new, empty, or that of an earlier page on the same two; the parameters are all but the models and it.
    NotebookError where it is another or cannot be written, the vectors are synthetic, or the notebook fails.
    """
    names = [_name(one.question.source) for one in (a, b)]
    if names[0] == names[1]:
        names = [f"{name} ({side})" for name, side in zip(names, "ab", strict=True)]
    models = _by_path(folder, "ab", names, (a, b))
    path_a, path_b = map(str, models)
    given = {"a": path_a, "b": path_b, "name_a": names[0], "name_b": names[1], **parameters}
    title = f"Do the norm vectors of {names[0]} and {names[1]} share a pattern?"
    record = folder / "comparison.json"
    _check_folder(folder, record, {"a": found.names[0], "b": found.names[1]})
    return _write_page(folder, "compare", models, record, found.record(), given, title, progress)


def write_page_of_many(
    folder: Path, models: Mapping[str, Extracted], pairs: Sequence[Relation], given: dict[str, Any], progress: Progress
) -> Path:
    """The same for the notebook of many models, here by the name that was asked for, and every pair of them."""
    short = [_name(name) for name in models]
    names = [name if short.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(short, 1)]
    by_path = _by_path(folder, [f"{place:03d}" for place in range(1, 1 + len(names))], names, list(models.values()))
    given = {**given, "models": dict(zip(names, map(str, by_path), strict=True))}
    title = f"Which of {len(models)} models share a pattern in their norm vectors?"
    record, told = folder / "matrix.json", {"models": list(models), "pairs": list(pairs)}
    _check_folder(folder, record, {"models": told["models"]})
    return _write_page(folder, "matrix", by_path, record, told, given, title, progress)


def _by_path(
    folder: Path, marks: Iterable[str], names: Sequence[str], models: Sequence[Extracted]
) -> dict[Path, Extracted]:
    """The models by where the folder of the page keeps them."""
    return {
        (folder / "vectors" / f"{mark}-{extract_name(name, one.vectors.commit)}").resolve(): one
        for mark, name, one in zip(marks, names, models, strict=True)
    }


def _write_page(
    folder: Path,
    which: str,
    models: Mapping[Path, Extracted],
    record: Path,
    told: Mapping[str, Any],
    parameters: Mapping[str, Any],
    title: str,
    progress: Progress,
) -> Path:
    """Keep the models at their paths and the record, run the notebook of a name, and write its page."""
    from lnsim.report.html import read_report, write_report

    for one in models.values():
        if "replica" in one.vectors.provenance:  # the page would call it real weights
            raise NotebookError(NOT_WRITTEN["replica"].format(source=one.question.source))
    claim_folder(folder)
    progress(0, 1)
    with writing(f"a report into '{folder}'"):
        for path, one in models.items():
            _keep(path, one)
        write_whole(record, (json_text(told, indent=1) + "\n").encode("utf-8"))
    path = notebooks_dir() / f"{which}.ipynb"
    notebook = Notebook(which, path, question_of(path))  # it is no study's, and has no number
    executed = folder / path.name
    outcome = execute(notebook, executed, parameters, project_root(), _TIMEOUT)
    if outcome.error is not None:
        raise NotebookError(NOT_WRITTEN["failed"].format(folder=folder, error=outcome.error, executed=executed))
    page = write_report(replace(read_report(executed), title=title), folder / "index.html")
    progress(1, 1)
    return page


def _check_folder(folder: Path, record: Path, asked: Mapping[str, Any]) -> None:
    """Refuse a file, and the folder of a page on other models: it would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise NotebookError(f"Writing a report into '{folder}': it is a file; name a folder.")
    if not record.is_file():
        return
    try:
        content = json.loads(record.read_text("utf-8"))
        earlier = {key: content[key] for key in asked}
    except (ValueError, KeyError, TypeError):
        earlier = dict.fromkeys(asked, "other")
    if earlier != asked:
        told = " and ".join(f"{one if isinstance(one, str) else ', '.join(one):.80}" for one in earlier.values())
        raise NotebookError(NOT_WRITTEN["other_models"].format(folder=folder, told=told))


def _keep(path: Path, one: Extracted) -> None:
    """Write the extract of a model."""
    if one.prepared is not None:
        one.keep(path)
    else:
        asked = str(one.vectors.path or one.vectors.source), one.question.roles
        extract_and_keep(*asked, out=path.parent, name=path.name, evidence=one.question.evidence)


def _name(source: str) -> str:
    """What readers call a source: the last part of a path or repo id, without a revision."""
    last = source.rstrip("/\\").replace("\\", "/").rpartition("/")[2].removesuffix(".safetensors")
    text = printable(last.partition("@")[0]).strip() or "model"
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"

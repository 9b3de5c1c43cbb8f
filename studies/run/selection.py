"""This module finds the notebooks to run, and checks the parameters that a user sets.

An unknown parameter is only a warning to papermill, so names are compared here, before anything runs.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lnsim.errors import NotebookError
from lnsim.report.notebooks import Notebook, question_of, read_cells

_FILE = re.compile(r"\d\d_[a-z0-9_]+\.ipynb")
_STUDY_SETTINGS = ("study", "source")


def list_notebooks(folder: Path) -> tuple[Notebook, ...]:
    """The notebooks of a folder by number, named as ``01_layer0_baseline.ipynb``; others are the user's own.

    NotebookError where there are none or one has no question.
    """
    paths = sorted(path for path in folder.glob("*.ipynb") if _FILE.fullmatch(path.name))
    found = tuple(Notebook(path.name[:2], path, question_of(path)) for path in paths)
    if not found:
        raise NotebookError(
            f"Listing notebooks: the folder '{folder.name}' holds none that is named by two digits and a subject, for "
            "example '01_layer0_baseline.ipynb'."
        )
    numbers = [notebook.number for notebook in found]
    if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
        raise NotebookError(f"Listing notebooks: the number {twice[0]} is used twice; give each its own.")
    return found


def select_notebooks(notebooks: Sequence[Notebook], only: str | None) -> tuple[Notebook, ...]:
    """Those with the numbers in `only`, for example ``01,03``, or all where it is None."""
    if only is None:
        return tuple(notebooks)
    wanted = [number.strip().zfill(2) for number in only.split(",")]
    known = [notebook.number for notebook in notebooks]
    if unknown := [number for number in wanted if number not in known]:
        raise NotebookError(f"Selecting notebooks: there is no {unknown[0]}; known are {', '.join(known)}.")
    return tuple(notebook for notebook in notebooks if notebook.number in wanted)


def parse_setting(text: str) -> tuple[str, Any]:
    """``name=value`` as a name and a Python literal; a value that is no literal is taken as text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise NotebookError(f"Reading --set '{text}': expected name=value, for example seed=1.")
    if name.strip() in _STUDY_SETTINGS:
        raise NotebookError(f"Reading --set '{text}': use --{name.strip()} for it.")
    try:
        parsed = ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        parsed = value.strip()
    try:
        # A notebook's parameter is what JSON can hold; this also makes a tuple the list it would become.
        return name.strip(), json.loads(json.dumps(parsed))
    except TypeError as error:
        raise NotebookError(
            f"Reading --set '{text}': expected a number, a text, True, False, None or a list; {error}."
        ) from None


def known_parameters(notebook: Notebook) -> dict[str, Any]:
    """The cell tagged ``parameters``: names, and the values that stand there."""
    from papermill.translators import PythonTranslator

    content = read_cells(notebook.path)
    if content.get("nbformat") != 4 or not isinstance(content.get("metadata"), dict):
        raise NotebookError(
            f"Reading {notebook.path.name}: 'nbformat': 4 and 'metadata' were expected beside its cells. Open it in "
            "JupyterLab and save it."
        )
    # Not papermill's inspect_notebook: it refuses a notebook that does not tell its language, and all are Python here.
    for cell in content["cells"]:
        if "parameters" in cell.get("metadata", {}).get("tags", ()):
            found = PythonTranslator.inspect({"source": "".join(cell["source"])})
            return {known.name: _literal(known.name, known.default, notebook) for known in found}
    raise NotebookError(f"Reading {notebook.path.name}: no cell has the tag 'parameters'; tag the one that sets them.")


def _literal(name: str, text: str, notebook: Notebook) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise NotebookError(
            f"Reading {notebook.path.name}: the parameter '{name}' should be a literal, found {text!r:.80}. What is "
            f"computed belongs in another cell, since a value given from outside would not reach it."
        ) from None


def check_parameters(known: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> None:
    """Refuse a parameter that none of the notebooks (by number) knows, or a value of another type than stands there."""
    for name, value in given.items():
        stands = [parameters[name] for parameters in known.values() if parameters.get(name) is not None]
        kinds = (int, float) if stands and isinstance(stands[0], float) else type(stands[0]) if stands else object
        if not isinstance(value, kinds) or (isinstance(value, bool) and stands and not isinstance(stands[0], bool)):
            raise NotebookError(
                f"Setting '{name}' to {value!r:.80}: expected a value of type {type(stands[0]).__name__}, "
                f"such as {stands[0]!r:.80}."
            )
        if isinstance(value, int) and not 0 <= value < 2**32:
            raise NotebookError(f"Setting '{name}' to {value}: expected a whole number from 0 to {2**32 - 1}.")
    names = {name for parameters in known.values() for name in parameters}
    if unknown := sorted(set(given) - names):
        listed = "; ".join(
            f"{number}: {', '.join(name for name in parameters if name not in _STUDY_SETTINGS) or 'none'}"
            for number, parameters in sorted(known.items())
        )
        raise NotebookError(f"Setting '{unknown[0]}': no notebook asked for has such a parameter. Known are {listed}.")

"""This module finds the notebooks and checks the parameters that a user sets.

An unknown parameter is only a warning to papermill, so names are compared here, before anything runs.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lnsim.errors import NotebookError

__all__ = [
    "OF_TWO",
    "Notebook",
    "check_parameters",
    "known_parameters",
    "list_notebooks",
    "notebook_of_two",
    "parse_setting",
    "read_cells",
    "select_notebooks",
]

_FILE = re.compile(r"(\d\d)_[a-z0-9_]+\.ipynb|compare\.ipynb")
OF_TWO = "compare.ipynb"
"""The notebook of any two models; it belongs to no study and has no number."""

_STUDY_SETTINGS = ("study", "source")


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook as it lies in the folder.

    Args:
        number: the two digits its name begins with.
        path: the file.
        question: its first heading.
    """

    number: str
    path: Path
    question: str

    def __post_init__(self) -> None:
        if not _FILE.fullmatch(self.path.name) or not self.path.name.startswith(self.number):
            raise NotebookError(
                f"Listing notebooks: '{self.path.name}' should be named by two digits and a subject, for example "
                "'01_layer0_baseline.ipynb'."
            )


def list_notebooks(folder: Path) -> tuple[Notebook, ...]:
    """The notebooks of a folder by number; NotebookError where there are none or one has no question."""
    paths = sorted(path for path in folder.glob("*.ipynb") if not path.name.startswith(".") and path.name != OF_TWO)
    found = tuple(Notebook(path.name[:2], path, _question(path)) for path in paths)
    if not found:
        raise NotebookError(f"Listing notebooks: the folder '{folder.name}' holds none.")
    numbers = [notebook.number for notebook in found]
    if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
        raise NotebookError(f"Listing notebooks: the number {twice[0]} is used twice; give each its own.")
    return found


def notebook_of_two(folder: Path) -> Notebook:
    """The notebook of any two models."""
    return Notebook("compare", folder / OF_TWO, _question(folder / OF_TWO))


def select_notebooks(notebooks: Sequence[Notebook], only: str | None) -> tuple[Notebook, ...]:
    """Those with the numbers in `only`, for example ``01,03``, or all where it is None.

    Raises:
        NotebookError: for a number that there is not, naming those there are.
    """
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
    """The cell tagged ``parameters``: names, and the values that stand there.

    Raises:
        NotebookError: where no cell has the tag, or the file lacks what papermill needs to run it.
    """
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


def check_parameters(known: Mapping[str, Iterable[str]], given: Mapping[str, Any]) -> None:
    """Refuse a parameter that none of the notebooks (by number) knows; NotebookError names the known ones."""
    names = {name for parameters in known.values() for name in parameters}
    if unknown := sorted(set(given) - names):
        listed = "; ".join(
            f"{number}: {', '.join(name for name in parameters if name not in _STUDY_SETTINGS) or 'none'}"
            for number, parameters in sorted(known.items())
        )
        raise NotebookError(f"Setting '{unknown[0]}': no notebook asked for has such a parameter. Known are {listed}.")


def read_cells(path: Path) -> dict[str, Any]:
    """A notebook file as JSON, which has a list of cells; NotebookError where it is no notebook."""
    if not path.is_file():  # a pipe would wait for ever
        raise NotebookError(f"Reading {path.name}: it is not a notebook (but a folder, a pipe or a link to nothing).")
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise NotebookError(f"Reading {path.name}: it is not a notebook ({error!s:.200}).") from error
    found = content.get("nbformat", 4) if isinstance(content, dict) else 4
    if found != 4:
        raise NotebookError(
            f"Reading {path.name}: it is not a notebook of nbformat 4 but of {found!r:.40}. Open it in JupyterLab and "
            f"save it."
        )
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(map(_is_cell, cells)):
        raise NotebookError(f"Reading {path.name}: it is not a notebook (no list 'cells', each with type and source).")
    return dict(content)


def _is_cell(cell: Any) -> bool:
    if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
        return False
    source, metadata = cell.get("source"), cell.get("metadata", {})
    lines = [source] if isinstance(source, str) else source
    is_text = isinstance(lines, list) and all(isinstance(line, str) for line in lines)
    return is_text and isinstance(metadata, dict) and isinstance(metadata.get("tags", []), list)


def _question(path: Path) -> str:
    for cell in read_cells(path)["cells"]:
        first = "".join(cell["source"]).lstrip().split("\n")[0]
        if cell["cell_type"] == "markdown" and first.startswith("# "):
            return first[2:].strip()
    raise NotebookError(f"Reading {path.name}: it has no first heading ('# ...'), which must be its question.")

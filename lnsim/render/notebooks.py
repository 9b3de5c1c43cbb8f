"""This module finds the notebooks, checks parameters and executes them through papermill.

Facts about papermill that shape it: an unknown parameter is only a warning there, so names are compared here; after a
timeout or a dead kernel its saved notebook says that all cells completed, so the status is kept here.
"""

from __future__ import annotations

import ast
import json
import re
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lnsim.errors import NotebookError
from lnsim.render.record import Outcome
from lnsim.render.saving import write_whole

__all__ = ["Notebook", "check_parameters", "execute", "known_parameters", "list_notebooks", "parse_setting"]

_FILE = re.compile(r"(\d\d)_[a-z0-9_]+\.ipynb")
_INJECTED = "injected-parameters"
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
    paths = sorted(path for path in folder.glob("*.ipynb") if not path.name.startswith("."))
    found = tuple(Notebook(path.name[:2], path, _question(path)) for path in paths)
    if not found:
        raise NotebookError(f"Listing notebooks: the folder '{folder.name}' holds none.")
    numbers = [notebook.number for notebook in found]
    if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
        raise NotebookError(f"Listing notebooks: the number {twice[0]} is used twice; give each its own.")
    return found


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


def known_parameters(notebook: Notebook) -> tuple[str, ...]:
    """Names in the cell tagged ``parameters``; NotebookError where no cell has the tag."""
    from papermill import inspect_notebook

    cells = _read(notebook.path)["cells"]
    if not any("parameters" in cell.get("metadata", {}).get("tags", ()) for cell in cells):
        raise NotebookError(
            f"Reading {notebook.path.name}: no cell has the tag 'parameters'; tag the one that sets them."
        )
    return tuple(inspect_notebook(str(notebook.path)))


def check_parameters(known: Mapping[str, tuple[str, ...]], given: Mapping[str, Any]) -> None:
    """Refuse a parameter that none of the notebooks (by number) knows; NotebookError names the known ones."""
    names = {name for parameters in known.values() for name in parameters}
    if unknown := sorted(set(given) - names):
        listed = "; ".join(
            f"{number}: {', '.join(name for name in parameters if name not in _STUDY_SETTINGS) or 'none'}"
            for number, parameters in sorted(known.items())
        )
        raise NotebookError(f"Setting '{unknown[0]}': no notebook asked for has such a parameter. Known are {listed}.")


def execute(notebook: Notebook, output: Path, parameters: Mapping[str, Any], root: Path, timeout: int) -> Outcome:
    """Execute a notebook into `output`, whole or not at all, and say how it ended.

    Args:
        notebook: what to execute.
        output: file of the executed notebook; an older one is replaced also where the notebook fails, so that it can
            be read.
        parameters: values for its parameter cell.
        root: folder in which it runs.
        timeout: seconds that one cell may take.
    """
    from jupyter_core.utils import ensure_event_loop

    started = time.monotonic()
    part = output.with_name(f".{output.name}.part.ipynb")
    output.parent.mkdir(parents=True, exist_ok=True)
    # The client keeps one event loop a thread, and leaves it open.
    with closing(ensure_event_loop()):
        error = _run(notebook, part, parameters, root, timeout)
    if part.is_file():
        _settle(part, output)
    seconds = round(time.monotonic() - started, 2)
    status = "failed" if error else "done"
    return Outcome(notebook.number, notebook.path.stem, notebook.question, status, seconds, error)


def _run(notebook: Notebook, part: Path, parameters: Mapping[str, Any], root: Path, timeout: int) -> str | None:
    """Run papermill; the error in one line, or None where all cells completed."""
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from papermill import PapermillException, execute_notebook
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    try:
        execute_notebook(
            str(notebook.path),
            str(part),
            dict(parameters),
            kernel_name="python3",
            progress_bar=False,
            start_timeout=60,
            execution_timeout=timeout,
            record_timing=False,
            resources={"metadata": {"path": str(root)}},
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
    except PapermillExecutionError as error:
        return f"{error.ename} in cell {error.exec_count}: {_first_line(error.evalue)}"
    except CellTimeoutError:
        return f"CellTimeout{_cell(part)}: no cell may take longer than {timeout} s"
    except DeadKernelError:
        return f"DeadKernel{_cell(part)}: the kernel died; memory may have run out"
    except (CellExecutionError, NoSuchKernel, PapermillException, OSError, RuntimeError) as error:
        return f"{type(error).__name__}: {_first_line(str(error))}"
    return None


def _settle(part: Path, output: Path) -> None:
    """Take out what differs from run to run, then give the file its name."""
    content = _read(part)
    content["metadata"].pop("papermill", None)
    for cell in content["cells"]:
        for name in ("papermill", "execution"):
            cell["metadata"].pop(name, None)
        if _INJECTED in cell["metadata"].get("tags", ()):
            cell["id"] = _INJECTED
    write_whole(output, (json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode("utf-8"))
    part.unlink()


def _cell(part: Path) -> str:
    """The cell that a stopped run had reached, as `` in cell 7``."""
    if not part.is_file():
        return ""
    counts = [cell["execution_count"] for cell in _read(part)["cells"] if cell.get("execution_count")]
    return f" in cell {max(counts)}" if counts else ""


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:400] if lines else "no message"


def _question(path: Path) -> str:
    for cell in _read(path)["cells"]:
        first = "".join(cell["source"]).lstrip().split("\n")[0]
        if cell["cell_type"] == "markdown" and first.startswith("# "):
            return first[2:].strip()
    raise NotebookError(f"Reading {path.name}: it has no first heading ('# ...'), which must be its question.")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
        if not isinstance(content["cells"], list):
            raise ValueError("'cells' is no list")
    except (ValueError, KeyError, TypeError) as error:
        raise NotebookError(f"Reading {path.name}: it is not a notebook ({error}).") from error
    return dict(content)

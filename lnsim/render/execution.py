"""This module executes a notebook through papermill and says how it ended.

After a timeout or a dead kernel, papermill's own record says that all cells completed; so the status is kept here. What
differs from run to run (times, a random cell id) is taken out, so that the same inputs give the same file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lnsim.render.notebooks import Notebook, read_cells
from lnsim.render.record import Outcome
from lnsim.render.saving import write_whole
from lnsim.text import json_text

__all__ = ["execute"]

_INJECTED = "injected-parameters"
_LONGEST_MESSAGE = 400
_STARTS = 3
_CONFIG = {
    "KernelManager": {"transport_encryption": "auto"},
    # A kernel is interrupted when it is shut down, and would complain on stderr; what fails in a cell is told anyhow.
    "NotebookClient": {"extra_arguments": ["--log-level=50"]},
}


@dataclass(slots=True)
class _Reached:
    """How many code cells have been started: the number that JupyterLab shows beside the last of them."""

    cell: int = 0

    def __call__(self, **_hook: Any) -> None:
        self.cell += 1


def execute(notebook: Notebook, output: Path, parameters: Mapping[str, Any], root: Path, timeout: int) -> Outcome:
    """Execute a notebook into `output`, whole or not at all, and say how it ended.

    Args:
        notebook: what to execute.
        output: file of the executed notebook. An older one goes; where a cell fails, the notebook up to there is kept.
        parameters: values for its parameter cell.
        root: folder in which it runs.
        timeout: seconds that one cell may take.
    """
    from jupyter_core.utils import ensure_event_loop

    started = time.monotonic()
    part = output.with_name(f".{output.name}.part.ipynb")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        for old in (part, output):
            old.unlink(missing_ok=True)
        # The client keeps one event loop a thread, and leaves it open.
        with closing(ensure_event_loop()):
            error = _run(notebook, part, parameters, root, timeout)
        if part.is_file():
            _settle(part, output)
    except OSError as problem:  # a folder under the file's name, a full disk
        error = f"{type(problem).__name__}: {_first_line(str(problem))}"
    seconds = round(time.monotonic() - started, 2)
    status = "failed" if error else "done"
    return Outcome(notebook.number, notebook.path.stem, notebook.question, status, seconds, error)


def _run(notebook: Notebook, part: Path, parameters: Mapping[str, Any], root: Path, timeout: int) -> str | None:
    """Run papermill; the error in one line, or None where all cells completed."""
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from papermill import PapermillException
    from papermill.exceptions import PapermillExecutionError

    reached = _Reached()
    try:
        _start_until_it_holds(notebook, part, parameters, root, timeout, reached)
    except PapermillExecutionError as error:
        return f"{error.ename} in cell {error.exec_count}: {_first_line(error.evalue)}"
    except CellTimeoutError:
        return f"CellTimeout in cell {reached.cell}: no cell may take longer than {timeout} s"
    except DeadKernelError:
        return f"DeadKernel in cell {reached.cell}: the kernel died; memory may have run out"
    except (CellExecutionError, NoSuchKernel, PapermillException, OSError, RuntimeError) as error:
        return f"{type(error).__name__}: {_first_line(str(error))}"
    return None


def _start_until_it_holds(
    notebook: Notebook, part: Path, parameters: Mapping[str, Any], root: Path, timeout: int, reached: _Reached
) -> None:
    """Run papermill, again where the kernel died or fell silent before its first cell.

    A kernel's ports are chosen before it binds them, and any other program may take one in between.
    """
    for tries_left in reversed(range(_STARTS)):
        try:
            return _papermill(notebook, part, parameters, root, timeout, reached)
        except RuntimeError as error:
            never_came_up = "before replying" in str(error) or "didn't respond" in str(error)
            if reached.cell or not tries_left or not never_came_up:
                raise
    return None


def _papermill(
    notebook: Notebook, part: Path, parameters: Mapping[str, Any], root: Path, timeout: int, reached: _Reached
) -> None:
    from papermill import execute_notebook
    from traitlets.config import Config

    # papermill keeps one working folder for all threads, and may write relative to that of an earlier run.
    execute_notebook(
        str(notebook.path.absolute()),
        str(part.absolute()),
        dict(parameters),
        kernel_name="python3",
        language="python",
        kernel_manager_class=_kernel_manager(),
        progress_bar=False,
        start_timeout=60,
        execution_timeout=timeout,
        record_timing=False,
        # Written once, at the end: to write all outputs after every cell takes a tenth of the time.
        request_save_on_cell_execute=False,
        on_cell_execute=reached,
        resources={"metadata": {"path": str(root)}},
        config=Config(_CONFIG),
    )


def _kernel_manager() -> type[Any]:
    """Starts the kernel of this interpreter, whatever kernels are installed under whatever names, and wherever."""
    from ipykernel.kernelspec import RESOURCES, get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    class OwnKernelManager(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(resource_dir=RESOURCES, **{**get_kernel_dict(), "env": _environment()})

    return OwnKernelManager


def _environment() -> dict[str, str]:
    """What kernels get besides: where Python may not write compiled modules beside the sources, a cache of the user's.

    Every kernel imports the same libraries, and to compile them anew takes each of them five seconds.
    """
    from platformdirs import user_cache_dir

    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return {}
    prefix = os.environ.get("PYTHONPYCACHEPREFIX") or user_cache_dir("lnsim")
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": prefix}


def _settle(part: Path, output: Path) -> None:
    """Take out what differs from run to run, then give the file its name."""
    content = read_cells(part)
    content["metadata"].pop("papermill", None)
    for cell in content["cells"]:
        for name in ("papermill", "execution"):
            cell["metadata"].pop(name, None)
        if _INJECTED in cell["metadata"].get("tags", ()):
            cell["id"] = _INJECTED
    write_whole(output, (json_text(content, indent=1, sort_keys=True) + "\n").encode("utf-8"))
    part.unlink()


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:_LONGEST_MESSAGE] if lines else "no message"

"""This module executes a notebook through papermill, and says how it ended.

After a timeout or a dead kernel, papermill's record says that all cells completed; so the status is kept here. What
differs from run to run (times, a random cell id) is taken out, so that the same inputs give the same file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from lnsim.errors import NotebookError
from lnsim.report.saving import PAGE_VARIABLE, saved_by, write_whole
from lnsim.text import json_text

_INJECTED = "injected-parameters"
_LONGEST_MESSAGE = 400
_STARTS = 3
_CONFIG = {
    "KernelManager": {"transport_encryption": "auto"},
    # A kernel is interrupted when it is shut down, and would complain on stderr; what fails in a cell is told anyhow.
    "NotebookClient": {"extra_arguments": ["--log-level=50"]},
}

# The outputs are written once, at the end: to write all of them after every cell takes a tenth of the time.
_PAPERMILL: Mapping[str, Any] = {
    "kernel_name": "python3", "language": "python", "progress_bar": False, "start_timeout": 60, "record_timing": False,
    "request_save_on_cell_execute": False,
}  # fmt: skip


class Outcome(msgspec.Struct, frozen=True):
    """How one notebook ended."""

    number: str
    file: str  # name of the notebook without suffix; the report's is the same
    question: str
    status: str  # ``done`` or ``failed``
    seconds: float  # wall-clock time
    error: str | None = None  # one line where it failed, for example ``ValueError in cell 7: ...``


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook as it lies in the folder; its number is the two digits of its name, its question the first heading."""

    number: str
    path: Path
    question: str


class _Metadata(msgspec.Struct):
    tags: list[str] = []


class _Cell(msgspec.Struct):
    cell_type: str
    source: str | list[str]
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Shape(msgspec.Struct):
    """What a notebook must have to be looked at."""

    cells: list[_Cell]


def read_cells(path: Path) -> dict[str, Any]:
    """A notebook file as JSON, which has a list of cells; NotebookError where it is no notebook."""
    if not path.is_file():  # a pipe would wait for ever
        raise NotebookError(f"Reading {path.name}: it is not a notebook (but a folder, a pipe or a link to nothing).")
    try:
        content = json.loads(path.read_text("utf-8"))
        found = content.get("nbformat", 4) if isinstance(content, dict) else 4
        if found == 4:
            msgspec.convert(content, _Shape)
            return dict(content)
    except (OSError, ValueError, RecursionError, msgspec.ValidationError) as error:
        raise NotebookError(f"Reading {path.name}: it is not a notebook ({error!s:.200}).") from error
    raise NotebookError(
        f"Reading {path.name}: it is not a notebook of nbformat 4 but of {found!r:.40}. Open it in JupyterLab and "
        f"save it."
    )


def question_of(path: Path) -> str:
    """The first heading of a notebook; NotebookError where it has none."""
    for cell in read_cells(path)["cells"]:
        first = "".join(cell["source"]).lstrip().split("\n")[0]
        if cell["cell_type"] == "markdown" and first.startswith("# "):
            return first[2:].strip()
    raise NotebookError(f"Reading {path.name}: it has no first heading ('# ...'), which must be its question.")


def execute(
    notebook: Notebook,
    output: Path,
    parameters: Mapping[str, Any],
    root: Path,
    timeout: int,
    provisioner: type[Any] | None = None,
) -> Outcome:
    """Execute a notebook in the folder `root` into `output`, whole or not at all, and say how it ended.

    Its tables and figures go beside it. Older files of it are removed; where a cell fails, or takes longer than
    `timeout` in seconds, the notebook up to there is kept. `provisioner` starts the kernel's process, where another
    than jupyter_client's should.
    """
    from jupyter_core.utils import ensure_event_loop

    started = time.monotonic()
    part = output.with_name(f".{output.name}.part.ipynb")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        for old in (part, output, *saved_by(notebook.number, output.parent / "tables", output.parent / "figures")):
            old.unlink(missing_ok=True)
        # The client keeps one event loop a thread, and leaves it open.
        with closing(ensure_event_loop()):
            error = _run(notebook, part, parameters, root, timeout, provisioner)
        if part.is_file():
            _settle(part, output)
    except OSError as problem:  # a folder under the file's name, a full disk
        error = f"{type(problem).__name__}: {_first_line(str(problem))}"
    seconds = round(time.monotonic() - started, 2)
    status = "failed" if error else "done"
    return Outcome(notebook.number, notebook.path.stem, notebook.question, status, seconds, error)


def _run(
    notebook: Notebook, part: Path, parameters: Mapping[str, Any], root: Path, timeout: int, provisioner: Any
) -> str | None:
    """Run papermill; the error in one line, or None where all cells completed."""
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from papermill import PapermillException, execute_notebook
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    started: list[int] = []  # code cells: as many as the number that JupyterLab shows beside the last of them

    def papermill(tries_left: int) -> None:
        """A kernel's ports are chosen before it binds them; one that dies before its first cell is started again."""
        try:
            # papermill keeps one working folder for all threads, and may write relative to that of an earlier run.
            execute_notebook(
                str(notebook.path.absolute()), str(part.absolute()), dict(parameters), execution_timeout=timeout,
                kernel_manager_class=_kernel_manager(part.parent, provisioner), config=Config(_CONFIG),
                on_cell_execute=lambda **_hook: started.append(1), resources={"metadata": {"path": str(root)}},
                **_PAPERMILL,
            )  # fmt: skip
        except RuntimeError as error:
            never_came_up = "before replying" in str(error) or "didn't respond" in str(error)
            if started or not tries_left or not never_came_up:
                raise
            papermill(tries_left - 1)

    try:
        papermill(_STARTS - 1)
    except PapermillExecutionError as error:
        return f"{error.ename} in cell {error.exec_count}: {_first_line(error.evalue)}"
    except CellTimeoutError:
        return f"CellTimeout in cell {len(started)}: no cell may take longer than {timeout} s"
    except DeadKernelError:
        return f"DeadKernel in cell {len(started)}: the kernel died; memory may have run out"
    except (CellExecutionError, NoSuchKernel, PapermillException, OSError, RuntimeError) as error:
        return f"{type(error).__name__}: {_first_line(str(error))}"
    return None


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


def _kernel_manager(page_folder: Path, provisioner: type[Any] | None) -> type[Any]:
    """Starts the kernel of this interpreter, whatever kernels are installed under whatever names, and wherever."""
    from ipykernel.kernelspec import RESOURCES, get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    class OwnKernelManager(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(resource_dir=RESOURCES, **{**get_kernel_dict(), "env": _environment(page_folder)})

        async def _async_pre_start_kernel(self, **given: Any) -> Any:
            if provisioner is not None and self.provisioner is None:
                self.provisioner = provisioner(kernel_id="", kernel_spec=self.kernel_spec, parent=self)
            return await super()._async_pre_start_kernel(**given)

        pre_start_kernel = _async_pre_start_kernel

    return OwnKernelManager


def _environment(page_folder: Path) -> dict[str, str]:
    """What kernels get besides: the folder of their page; and where Python may not write compiled modules, a cache.

    Every kernel imports the same libraries, and to compile them anew takes each of them five seconds.
    """
    from platformdirs import user_cache_dir

    told = {PAGE_VARIABLE: str(page_folder.absolute()).replace("$", "$$")}  # Jupyter takes one $ for a variable's
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return told
    prefix = os.environ.get("PYTHONPYCACHEPREFIX") or user_cache_dir("lnsim")
    return told | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": prefix}

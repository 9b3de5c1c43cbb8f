"""Tests of executing notebooks: how each ending is told, and what is left behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from report_notebooks import small

from lnsim.report.notebooks import Notebook, execute
from studies.run.kernels import PROVISIONER
from studies.run.selection import known_parameters


def test_a_notebook_runs_with_its_parameters_and_leaves_nothing_that_differs(tmp_path: Path) -> None:
    notebook = with_metadata(small(tmp_path, "import os\nprint(study, seed, os.getcwd())"), UNKNOWN_KERNEL)
    outputs = []
    for name in ("one", "two"):
        output = tmp_path / name / "01_try.ipynb"
        outcome = execute(notebook, output, {"study": "b", "seed": 3}, tmp_path, timeout=60)
        assert (outcome.status, outcome.error, outcome.file) == ("done", None, "01_try")
        outputs.append(output.read_bytes())
        assert [path.name for path in output.parent.iterdir()] == ["01_try.ipynb"]
    assert outputs[0] == outputs[1]
    printed = json.loads(outputs[0])["cells"][-1]["outputs"][0]["text"]
    assert "".join(printed) == f"b 3 {tmp_path}\n"


FOREIGN = {"argv": ["/nowhere/python", "-f", "{connection_file}"], "display_name": "other", "language": "python"}
UNKNOWN_KERNEL = {"kernelspec": {"name": "no-such-kernel", "display_name": "no"}}
OTHER_LANGUAGE = {"kernelspec": {"name": "ir", "language": "R"}, "language_info": {"name": "R"}}


def with_metadata(notebook: Notebook, metadata: dict[str, Any]) -> Notebook:
    content = json.loads(notebook.path.read_text("utf-8"))
    notebook.path.write_text(json.dumps(content | {"metadata": metadata}))
    assert list(known_parameters(notebook)) == ["study", "seed"]
    return notebook


@pytest.mark.parametrize(
    ("variable", "metadata"), [("JUPYTER_PATH", {}), ("JUPYTER_DATA_DIR", OTHER_LANGUAGE)], ids=["no metadata", "R"]
)
def test_a_notebook_runs_in_the_interpreter_of_this_program_whatever_it_says_and_whatever_kernels_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, metadata: dict[str, Any]
) -> None:
    spec = tmp_path / "jupyter" / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps(FOREIGN))
    monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "0")
    notebook = with_metadata(small(tmp_path, "import sys\nprint(sys.executable)"), metadata)
    outcome = execute(notebook, tmp_path / "out.ipynb", {"study": "b"}, tmp_path, timeout=60)
    assert (outcome.status, outcome.error) == ("done", None)
    cells = json.loads((tmp_path / "out.ipynb").read_text("utf-8"))["cells"]
    assert "".join(cells[-1]["outputs"][0]["text"]) == f"{sys.executable}\n"


def test_papermill_is_given_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps one working folder for all threads, so that one from an earlier run may still be in force."""
    small(tmp_path, "1")
    given: list[str] = []
    monkeypatch.setattr("papermill.execute_notebook", lambda source, target, *rest, **_: given.extend([source, target]))
    monkeypatch.chdir(tmp_path)
    notebook = Notebook("01", Path("01_try.ipynb"), "Does it run?")
    assert execute(notebook, Path("reports", "01_try.ipynb"), {}, tmp_path, timeout=60).status == "done"
    assert given == [str(tmp_path / "01_try.ipynb"), str(tmp_path / "reports" / ".01_try.ipynb.part.ipynb")]


@pytest.mark.parametrize(
    ("source", "timeout", "error", "kept"),
    [
        ("raise ValueError('first\\nsecond')", 60, "ValueError in cell 4: first", "second"),
        ("import time\ntime.sleep(60)", 1, "CellTimeout in cell 4: no cell may take longer than 1 s", None),
        ("import os\nos._exit(1)", 30, "DeadKernel in cell 4: the kernel died; memory may have run out", None),
    ],
    ids=["a cell that fails", "a cell that takes too long", "a kernel that dies"],
)
def test_a_bad_end_is_told_with_the_number_of_its_cell_and_no_older_notebook_stays(
    tmp_path: Path, source: str, timeout: int, error: str, kept: str | None
) -> None:
    output = tmp_path / "out.ipynb"
    output.write_text("an older one")
    outcome = execute(small(tmp_path, "1", source), output, {"study": "b"}, tmp_path, timeout)
    assert (outcome.status, outcome.error) == ("failed", error)
    assert kept in output.read_text("utf-8") if kept else not output.exists()


def test_a_folder_in_the_place_of_the_executed_notebook_is_told(tmp_path: Path) -> None:
    (tmp_path / "out.ipynb").mkdir()
    outcome = execute(small(tmp_path, "1"), tmp_path / "out.ipynb", {"study": "b"}, tmp_path, timeout=60)
    assert outcome.status == "failed"
    assert "out.ipynb" in str(outcome.error)
    assert (tmp_path / "out.ipynb").is_dir()


DIES_AT_FIRST = """
import os
flag = os.environ["LNSIM_TEST_FLAG"]
with open(flag, "a") as log:
    log.write("x")
if os.path.getsize(flag) <= int(os.environ["LNSIM_TEST_DEATHS"]):
    os._exit(1)
"""


@pytest.mark.slow
@pytest.mark.parametrize("provisioner", [PROVISIONER, None], ids=["as in a run", "as for one page"])
@pytest.mark.parametrize(("deaths", "status"), [(1, "done"), (3, "failed")])
def test_a_kernel_that_dies_while_it_starts_is_started_again_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provisioner: type[Any] | None, deaths: int, status: str
) -> None:
    """Another program may take its port first; a kernel that never starts is told all the same."""
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text(DIES_AT_FIRST)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("LNSIM_TEST_FLAG", str(tmp_path / "starts"))
    monkeypatch.setenv("LNSIM_TEST_DEATHS", str(deaths))
    outcome = execute(small(tmp_path, "print(1)"), tmp_path / "out.ipynb", {"study": "b"}, tmp_path, 60, provisioner)
    assert outcome.status == status
    assert len((tmp_path / "starts").read_text()) == min(deaths + 1, 3)
    assert status == "done" or "Kernel died before replying" in str(outcome.error)

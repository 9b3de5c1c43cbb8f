"""From the stored vectors to the reports, as a user runs it, with every socket but the machine's own refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STUDY = "small_models"

# Loaded by every Python that the run starts, the kernels included: a connection that leaves the machine is refused and
# written down, so that it cannot fail unseen.
NO_NETWORK = """
import os, socket
_connect, _lookup = socket.socket.connect, socket.getaddrinfo
def _refuse(what):
    with open(os.environ["LNSIM_TEST_LEAKS"], "a") as log:
        log.write(f"{what}\\n")
    raise OSError(f"refused by the test: {what}")
def connect(self, address):
    if isinstance(address, tuple) and not str(address[0]).startswith(("127.", "::1", "localhost")):
        _refuse(address)
    return _connect(self, address)
def getaddrinfo(host, *rest, **named):
    if host not in (None, "", "localhost", "127.0.0.1", "::1"):
        _refuse(host)
    return _lookup(host, *rest, **named)
socket.socket.connect, socket.getaddrinfo = connect, getaddrinfo
"""


ONLY = ("00", "01", "05")
"""The rest runs the same way, in CI through the README's own command."""


@dataclass(frozen=True)
class Run:
    """How run_all.py ended, the notebooks it ran, its reports, and the log of connections that were refused."""

    done: subprocess.CompletedProcess[str]
    notebooks: list[Path]
    reports: Path
    leaks: Path


def notebooks(only: Iterable[str]) -> list[Path]:
    return [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path.stem[:2] in only]


@pytest.fixture(scope="module", params=[pytest.param(ONLY, marks=pytest.mark.slow)], ids=",".join)
def run(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Run:
    folder = tmp_path_factory.mktemp("run")
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    leaks = folder / "leaks.txt"
    leaks.write_text("")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "LNSIM_TEST_LEAKS": str(leaks),
        "HOME": str(folder),
    }
    command = [str(ROOT / "run_all.py"), "--study", STUDY, "--only", ",".join(request.param)]
    command = [sys.executable, *command, "--reports", str(folder / "reports")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    return Run(done, notebooks(request.param), folder / "reports", leaks)


def test_the_run_succeeds_and_names_every_notebook(run: Run) -> None:
    assert run.done.returncode == 0, run.done.stderr
    for path in run.notebooks:
        assert path.stem in run.done.stdout


def test_no_connection_left_the_machine(run: Run) -> None:
    assert run.leaks.read_text() == ""


def test_a_connection_that_would_leave_the_machine_is_refused_and_written_down(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    leaks = tmp_path / "leaks.txt"
    code = "import socket; socket.create_connection(('192.0.2.1', 80))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "LNSIM_TEST_LEAKS": str(leaks)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert "refused by the test" in done.stderr
    assert "192.0.2.1" in leaks.read_text()


def test_the_record_says_done_for_each_and_where_the_vectors_came_from(run: Run) -> None:
    record = json.loads((run.reports / "small_models" / "run.json").read_text())
    assert {entry["status"] for entry in record["notebooks"].values()} == {"done"}
    assert record["source"] == "stored"


def test_each_report_is_one_file_with_its_badge_figures_and_no_external_load(run: Run) -> None:
    *reports, origins = sorted((run.reports / "small_models").glob("*.html"))
    assert [report.stem for report in reports] == [path.stem for path in run.notebooks]
    assert origins.stem == "provenance"
    assert all("<figure" in report.read_text() for report in reports)
    for page in (*reports, origins):
        text = page.read_text()
        assert "REAL WEIGHTS, stored" in text
        loads = ('src="http', "url(http", "@import", "<script src", '<link rel="stylesheet')
        assert not [word for word in loads if word in text]
        assert "Traceback" not in text


def test_the_index_has_one_entry_a_notebook_with_its_finding(run: Run) -> None:
    text = (run.reports / "index.html").read_text()
    for path in run.notebooks:
        assert f"{STUDY}/{path.stem}.html" in text
    assert "REAL WEIGHTS, stored" in text


def test_tables_and_figures_are_written_under_their_notebooks_number() -> None:
    for path in notebooks(ONLY):
        number = path.stem[:2]
        assert list((ROOT / "data" / "tables" / "small_models").glob(f"{number}_*.csv"))
        assert list((ROOT / "figures" / "small_models").glob(f"{number}_*.png"))
        assert list((ROOT / "figures" / "small_models").glob(f"{number}_*.svg"))

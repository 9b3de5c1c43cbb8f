"""From the stored vectors to the reports, as a user runs it, with every socket but the machine's own refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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


def test_a_connection_that_would_leave_the_machine_is_refused_and_written_down(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    leaks = tmp_path / "leaks.txt"
    code = "import socket; socket.create_connection(('192.0.2.1', 80))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "LNSIM_TEST_LEAKS": str(leaks)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert "refused by the test" in done.stderr
    assert "192.0.2.1" in leaks.read_text()


def tracked() -> dict[Path, int]:
    """When each recorded table and figure was written."""
    files = [*(ROOT / "data" / "tables").rglob("*.*"), *(ROOT / "figures").rglob("*.*")]
    return {path: path.stat().st_mtime_ns for path in files}


@pytest.mark.slow
def test_a_run_ends_in_whole_reports_and_an_index_without_a_connection_that_leaves_the_machine(tmp_path: Path) -> None:
    """Of three notebooks; the rest runs the same way, in CI through the README's own command."""
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)
    leaks, reports = tmp_path / "leaks.txt", tmp_path / "reports"
    leaks.write_text("")
    environment = os.environ | {"LNSIM_TEST_LEAKS": str(leaks), "HOME": str(tmp_path)}
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{ROOT}"
    command = [sys.executable, str(ROOT / "run_all.py"), "--study", STUDY, "--only", "00,01,05", "--reports"]
    before = tracked()
    done = subprocess.run(
        [*command, str(reports)], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert tracked() == before
    assert leaks.read_text() == ""
    notebooks = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if path.stem[:2] in done.args[5]]
    assert len(notebooks) == 3
    assert all(notebook in done.stdout for notebook in notebooks)
    record = json.loads((reports / STUDY / "run.json").read_text())
    assert {entry["status"] for entry in record["notebooks"].values()} == {"done"}
    assert record["source"] == "stored"
    pages = {path.stem: path.read_text() for path in sorted((reports / STUDY).glob("*.html"))}
    assert list(pages) == [*notebooks, "provenance"]
    assert all("<figure" in pages[notebook] for notebook in notebooks)
    loads = ('src="http', "url(http", "@import", "<script src", '<link rel="stylesheet', "Traceback")
    for text in pages.values():
        assert "REAL WEIGHTS, stored" in text
        assert not [word for word in loads if word in text]
    agree = re.search(r"^([\d,]+) of \1 values of the tables agree with the recorded ones", done.stdout, re.MULTILINE)
    assert agree, done.stdout
    index = (reports / "index.html").read_text()
    assert agree[0] in index
    assert all(f"{STUDY}/{notebook}.html" in index for notebook in notebooks)
    assert "REAL WEIGHTS, stored" in index

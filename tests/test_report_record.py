"""Tests of run.json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lnsim.errors import NotebookError
from studies.run.agreement import Agreement
from studies.run.record import Recorded, StudyRun, load_run, save_run

DONE = Recorded("01", "01_layer0", "Is it?", "done", 3.14, agreement=Agreement(3, 2, 0.1, ("one differs",)))
FAILED = Recorded("05", "05_pair", "What?", "failed", 1.0, "ValueError in cell 7: no")


def run() -> StudyRun:
    return StudyRun("small", "stored", {"05": FAILED, "01": DONE}, {"08": "no data"}, commits={"a": None})


def test_a_record_reads_back_the_same_and_lists_notebooks_by_number(tmp_path: Path) -> None:
    assert load_run(tmp_path / "run.json") is None
    path = save_run(tmp_path / "run.json", run())
    assert load_run(path) == run()
    content = json.loads(path.read_text("utf-8"))
    assert list(content["notebooks"]) == ["01", "05"]
    assert content["notebooks"]["05"]["error"] == "ValueError in cell 7: no"
    assert content["notebooks"]["01"]["seconds"] == 3.14
    assert set(content["notebooks"]["01"]) == {"file", "question", "status", "seconds", "error", "agreement"}
    assert content["commits"] == {"a": None}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"notebooks": {"01": {"status": "done"}}, "study": "a"}'])
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(NotebookError, match="it is not the record of a run"):
        load_run(tmp_path / "run.json")


@pytest.mark.parametrize(("status", "error"), [("failed", None), ("done", "x"), ("skipped", None)])
def test_a_state_that_contradicts_its_error_is_refused(status: str, error: str | None) -> None:
    with pytest.raises(NotebookError, match="expected 'done' without an error or 'failed' with one"):
        Recorded("01", "a", "b", status, 0.0, error)

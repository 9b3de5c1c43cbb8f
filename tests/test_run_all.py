"""Tests of the command line of run_all.py; what it runs is tested in test_report_run.py."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from command_line import run_all_program

from lnsim.report.notebooks import Notebook
from studies.run.agreement import Agreement
from studies.run.record import Recorded, StudyRun

Patch, Said = pytest.MonkeyPatch, pytest.CaptureFixture[str]
HERE = Path(__file__).parents[1]
NOTEBOOKS = tuple(Notebook(number, Path(f"{number}_a.ipynb"), f"Question {number}?") for number in ("00", "01", "05"))


@pytest.fixture
def run_all(monkeypatch: Patch) -> ModuleType:
    """The program as a module, with the notebooks of this test."""
    monkeypatch.setenv("LNSIM_HOME", str(HERE))
    module = run_all_program(monkeypatch)
    monkeypatch.setattr(module, "list_notebooks", lambda folder: NOTEBOOKS)
    return module


def ran(monkeypatch: Patch, run_all: ModuleType, *runs: StudyRun) -> None:
    def run_plans(plans: object, *rest: Any) -> list[StudyRun]:
        *_, tell, recording = rest
        assert recording is False
        for ended in (False, True):
            tell("small_models 01", ended)
        return list(runs)

    monkeypatch.setattr(run_all, "run_plans", run_plans)


DONE = Recorded("01", "01_a", "Question 01?", "done", 2.5, agreement=Agreement(1234, 1234, 3e-15))
FAILED = Recorded("05", "05_a", "Question 05?", "failed", 1.0, "ValueError in cell 3: no")


def test_no_arguments_mean_everything_offline_and_every_option_of_the_contract_is_taken(run_all: ModuleType) -> None:
    options = run_all.arguments([])
    assert (options.study, options.source, options.only, options.set) == (None, "auto", None, [])
    assert (options.jobs, options.timeout, options.reports) == (run_all._cores(), 600, HERE / "reports")
    assert run_all.arguments(["--set", "seed=1"]).reports == HERE / "reports" / "trial"
    words = "--study a b --source stored --only 01,03 --set seed=1 x=2 --set y=3 --reports out --jobs 3 --timeout 9"
    options = run_all.arguments([*words.split(), "--list"])
    assert run_all.arguments(["--record"]).record
    assert not options.record
    assert (options.study, options.set, options.jobs, options.timeout) == (["a", "b"], ["seed=1", "x=2", "y=3"], 3, 9)
    assert (options.reports, options.list) == (Path("out"), True)
    # Kernels import lnsim from here, and use this environment.
    assert os.environ["PYTHONPATH"].split(os.pathsep)[0] == str(HERE)
    assert os.environ["JUPYTER_PREFER_ENV_PATH"] == "1"


WRONG = ("--source cloud", "--jobs 0", "--timeout x", "extra", "--record --set seed=1", "--record --source hub")


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_command_line_ends_with_2(run_all: ModuleType, words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run_all.main(words.split())
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--study nothing", "There is no study 'nothing'"),
        ("--study solar_glm --source stored", "python run_all.py --study solar_glm --source hub"),
    ],
    ids=["an unknown study", "a study without vectors that is asked for by name"],
)
def test_an_error_is_one_line_on_stderr_and_exit_1(run_all: ModuleType, capsys: Said, words: str, message: str) -> None:
    assert run_all.main(words.split()) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("run_all.py: ")
    assert message in told.err
    assert told.err.count("\n") == 1


def test_all_done_is_exit_0_and_one_failure_is_exit_1(run_all: ModuleType, monkeypatch: Patch, capsys: Said) -> None:
    nothing = StudyRun("solar_glm", "auto", {}, {"all": "no vectors:"}, command="python run_all.py --source hub")
    ran(monkeypatch, run_all, StudyRun("small_models", "stored", {"01": DONE}), nothing)
    assert run_all.main([]) == 0
    told, progress = capsys.readouterr()
    assert progress == ""  # a bar is for a terminal
    assert "01_a" in told
    assert "2.5 s  done" in told
    assert "\n1,234 of 1,234 values of the tables agree with the recorded ones (largest difference 3e-15; " in told
    assert "not run: no vectors: python run_all.py --source hub" in told
    ran(monkeypatch, run_all, StudyRun("small_models", "stored", {"01": DONE, "05": FAILED}))
    assert run_all.main(["--study", "small_models"]) == 1
    assert "failed: ValueError in cell 3: no" in capsys.readouterr().out


def test_list_names_studies_and_questions(run_all: ModuleType, monkeypatch: Patch, capsys: Said) -> None:
    monkeypatch.setattr(run_all, "run_plans", lambda *rest: pytest.fail("it ran"))
    assert run_all.main(["--list"]) == 0
    told = capsys.readouterr().out
    assert "small_models: " in told
    assert "  01  Question 01?" in told


def test_the_network_is_asked_only_for_the_source_hub(run_all: ModuleType, monkeypatch: Patch, capsys: Said) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        run_all, "fetch_study", lambda study, each, rows: asked.append(study.name) or {"solar": "It is gated."}
    )
    monkeypatch.setattr(run_all, "fetch_for", lambda study, numbers: {"glm": f"Fused, for {sorted(numbers)}."})
    ran(monkeypatch, run_all, StudyRun("small_models", "stored", {"01": DONE}))
    run_all.main(["--study", "small_models"])
    assert asked == []
    run_all.main(["--study", "solar_glm", "--source", "hub"])
    assert asked == ["solar_glm"]
    told = capsys.readouterr().err
    assert "model 'solar': It is gated." in told
    assert f"model 'glm': Fused, for {sorted(notebook.number for notebook in NOTEBOOKS)}." in told


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("--study solar_glm --source hub", []),
        ("--study solar_glm --source replica --only 00", ["vectors of solar_glm"]),
        ("--study solar_glm --source replica", ["vectors of solar_glm", "matrices of solar_glm"]),
    ],
)
def test_a_replica_is_made_only_where_it_is_asked_for(
    run_all: ModuleType, monkeypatch: Patch, words: str, made: list[str]
) -> None:
    found: list[str] = []
    notebooks = (*NOTEBOOKS, Notebook("08", Path("08_a.ipynb"), "Question 08?"))
    monkeypatch.setattr(run_all, "list_notebooks", lambda folder: notebooks)
    monkeypatch.setattr(run_all, "fetch", lambda names, numbers: None)
    monkeypatch.setattr(run_all, "build_replica", lambda study: found.append(f"vectors of {study.name}"))
    monkeypatch.setattr(run_all, "build_projections", lambda study: found.append(f"matrices of {study.name}"))
    monkeypatch.setattr(run_all, "plan_study", lambda *_, **__: SimpleNamespace(notebooks=()))
    monkeypatch.setattr(run_all, "run_plans", lambda *_: [])
    assert run_all.main(words.split()) == 0
    assert found == made


def test_what_the_disk_refuses_is_one_line(run_all: ModuleType, monkeypatch: Patch, capsys: Said) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device", "reports/index.html")

    monkeypatch.setattr(run_all, "run", full)
    assert run_all.main([]) == 1
    assert capsys.readouterr().err == "run_all.py: [Errno 28] No space left on device: 'reports/index.html'\n"

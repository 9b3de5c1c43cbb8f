"""Tests of a run: plans, records, pages, and what a failed notebook leaves behind."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from report_notebooks import code, display, markdown, project, record, write

from lnsim.errors import NotebookError, StudyError
from lnsim.report.notebooks import Notebook, Outcome, execute
from lnsim.report.page import PAGE_MIME
from lnsim.report.saving import claim_folder
from lnsim.study.catalog import load_study
from studies.run.plans import Plan, plan_study, run_plans
from studies.run.record import Recorded, load_run
from studies.run.selection import list_notebooks

PARAMETERS = code('study = "a"  # name\nsource = "auto"  # where\nseed = None  # of the shuffles', tags=("parameters",))


def notebook(home: Path, number: str, last: str = "pass", *outputs: dict[str, Any], **changes: Any) -> None:
    """A notebook that answers; its outputs are stored, as if it had run already."""
    page = {PAGE_MIME: record(number=number, **changes)}
    shows = f"from IPython.display import display\ndisplay({page!r}, raw=True)"
    cells = [markdown(f"# Question {number}?"), PARAMETERS, code(last, *outputs), code(shows, display(page))]
    write(home / "notebooks" / f"{number}_try.ipynb", *cells)


def execute_some(notebook: Notebook, output: Path, *rest: Any) -> Outcome:
    """As ``execute``; all but 00 and 02 are copied with the outputs that they have, which takes no kernel."""
    if notebook.number in ("00", "02"):
        return execute(notebook, output, *rest)
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(notebook.path, output)
    return Outcome(notebook.number, notebook.path.stem, notebook.question, "done", 0.0)


def run(home: Path, *, settings: dict[str, Any] | None = None, only: tuple[str, ...] = ()) -> list[Any]:
    found = [n for n in list_notebooks(home / "notebooks") if not only or n.number in only]
    plans = [plan_study(name, "stored", found, asked=False) for name in ("small_models", "solar_glm")]
    told: dict[bool, list[str]] = {False: [], True: []}
    runs = run_plans(plans, home / "reports", home, settings or {}, 2, 60, lambda name, ended: told[ended].append(name))
    assert sorted(told[False]) == sorted(told[True])
    assert sorted(told[True]) == sorted(f"{plan.study.name} {n.number}" for plan in plans for n in plan.notebooks)
    return runs


@dataclass(frozen=True)
class First:
    """A project whose notebooks have run once, side by side: 00 and 01 well, the others not."""

    home: Path
    outcomes: dict[str, Recorded]

    @property
    def folder(self) -> Path:
        return self.home / "reports" / "small_models"

    def report(self, number: str) -> str:
        return (self.folder / f"{number}_try.html").read_text("utf-8")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> First:
    home = project(tmp_path_factory.mktemp("first"))
    notebook(home, "00", "assert seed == 5")
    notebook(home, "01")
    notebook(home, "02", "raise ValueError('no luck')")
    write(home / "notebooks" / "03_try.ipynb", markdown("# Question 03?"), PARAMETERS)
    notebook(home, "04", "x", display({"text/markdown": "$a_b_c$"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studies.run.plans.execute", execute_some)
        patch.setenv("LNSIM_HOME", str(home))
        return First(home, dict(run(home, settings={"seed": 5})[0].outcomes))


@pytest.fixture
def again(first: First, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> First:
    """The same project once more, to run something else in it."""
    home = tmp_path / "again"
    shutil.copytree(first.home, home, symlinks=True)
    monkeypatch.setenv("LNSIM_HOME", str(home))
    return First(home, first.outcomes)


def test_a_study_without_vectors_is_named_with_the_command_and_is_an_error_when_asked_for() -> None:
    first, other = (Notebook(number, Path(f"{number}_a.ipynb"), "A question?") for number in ("03", "14"))
    command = "python run_all.py --study solar_glm --source hub"
    plan = plan_study("solar_glm", "auto", [first, other], asked=True)
    assert plan.notebooks == (other,)  # it needs none
    assert plan.not_run["03"] == "needs the vectors"
    assert "no vectors of its 12 models" in plan.not_run["all"]
    with pytest.raises(StudyError, match=rf"no vectors.*{command}"):
        plan_study("solar_glm", "stored", [first], asked=True)


def test_one_notebook_fails_and_the_others_still_make_their_reports(first: First) -> None:
    assert [outcome.status for outcome in first.outcomes.values()] == ["done", "done", "failed", "failed", "failed"]
    assert first.outcomes["02"].error == "ValueError in cell 3: no luck"
    told = json.loads((first.folder / "run.json").read_text("utf-8"))
    known = {"source": "stored", "commits": {"smollm2": None}, "versions": {"lnsim": "0.1.0"}, "settings": {"seed": 5}}
    assert known.items() <= told.items()
    pages = {path.stem for path in first.folder.glob("*.html")}
    assert pages == {"00_try", "01_try", "provenance"}
    executed = {f"{number}_try.ipynb" for number in first.outcomes}
    origins = {"provenance.html", "provenance_models.csv", "provenance_vectors.csv"}
    others = {"00_try.html", "01_try.html", "run.json", *origins}
    assert {path.name for path in first.folder.iterdir()} == others | executed
    index = (first.home / "reports" / "index.html").read_text("utf-8")
    assert "failed: ValueError in cell 3: no luck" in index
    assert "python run_all.py --study solar_glm --source hub" in index
    assert "Next: 02" not in first.report("01")


def test_a_later_failure_takes_the_old_report_away(again: First, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Next: 01" in again.report("00")
    failed = Outcome("01", "01_try", "Question 01?", "failed", 0.0, "ZeroDivisionError in cell 3")
    monkeypatch.setattr("studies.run.plans.execute", lambda *_: failed)
    runs = run(again.home, only=("01",))
    assert not (again.folder / "01_try.html").exists()
    assert runs[0].outcomes["01"].status == "failed"
    rest = {number: outcome for number, outcome in again.outcomes.items() if number != "01"}
    assert {number: outcome for number, outcome in runs[0].outcomes.items() if number != "01"} == rest
    assert "Next: 01" not in again.report("00")
    assert load_run(again.folder / "run.json") == runs[0]


def test_a_notebook_without_an_answer_or_with_a_formula_that_cannot_be_read_is_failed(first: First) -> None:
    for number, error in (("03", "it gives no answer; call page.answer"), ("04", "Turning the formula 'a_b_c'")):
        assert error in str(first.outcomes[number].error)
        assert not (first.folder / f"{number}_try.html").exists()


def test_tables_are_held_against_the_record_unless_parameters_were_changed_and_older_ones_go(again: First) -> None:
    for place in (again.home / "data" / "tables" / "small_models", again.folder / "tables"):
        place.mkdir(parents=True)
        (place / "02_a.csv").write_text("x\n1\n")
    (again.folder / "tables" / "01_a.csv").write_text("x\n1\n")  # of an earlier run
    notebook(again.home, "02")
    changed = run(again.home, settings={"seed": 5}, only=("02",))[0].agreements()
    assert [one.not_compared for one in changed] == ["parameters were changed (seed=5)"] * len(changed)
    (found,) = run(again.home, only=("02",))[0].agreements({"02"})
    assert found.differ == ("small_models/02_a.csv is no longer written",)
    assert (again.folder / "tables" / "01_a.csv").is_file()
    index = (again.home / "reports" / "index.html").read_text("utf-8")
    assert "0 of 1 values of the tables agree with the recorded ones" in index
    assert "Differs from the record: small_models/02_a.csv is no longer written." in index


def test_an_unknown_setting_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project(tmp_path)
    monkeypatch.setenv("LNSIM_HOME", str(home))
    notebook(home, "00")
    with pytest.raises(NotebookError, match="Setting 'sead'"):
        run(home, settings={"sead": 5})
    assert not (home / "reports").exists()


@pytest.mark.parametrize("place", ["reports", "reports/small_models"])
def test_a_file_in_place_of_the_folder_of_reports_is_one_clear_error(tmp_path: Path, place: str) -> None:
    if place != "reports":
        claim_folder(tmp_path / "reports")
    (tmp_path / place).write_text("mine")
    plan = Plan(load_study("small_models"), "stored", ())
    with pytest.raises(NotebookError, match=r"(Making|Writing) .*reports.*: (File exists|Not a directory)"):
        run_plans([plan], tmp_path / "reports", tmp_path, {}, 1, 60, lambda name, ended: None)
    assert (tmp_path / place).read_text() == "mine"

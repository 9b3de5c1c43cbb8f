"""This module runs studies: notebooks executed, reports written, the index brought up to date.

A notebook that fails is recorded with its error and leaves no report; the others still run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from lnsim.checkpoint.extract import extract_many
from lnsim.checkpoint.reading import Question
from lnsim.errors import LnsimError, NotebookError, StudyError
from lnsim.paths import vectors_dir
from lnsim.report.notebooks import Notebook, execute
from lnsim.report.saving import claim_folder
from lnsim.study.catalog import Study, list_studies, load_study
from lnsim.study.vectors import SOURCES, fetch_command, source_kind, study_vectors
from studies.run.agreement import Agreement, compare, record
from studies.run.record import Recorded, StudyRun, load_run, save_run
from studies.run.selection import check_parameters, known_parameters

if TYPE_CHECKING:
    from studies.run.index import Entry


_OF_ROWS, _NO_ROWS = "15", "a replica has no rows of matrices"


@dataclass(frozen=True, slots=True)
class Plan:
    """What will run of one study, in order, and by number, or ``all``, why the others do not."""

    study: Study
    source: str
    notebooks: tuple[Notebook, ...]
    not_run: Mapping[str, str] = field(default_factory=dict)


def fetch_study(study: Study, each: Callable[[str], None] = lambda key: None, evidence: bool = False) -> dict[str, str]:
    """Read the norm vectors of a study's models from the Hub into ``data/vectors``; this uses the network.

    With `evidence`, the matrix rows of the exact tests are read too. `each` is called with a model's key when it has
    been read. Returns, by model key, why it could not be read; the others were. StudyError where the study's file
    does not allow the source ``hub``.
    """
    source_kind(study, "hub")
    questions = [Question(str(one.repo_id), one.revision, tower=one.tower, evidence=evidence) for one in study.models]
    failed: dict[str, str] = {}
    for model, found in zip(study.models, extract_many(questions, out=vectors_dir() / study.name), strict=True):
        if isinstance(found, LnsimError):
            failed[model.key] = str(found)
        each(model.key)
    return failed


def plan_study(name: str, source: str, notebooks: Sequence[Notebook], asked: bool) -> Plan:
    """Decide which of the selected notebooks run for a study; without any vectors, those that need none.

    Where it was asked for by name and none of them can run for want of vectors, that is a StudyError.
    """
    study = load_study(name)
    reasons = {one.number: "the study's file has no parameters for it" for one in notebooks} | dict(study.not_run)
    runs = tuple(notebook for notebook in notebooks if notebook.number in study.experiments)
    if source == "replica":
        reasons |= {one.number: _NO_ROWS for one in runs if one.number == _OF_ROWS}
        runs = tuple(one for one in runs if one.number != _OF_ROWS)
    if runs and not study_vectors(study, source).vectors:
        reason = f"no vectors of its {len(study.models)} models are stored here. To have them:"
        able = tuple(notebook for notebook in runs if notebook.number in study.without_vectors)
        if asked and not able:
            raise StudyError(f"Study '{name}': {reason} {fetch_command(study)}")
        reasons |= {one.number: "needs the vectors" for one in runs} | {"all": reason}
        runs = able
    for number in (notebook.number for notebook in runs):
        reasons.pop(number, None)
    return Plan(study, source, runs, reasons)


def run_plans(
    plans: Sequence[Plan],
    reports: Path,
    root: Path,
    settings: Mapping[str, Any],
    jobs: int,
    timeout: int,
    tell: Callable[[str, bool], None],
    recording: bool = False,
) -> list[StudyRun]:
    """Execute every notebook of the plans in the folder `root`, `jobs` at a time, and write the pages.

    A setting goes to the notebooks that know it. `timeout` is the seconds that one cell may take; `tell` is called with
    study and number when a notebook begins, and with True when it ends. What a notebook left is recorded when that is
    asked for. NotebookError where the folder of the reports holds other files, or a setting fits no notebook.
    """
    known = {notebook.number: known_parameters(notebook) for plan in plans for notebook in plan.notebooks}
    if settings:
        check_parameters(known, settings)
    claim_folder(reports, [plan.study.name for plan in plans])
    tasks = [(plan, notebook) for plan in plans for notebook in plan.notebooks]
    tasks.sort(key=lambda task: -len(task[0].study.models))  # the long ones first, so that none is alone at the end

    def run(task: tuple[Plan, Notebook]) -> Recorded:
        plan, notebook = task
        stands, given = known[notebook.number], plan.study.experiments[notebook.number]
        # What the study's file says otherwise than the notebook; one whose own value is None asks the file itself.
        other = {name: given[name] for name in given if stands.get(name) is not None and stands[name] != given[name]}
        own = {name: value for name, value in settings.items() if name in stands}
        parameters = {"study": plan.study.name, "source": plan.source, **other, **own}
        name, folder = f"{plan.study.name} {notebook.number}", reports / plan.study.name
        tell(name, False)
        from studies.run.kernels import PROVISIONER  # not at the top: run_all.py --list needs no kernels

        outcome = execute(notebook, folder / f"{notebook.path.stem}.ipynb", parameters, root, timeout, PROVISIONER)
        agreement = None
        if outcome.status == "done":
            if recording:
                record(plan.study.name, notebook.number, folder)
            agreement = _agreement(plan, notebook.number, folder, settings)
        tell(name, True)
        return Recorded(**asdict(outcome), agreement=agreement)

    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(run, tasks))
    results = list(zip(tasks, outcomes, strict=True))
    runs = [
        _merge(plan, [outcome for (task, _), outcome in results if task is plan], settings, reports) for plan in plans
    ]
    return write_pages(runs, reports)


def _agreement(plan: Plan, number: str, folder: Path, settings: Mapping[str, Any]) -> Agreement:
    """How far its tables agree with the recorded ones, made from what lies here and a study's own parameters."""
    if settings:
        changed = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        return Agreement(not_compared=f"parameters were changed ({changed})")
    if plan.source in ("hub", "replica"):
        asked = f"{plan.study.name} was asked from another source ({plan.source}) than was recorded"
        return Agreement(not_compared=asked)
    return compare(plan.study.name, number, folder)


def write_pages(runs: Sequence[StudyRun], reports: Path) -> list[StudyRun]:
    """Write the reports and records of these runs, then the index over every study in the folder.

    A page on every vector of a study is written wherever one of its notebooks could run. A notebook whose report cannot
    be written is failed, and the returned runs say so.
    """
    from studies.run.index import Section, write_index
    from studies.run.origins import write_provenance

    sections = {}
    for run in runs:
        folder = reports / run.study
        checked, found = _write_reports(run, folder)
        save_run(folder / "run.json", checked)
        sections[run.study] = Section(load_study(run.study), checked, found)
        vectors = study_vectors(sections[run.study].study, checked.source)
        if vectors.vectors and checked.outcomes:
            write_provenance(sections[run.study].study, vectors, folder)
    for name in list_studies():
        if name not in sections and (old := load_run(reports / name / "run.json")) is not None:
            sections[name] = Section(load_study(name), old, _read_reports(old, reports / name)[1])
    shown = sorted(sections, key=lambda name: (not sections[name].run.outcomes, name))  # what has no page comes last
    write_index([sections[name] for name in shown], reports / "index.html")
    return [sections[run.study].run for run in runs]


def _merge(plan: Plan, outcomes: Sequence[Recorded], settings: Mapping[str, Any], reports: Path) -> StudyRun:
    """The new record: what was run now, and of the old record what was not run again and is still there."""
    old = load_run(reports / plan.study.name / "run.json")
    kept = {}
    for number, outcome in (old.outcomes if old else {}).items():
        if outcome.status == "failed" or (reports / plan.study.name / f"{outcome.file}.ipynb").is_file():
            kept[number] = outcome
    merged = {**kept, **{outcome.number: outcome for outcome in outcomes}}
    not_run = {number: reason for number, reason in plan.not_run.items() if number not in merged}
    command = fetch_command(plan.study) if "all" in not_run else ""
    return StudyRun(plan.study.name, plan.source, merged, not_run, command, settings=dict(settings))


def _read_reports(run: StudyRun, folder: Path) -> tuple[StudyRun, dict[str, Entry]]:
    """The reports of the notebooks that were done, and the run as they tell it; one without an answer is failed."""
    from studies.run.index import read_entry

    found: dict[str, Entry] = {}
    outcomes = dict(run.outcomes)
    for number, outcome in sorted(run.outcomes.items()):
        if outcome.status == "done":
            try:
                found[number] = read_entry(folder / f"{outcome.file}.ipynb")
            except NotebookError as error:
                outcomes[number] = replace(outcome, status="failed", error=str(error))
    pages = [report.page for report in found.values()]
    if pages:
        commits = {key: record["commit"] for page in pages for key, record in page["models"].items()}
        sources = [str(page["source"]) for page in pages if page["source"] in SOURCES] or [run.source]
        run = replace(run, commits=commits, versions=dict(pages[-1]["versions"]), source=sources[-1])
    return replace(run, outcomes=outcomes), found


def _write_reports(run: StudyRun, folder: Path) -> tuple[StudyRun, dict[str, Entry]]:
    """Write each report with its neighbours; remove those of failed notebooks."""
    from lnsim.report.html import write_report
    from studies.run.glossary import link_words

    run, found = _read_reports(run, folder)
    outcomes, order = dict(run.outcomes), [run.outcomes[number] for number in found]
    for before, outcome, after in zip([None, *order], order, [*order[1:], None], strict=False):
        try:
            write_report(found[outcome.number], folder / f"{outcome.file}.html", before, after, link_words)
        except NotebookError as error:
            outcomes[outcome.number] = replace(outcome, status="failed", error=str(error))
            del found[outcome.number]
    for outcome in outcomes.values():
        if outcome.status == "failed":
            (folder / f"{outcome.file}.html").unlink(missing_ok=True)
    return replace(run, outcomes=outcomes), found

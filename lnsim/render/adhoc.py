"""This module writes a report on two models that someone asks about, into a folder of its own.

The folder is a small project: extracts of the two and of their controls, a study, the pages. It can be sent as it is,
and made again by the command that stands in its README.txt.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lnsim.checkpoint.extract import Extracted, extract_and_keep, load
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import NotebookError
from lnsim.paths import HOME_VARIABLE, extract_name, notebooks_dir, stored_models
from lnsim.render.notebooks import list_notebooks
from lnsim.render.origins import model_rows, versions
from lnsim.render.record import Outcome
from lnsim.render.run import plan_study, run_plans
from lnsim.render.saving import REPORTS_MARK, claim_folder, write_whole
from lnsim.study.adhoc import Member, adhoc_study, choose_controls, members, study_name
from lnsim.study.catalog import list_studies, load_study
from lnsim.study.records import Records
from lnsim.study.toml_text import toml_text

__all__ = ["Asked", "write_adhoc_report"]

_MARK = "A report of lnsim on two models"
_JOBS = 2
_TIMEOUT = 600

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for.

    Args:
        a: what was read of one model.
        b: what was read of the other.
        n_permutations: of the channels.
        seed: of the permutations.
        command: what makes the report again.
    """

    a: Extracted
    b: Extracted
    n_permutations: int
    seed: int
    command: str

    @property
    def name(self) -> str:
        """The name of the study, and of the folder of its pages."""
        return study_name(self.a.question.source, self.b.question.source)


def write_adhoc_report(folder: Path, asked: Asked, progress: Progress = lambda done, planned: None) -> Path:
    """Run the experiments that make sense for two models, and write their pages.

    Args:
        folder: where everything goes; new, empty, or of an earlier report on the same two.
        asked: the two and the test.
        progress: told how many notebooks are done of how many.

    Returns:
        The index.

    Raises:
        NotebookError: when the folder holds something else or cannot be written, or a notebook fails.
        ComparisonError: when nothing of the two can be compared.
    """
    _check_real(asked)
    _check_folder(folder, asked.name)
    notebooks = list_notebooks(notebooks_dir())
    try:
        claim_folder(folder)
        _write_project(folder, asked)
    except OSError as error:
        raise NotebookError(f"Writing a report into '{folder}': {error.strerror or error}.") from error
    with _as_project(folder):
        study = load_study(asked.name)
        spoken_of = [one for one in notebooks if one.number in {*study.experiments, *study.not_run}]
        plan = plan_study(asked.name, "stored", spoken_of, asked=True)
        ended: list[Outcome] = []

        def each(study: str, outcome: Outcome) -> None:
            ended.append(outcome)
            progress(len(ended), len(plan.notebooks))

        progress(0, len(plan.notebooks))
        runs = run_plans([plan], folder, folder, {}, _JOBS, _TIMEOUT, each=each)
    failed = [f"{one.file}: {one.error}" for run in runs for one in run.outcomes.values() if one.status == "failed"]
    if failed:
        raise NotebookError(f"Writing a report into '{folder}': the other pages are there, but {'; '.join(failed)}.")
    return folder / "index.html"


def _check_real(asked: Asked) -> None:
    """Refuse synthetic vectors: the pages would call them real weights."""
    for one in (asked.a, asked.b):
        if "replica" in one.vectors.provenance:
            raise NotebookError(
                f"Writing a report on '{one.question.source}': it is a replica, synthetic, and says nothing about a "
                "model. run_all.py makes the pages of a replica, marked as such."
            )


def _check_folder(folder: Path, name: str) -> None:
    """Refuse a folder that holds anything but an earlier report on the same two models."""
    if folder.exists() and not folder.is_dir():
        raise NotebookError(f"Writing a report into '{folder}': it is a file; name a folder.")
    if not folder.is_dir() or {path.name for path in folder.iterdir()} <= {REPORTS_MARK}:
        return
    readme = folder / "README.txt"
    ours = readme.is_file() and readme.read_text("utf-8", "replace").startswith(_MARK)
    studies = {path.stem for path in (folder / "data" / "studies").glob("*.toml")}
    if not ours or not studies <= {name}:
        what = f"a report on other models ({', '.join(sorted(studies - {name}))})" if ours else "other files"
        raise NotebookError(f"Writing a report into '{folder}': it holds {what}; name a new or an empty folder.")


def _write_project(folder: Path, asked: Asked) -> None:
    """The extracts, the study and the README."""
    records = Records.of([load_study(name) for name in list_studies()])
    others = {name: replace(load(path), path=path) for name, path in stored_models().items()}
    a, b = asked.a.vectors, asked.b.vectors
    controls = choose_controls(a, b, others, records.relation)
    named = [(asked.a.question.source, a), (asked.b.question.source, b)]
    named += [(_label(name, others[name], records), others[name]) for name in controls]
    models = members(named)
    stored = _keep(folder / "data" / "vectors", models, asked)
    content = adhoc_study(models, stored, records.relation, asked.n_permutations, asked.seed, asked.command)
    write_whole(folder / "data" / "studies" / f"{asked.name}.toml", toml_text(content).encode("utf-8"))
    write_whole(folder / "README.txt", _readme(models, asked).encode("utf-8"))


def _label(name: str, vectors: NormVectors, records: Records) -> str:
    """What a control is called: as in the study that has it, else by its stored name."""
    return next((model.label for _, model in records.models(vectors)), name)


def _keep(folder: Path, models: Sequence[Member], asked: Asked) -> dict[str, str]:
    """Write the extract of every model; their names by key."""
    given = {"a": asked.a, "b": asked.b}
    stored: dict[str, str] = {}
    for one in models:
        name = _file_name(one, set(stored.values()))
        stored[one.key] = name
        extracted = given.get(one.key)
        if extracted is not None and extracted.prepared is not None:
            extracted.keep(folder / f"{name}.safetensors")
            continue
        roles = None if extracted is None else extracted.question.roles
        extract_and_keep(str(one.vectors.path or one.vectors.source), roles, out=folder, name=f"{name}.safetensors")
    return stored


def _file_name(one: Member, taken: set[str]) -> str:
    name = extract_name(one.label, one.vectors.commit).removesuffix(".safetensors")
    return f"{name}-{one.key}" if name.casefold() in {other.casefold() for other in taken} else name


def _readme(models: Sequence[Member], asked: Asked) -> str:
    """What the folder is, how it is made again, and from what."""
    lines = [f"{_MARK}: {models[0].label} and {models[1].label}.", "", "Open index.html in a browser.", ""]
    lines += ["Made again by", "", f"    {asked.command}", "", "with " + _listed(versions()), ""]
    for one in models:
        rows = [row for row in model_rows(one.label, one.vectors) if row[0] in ("Commit", "Package", "File", "sha256")]
        lines += [f"{one.key}: {one.label} ({one.vectors.source})"]
        lines += [f"    {label}: {value.replace('`', '')}" for label, value in rows]
    return "\n".join(lines) + "\n"


def _listed(numbers: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in numbers.items())


@contextmanager
def _as_project(folder: Path) -> Iterator[None]:
    """While this is open, this process and the kernels it starts take the folder for the project."""
    package = str(Path(__file__).resolve().parents[2])
    changed = {
        HOME_VARIABLE: str(folder.resolve()),
        "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
        "JUPYTER_PREFER_ENV_PATH": "1",
        # Notebooks run side by side; threads inside each would only get in each other's way.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    before = {name: os.environ.get(name) for name in changed}
    # jsonschema would build 38 grammars for formats that no notebook uses: three seconds.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

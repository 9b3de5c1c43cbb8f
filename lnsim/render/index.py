"""This module writes ``reports/index.html`` from the records and executed notebooks that lie in the folder.

It types no number: sentences, pictures and badges are the notebooks' own, seconds and states are the records'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from lnsim.render import markup
from lnsim.render.csv_files import linked_from
from lnsim.render.first_screen import first_screen
from lnsim.render.html import REPLICA_BANNER, TEMPLATES, Report, asset
from lnsim.render.provenance import PAGE
from lnsim.render.record import StudyRun
from lnsim.render.saving import write_whole
from lnsim.study.catalog import Study
from lnsim.text import printable

__all__ = ["Entry", "StudySection", "study_section", "write_index"]

_COMMAND = "python run_all.py"


@dataclass(frozen=True, slots=True)
class Entry:
    """One notebook in the index; `finding` and `thumbnail` are HTML, the rest is text."""

    number: str
    question: str
    finding: str
    thumbnail: str
    href: str
    status: str
    state: str


@dataclass(frozen=True, slots=True)
class StudySection:
    """One study in the index.

    Args:
        name: the study's name, also the id of its section.
        about: one sentence on it.
        badge: HTML, or an empty text where nothing ran.
        banner: the warning of a replica, or an empty text.
        entries: one a notebook that ran.
        not_run: number (or an empty text), reason, command (or an empty text).
        reports: the reports of the notebooks that were done.
    """

    name: str
    about: str
    badge: str
    banner: str
    entries: tuple[Entry, ...]
    not_run: tuple[tuple[str, str, str], ...]
    reports: tuple[Report, ...]


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """The table of verdicts of one study, in HTML, and the report that says how its sentences are chosen."""

    study: str
    number: str
    table: str

    @classmethod
    def of(cls, report: Report) -> _Verdicts:
        study, number = str(report.page["study"]), str(report.page["number"])
        # Captions are named by their number on the report; here two tables could have the same.
        return cls(study, number, _on_index(report, report.verdicts).replace("cap-", f"verdicts-{study}-"))


def study_section(study: Study, run: StudyRun, reports: dict[str, Report]) -> StudySection:
    """Gather a study's section from its record and its reports by number."""
    entries = [_entry(run, number, reports.get(number)) for number in sorted(run.outcomes)]
    not_run = [
        ("" if number == "all" else number, _sentence(reason), run.command if number == "all" else "")
        for number, reason in sorted(run.not_run.items())
    ]
    sources = {str(report.page["source"]) for report in reports.values()}
    return StudySection(
        name=study.name,
        about=study.about,
        badge=" ".join(markup.badge(source) for source in sorted(sources)),
        banner=REPLICA_BANNER if "replica" in sources else "",
        entries=tuple(entries),
        not_run=tuple(not_run),
        reports=tuple(reports[number] for number in sorted(reports)),
    )


def write_index(sections: Sequence[StudySection], runs: Sequence[StudyRun], path: Path) -> Path:
    """Write the index over the studies' sections."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=False, trim_blocks=True)
    reports = [report for section in sections for report in section.reports]
    # A replica's pairs say nothing about real models, so neither its figure nor its table stands above the studies.
    real = [report for report in reports if report.page["source"] != "replica"]
    figure = next((report.headline for report in real if report.headline), "")
    pairs = next((_on_index(report, report.pairs) for report in real if report.pairs), "")
    verdicts = [_Verdicts.of(report) for report in real if report.verdicts]
    html = environment.get_template("index.html.j2").render(
        css=asset("report.css"),
        script=asset("theme.js") + asset("tables.js"),
        links=_links(sections, pairs, verdicts),
        says=markup.says(first_screen(reports), "Found"),
        figure=_leading_to(figure, "#pairs") if pairs else figure,
        pairs=pairs,
        verdicts=verdicts,
        studies=sections,
        traced={section.name for section in sections if (path.parent / section.name / PAGE).is_file()},
        provenance=markup.provenance(_foot(sections, runs)),
    )
    return write_whole(path, (printable(html.strip(), keep="\n\t") + "\n").encode("utf-8"))


def _links(sections: Sequence[StudySection], pairs: str, verdicts: Sequence[_Verdicts]) -> list[tuple[str, str]]:
    studies = [(section.name, f"#{section.name}") for section in sections]
    tables = [("Verdicts", "#verdicts")] * bool(verdicts) + [("Pairs", "#pairs")] * bool(pairs)
    return [*tables, *studies, ("How to read", "#how")]


def _on_index(report: Report, table: str) -> str:
    """A report's table with the links that hold on the index."""
    study = str(report.page["study"])
    return linked_from(table, study, f"{study}/")


def _leading_to(figure: str, place: str) -> str:
    """A figure whose caption ends with a link to the numbers behind it."""
    return figure.replace("</figcaption>", f' <a href="{place}">All numbers</a></figcaption>')


def _sentence(phrase: str) -> str:
    """A reason as a sentence; one that leads to a command ends with its colon."""
    return phrase[:1].upper() + phrase[1:] + ("" if phrase.endswith((".", ":")) else ".")


def _entry(run: StudyRun, number: str, report: Report | None) -> Entry:
    outcome = run.outcomes[number]
    return Entry(
        number=number,
        question=outcome.question,
        finding=markup.inline(report.page["finding"]) if report else "",
        thumbnail=report.thumbnail if report else "",
        href=f"{run.study}/{outcome.file}.html" if report else "",
        status=outcome.status,
        state=outcome.state,
    )


def _foot(sections: Sequence[StudySection], runs: Sequence[StudyRun]) -> list[tuple[str, str]]:
    sources = ", ".join(f"{run.source} ({run.study})" for run in runs if run.outcomes) or "none"
    versions = next((run.versions for run in runs if run.versions), {})
    offline = all(run.source != "hub" for run in runs)
    return [
        ("Source", sources + ("; no network" if offline else "")),
        ("Versions", ", ".join(f"{name} {number}" for name, number in versions.items()) or "none recorded"),
        ("Made again by", f"`{_COMMAND}`"),
    ]

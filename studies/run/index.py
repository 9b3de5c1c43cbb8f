"""This module writes ``reports/index.html`` from the records and executed notebooks that lie in the folder.

It types no number: sentences, pictures and badges are the notebooks' own, seconds and states are the records'. The top
answers what was compared, what was found and how far to trust it, in so few words that they fit on a first screen:
which notebook's sentences stand there, and how much of each is folded, is decided by fixed rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from lnsim.report import markup
from lnsim.report.html import Report, clean_html, read_report, slug
from lnsim.report.saving import write_text
from lnsim.study.catalog import Study
from lnsim.words import count, listed
from studies.run.agreement import statement
from studies.run.glossary import glossary
from studies.run.origins import PAGE
from studies.run.record import StudyRun

Statement = str | tuple[str, str, str]
"""A sentence, or what of a text is in sight, what is folded, and the words to unfold it."""

_NUMBERED = re.compile(r"<b>(?:REPLICA\. )?(?:Figure|Table) \d+\. ")
_PICTURE = re.compile(r"<figure class=\"fig\"[^>]*>\s*(<img [^>]*>)")
"""The first figure of a report, which its entry in the index shows smaller."""
_MOST_HEADLINES = 2
_LABELS = {"dispute": "The dispute", "general": "In general", "trust": "Trust"}
"""What the top of the index answers, in this order, and how it calls each."""


@dataclass(frozen=True, slots=True)
class Entry(Report):
    """A report, and what it holds for the index: HTML, empty where it holds none."""

    thumbnail: str  # the picture of the index entry as an `img` element
    headline: str  # the figure for the top of the index as a `figure` element
    pairs: str  # a table of the index in its scroll box, as verdicts is
    verdicts: str


def read_entry(path: Path) -> Entry:
    """An executed notebook as ``read_report`` takes it, with what it holds for the index."""
    report = read_report(path)
    outputs = [output for cell in report.notebook.cells for output in cell.get("outputs", ()) if output.get("data")]
    pictures = [found for output in outputs for found in _PICTURE.findall(output.data.get("text/html", ""))]
    marked = (_for_index(outputs, mark) for mark in ("headline", "headline_table", "verdicts"))
    thumbnail = clean_html(pictures[0]) if pictures else ""
    return Entry(report.title, report.page, report.notebook, thumbnail, *marked)


def _for_index(outputs: Sequence[Any], mark: str) -> str:
    """The last output that is marked for the index, without its number on the page."""
    marked = [output.data["text/html"] for output in outputs if output.metadata.get("lnsim", {}).get(mark)]
    return _NUMBERED.sub("<b>", clean_html(marked[-1])) if marked else ""


@dataclass(frozen=True, slots=True)
class Section:
    """One study in the index: its record, and the reports of the notebooks that were done, by number."""

    study: Study
    run: StudyRun
    reports: Mapping[str, Entry]

    @property
    def sources(self) -> list[str]:
        """Where the vectors on its pages came from."""
        return sorted({str(report.page["source"]) for report in self.reports.values()})


def write_index(sections: Sequence[Section], path: Path) -> Path:
    """Write the index over the studies' sections."""
    # A replica says nothing about real models, so nothing of it stands above the studies.
    every = [section.reports[number] for section in sections for number in sorted(section.reports)]
    real = [report for report in every if report.page["source"] != "replica"]
    pictured = sorted(
        (report for report in real if report.headline), key=lambda one: one.page.get("about") != "dispute"
    )
    paired = next((report for report in real if report.pairs), None)
    # Captions are named by their number on the report, and two of them could have the same.
    verdicts = [
        (report.page, _on_index(report.verdicts, report).replace("cap-", f"verdicts-{report.page['study']}-"))
        for report in real
        if report.verdicts
    ]
    studies = [(section.run.study, f"#{section.run.study}") for section in sections]
    tables = [("Verdicts", "#verdicts")] * bool(verdicts) + [("Pairs", "#pairs")] * bool(paired)
    page = markup.filled(
        "index.html.j2",
        links=[*tables, *studies, ("How to read", "#how")],
        says=markup.says(_first_screen(real), _LABELS["dispute"] if _headlines(real, "dispute") else "In general"),
        figure=pictured[0].headline if pictured else "",
        second=paired.headline if paired and pictured[:1] != [paired] else "",
        pairs=_on_index(paired.pairs, paired) if paired else "",
        verdicts=verdicts,
        sections=sections,
        glossary={word: (slug(word), meaning) for word, meaning in glossary().items()},
        sentence=_sentence,
        by_reason=_by_reason,
        traced={one.run.study for one in sections if (path.parent / one.run.study / PAGE).is_file()},
        provenance=markup.provenance([("Read", _compared(real)), *_foot([section.run for section in sections])]),
    )
    return write_text(path, f"{page}\n")


def _headlines(real: Sequence[Entry], about: str) -> list[Statement]:
    """What the reports say at the top of the index about one of its questions, each with a link to its entry."""
    pages = [one.page for one in real if one.page.get("headline") and one.page.get("about", "general") == about]
    return [
        (str(page["headline"]), f"#{page['study']}-{page['number']}", f"{page['study']} {page['number']}")
        for page in pages[:_MOST_HEADLINES]
    ]


def _first_screen(real: Sequence[Entry]) -> list[tuple[str, list[Statement]]]:
    """What the dispute was and what its numbers say, what holds in general, how far to trust it, and what to do."""
    rows = [(label, _headlines(real, about)) for about, label in _LABELS.items()]
    if not any(found for _, found in rows):  # without headlines, the findings of the latest reports
        latest = [f"{one.title} {one.page['finding']}" for one in real[::-1][:_MOST_HEADLINES]]
        rows = [("In general", [*latest] or ["No report on real weights was made yet, so there is nothing to say."])]
    own = "`lnsim compare A B --report DIR` writes a page on any two models."
    return [(label, found) for label, found in rows if found] + [("Your own", [own])]


def _by_reason(not_run: Mapping[str, str]) -> list[tuple[str, str]]:
    """Why notebooks were not run, each reason once with their numbers; none stands for all of them together."""
    reasons: dict[str, list[str]] = {}
    for number, reason in sorted(not_run.items()):
        if number != "all":
            reasons.setdefault(reason, []).append(number)
    return [(", ".join(numbers), reason) for reason, numbers in reasons.items()]


def _compared(reports: Sequence[Entry]) -> str:
    models: dict[str, dict[str, Any]] = {}
    for report in reports:
        for record in report.page["models"].values():
            models[record["source"]] = max(models.get(record["source"], record), record, key=itemgetter("n_vectors"))
    start = "γ, the weights of the normalisation layers, a few kilobytes of a checkpoint"
    if not models:
        return f"{start}."
    vectors = count(sum(int(one["n_vectors"]) for one in models.values()), "vector")
    made = sum(not one.get("published", True) for one in models.values())
    said = [count(len(models) - made, "published checkpoint")] * (made < len(models))
    said += [f"{count(made, 'checkpoint')} made for a study"] * (made > 0)
    return f"{start}: {vectors} of {listed(said)}, real weights all."


def _on_index(table: str, report: Entry) -> str:
    """A report's table with a link to its CSV that holds on the index."""
    return table.replace('href="tables/', f'href="{report.page["study"]}/tables/')


def _sentence(phrase: str) -> str:
    """A reason as a sentence; one that leads to a command ends with its colon."""
    return phrase[:1].upper() + phrase[1:] + ("" if phrase.endswith((".", ":")) else ".")


def _foot(runs: Sequence[StudyRun]) -> list[tuple[str, str]]:
    sources = ", ".join(f"{run.source} ({run.study})" for run in runs if run.outcomes) or "none"
    versions = next((run.versions for run in runs if run.versions), {})
    offline = all(run.source != "hub" for run in runs)
    record = statement(agreement for run in runs for agreement in run.agreements())
    return [
        ("Source", sources + ("; no network" if offline else "")),
        ("Versions", ", ".join(f"{name} {number}" for name, number in versions.items()) or "none recorded"),
        ("Record", " ".join(record) or "nothing was compared"),
        ("Made again by", "`python run_all.py`"),
    ]

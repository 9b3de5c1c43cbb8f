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
from lnsim.report.agreement import statement
from lnsim.report.html import Report
from lnsim.report.provenance import PAGE
from lnsim.report.record import StudyRun
from lnsim.report.saving import write_text
from lnsim.study.catalog import Study
from lnsim.words import count, listed

__all__ = ["Section", "write_index"]

Statement = str | tuple[str, str, str]
"""A sentence, or what of a text is in sight, what is folded, and the words to unfold it."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÄÖÜ\d])")
_MOST_HEADLINES = 3


@dataclass(frozen=True, slots=True)
class Section:
    """One study in the index: its record, and the reports of the notebooks that were done, by number."""

    study: Study
    run: StudyRun
    reports: Mapping[str, Report]

    @property
    def sources(self) -> list[str]:
        """Where the vectors on its pages came from."""
        return sorted({str(report.page["source"]) for report in self.reports.values()})


def write_index(sections: Sequence[Section], path: Path) -> Path:
    """Write the index over the studies' sections."""
    # A replica says nothing about real models, so nothing of it stands above the studies.
    every = [section.reports[number] for section in sections for number in sorted(section.reports)]
    real = [report for report in every if report.page["source"] != "replica"]
    pairs = next((_on_index(report.pairs, report.page["study"]) for report in real if report.pairs), "")
    # Captions are named by their number on the report, and two of them could have the same.
    verdicts = [
        (page, _on_index(verdicts, page["study"]).replace("cap-", f"verdicts-{page['study']}-"))
        for page, verdicts in ((report.page, report.verdicts) for report in real)
        if verdicts
    ]
    studies = [(section.run.study, f"#{section.run.study}") for section in sections]
    tables = [("Verdicts", "#verdicts")] * bool(verdicts) + [("Pairs", "#pairs")] * bool(pairs)
    page = markup.filled(
        "index.html.j2",
        links=[*tables, *studies, ("How to read", "#how")],
        says=markup.says(_first_screen(real), "Found"),
        figure=next((report.headline for report in real if report.headline), ""),
        pairs=pairs,
        verdicts=verdicts,
        sections=sections,
        sentence=_sentence,
        traced={one.run.study for one in sections if (path.parent / one.run.study / PAGE).is_file()},
        provenance=markup.provenance(_foot([section.run for section in sections])),
    )
    return write_text(path, f"{page}\n")


def _first_screen(real: Sequence[Report]) -> list[tuple[str, list[Statement]]]:
    """Label and statements of what was compared, what was found and how far to trust it."""
    led = _leading(real)[:_MOST_HEADLINES]
    # A headline may have two lines; the first of all is set in large type.
    headlines = [str(one.page.get("headline") or f"{one.title} {one.page['finding']}") for one in led]
    found: list[Statement] = [line for headline in headlines for line in headline.split("\n")]
    trust: list[Statement] = []
    for page in (report.page for report in led):  # the first sentence in sight, the others folded, beside their claim
        first, *rest = _SENTENCE_END.split(str(page["trust"]), maxsplit=1)
        trust.append((first, "".join(rest), f"More, {page['study']} {page['number']}"))
    return [
        ("Compared", [_compared(real)]),
        ("Found", found or ["No report on real weights was made yet, so there is nothing to say."]),
        ("Trust", trust or ["Each report names its control and its weakest point."]),
    ]


def _leading(reports: Sequence[Report]) -> list[Report]:
    """The reports whose headlines make the top, in their order.

    The first headline of all stands beside the first figure. Then every other study says its last one, since later
    notebooks build on earlier ones; the rest follow. Where there is no headline, the latest reports stand in.
    """
    offered = [report for report in reports if report.page.get("headline")]
    if not offered:
        return list(reports[::-1])
    first, *others = offered
    last = {str(one.page["study"]): one for one in others if one.page["study"] != first.page["study"]}
    ahead = [first, *last.values()]
    return ahead + [one for one in others if all(one is not other for other in ahead)]


def _compared(reports: Sequence[Report]) -> str:
    models: dict[str, dict[str, Any]] = {}
    for report in reports:
        for record in report.page["models"].values():
            models[record["source"]] = max(models.get(record["source"], record), record, key=itemgetter("n_vectors"))
    start = "γ, the weights of the normalisation layers, a few kilobytes of a checkpoint"
    if not models:
        return f"{start}."
    vectors = count(sum(int(one["n_vectors"]) for one in models.values()), "vector")
    made = sum(not one["published"] for one in models.values())
    said = [count(len(models) - made, "published checkpoint")] * (made < len(models))
    said += [f"{count(made, 'checkpoint')} made for a study"] * (made > 0)
    return f"{start}: {vectors} of {listed(said)}, real weights all."


def _on_index(table: str, study: str) -> str:
    """A report's table with a link to its CSV that holds on the index."""
    return table.replace('href="tables/', f'href="{study}/tables/')


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

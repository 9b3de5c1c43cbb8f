"""This module turns an executed notebook into a report: one HTML file that needs no other.

nbconvert walks the cells, the template in ``templates/lnsim`` gives each its markup. The answer at the top, the badge
and the picture for the index are outputs of the notebook itself, so that a report needs nothing but the notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters.templateexporter import TemplateExporter
from traitlets.config import Config

from lnsim.errors import NotebookError
from lnsim.report import markup
from lnsim.report.markup import PAGE_MIME
from lnsim.report.notebooks import Outcome
from lnsim.report.prose import clean_html, code_html, prose_html, slug
from lnsim.report.saving import write_text

ALONE = {"compare": "Two models compared", "matrix": "Many models compared"}
"""What stands in place of a number on the page of any two models, which has no index and no neighbours."""


@dataclass(frozen=True, slots=True)
class Report:
    """What an executed notebook holds for its report."""

    title: str  # the question
    page: Mapping[str, Any]  # the answer and all that came with it, as ``Page.answer`` wrote it
    notebook: nbformat.NotebookNode = field(repr=False)


def read_report(path: Path) -> Report:
    """An executed notebook, with its answer found; NotebookError where it gives none."""
    try:
        notebook = nbformat.reads(path.read_text("utf-8"), as_version=4)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise NotebookError(f"Reading the executed notebook {path.name}: {error}.") from error
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ()) if output.get("data")]
    pages = [output.data[PAGE_MIME] for output in outputs if PAGE_MIME in output.data]
    if not pages:
        raise NotebookError(f"Reading the executed notebook {path.name}: it gives no answer; call page.answer(...).")
    return Report(_take_title(notebook, path.name), pages[-1], notebook)


def write_report(
    report: Report,
    path: Path,
    before: Outcome | None = None,
    after: Outcome | None = None,
    linked: Callable[[str], str] = str,
) -> Path:
    """Write a report as one HTML file, with links to its neighbours and to the index; `linked` adds those of words."""
    page, alone = report.page, ALONE.get(report.page["number"], "")
    given = {
        "title": report.title, "page": page, "page_mime": PAGE_MIME, "contents": _mark_sections(report.notebook),
        "badge": markup.badge(page["source"]), "says": markup.answer(page), "alone": alone, "before": before,
        "file": f"{page['number']}.ipynb" if alone else f"{path.stem}.ipynb",
        "after": after, "banner": markup.REPLICA_BANNER if page["source"] == "replica" else "",
        "css": markup.asset("report.css"), "script": markup.asset("theme.js") + markup.asset("tables.js"),
    }  # fmt: skip
    body, _ = _exporter().from_notebook_node(report.notebook, resources={"lnsim": given})
    return write_text(path, linked(body))


@cache
def _exporter() -> Any:
    # The first of these that an output has is shown.
    kinds = ["text/html", "text/markdown", "image/png", "text/plain"]
    places = {"extra_template_basedirs": [str(markup.TEMPLATES)]}
    config = Config(TemplateExporter=places, NbConvertBase={"display_data_priority": kinds})
    exporter: Any = TemplateExporter(config=config, template_name="lnsim", file_extension=".html")  # type: ignore[no-untyped-call]
    for name, shown in {"prose": prose_html, "code": code_html, "clean": clean_html}.items():
        exporter.register_filter(name, shown)
    return exporter


def _take_title(notebook: nbformat.NotebookNode, name: str) -> str:
    """The first heading, which leaves its cell: a report shows it above the answer."""
    for cell in notebook.cells:
        heading, _, rest = cell.source.lstrip().partition("\n")
        if cell.cell_type == "markdown" and heading.startswith("# "):
            cell.source = rest.strip()
            if not cell.source:
                notebook.cells.remove(cell)
            return str(heading[2:].strip())
    raise NotebookError(f"Reading the executed notebook {name}: it has no first heading ('# ...').")


def _mark_sections(notebook: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Note on each cell that opens a section the section's id; returns ids and titles for the contents."""
    contents: list[tuple[str, str]] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            title = cell.source.partition("\n")[0][3:].strip()
            cell.metadata.update(lnsim_section=slug(title), lnsim_first=not contents)
            contents.append((slug(title), title))
    return contents

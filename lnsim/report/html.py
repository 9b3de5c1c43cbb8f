"""This module turns an executed notebook into a report: one HTML file that needs no other.

nbconvert walks the cells, the template in ``templates/lnsim`` gives each its markup. The answer at the top, the badge
and the picture for the index are outputs of the notebook itself, so that a report needs nothing but the notebook.

Raw HTML in Markdown shows as text. Formulas become MathML, so that a page needs no script for them. HTML outputs pass
an allow-list: what is not on it is dropped or shown as text.
"""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import bleach
import nbformat
from latex2mathml import exceptions as formula_errors
from latex2mathml.converter import convert
from nbconvert.exporters.templateexporter import TemplateExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from traitlets.config import Config

from lnsim.errors import NotebookError
from lnsim.report import markup
from lnsim.report.markup import PAGE_MIME, asset, typographic
from lnsim.report.notebooks import Outcome
from lnsim.report.saving import write_text

ALONE = {"compare": "Two models compared", "matrix": "Many models compared"}
"""What stands in place of a number on the page of any two models, which has no index and no neighbours."""

_FORMULA_ERRORS: tuple[type[Exception], ...] = tuple(
    kind for kind in vars(formula_errors).values() if isinstance(kind, type) and issubclass(kind, Exception)
)

_ALLOWED = tomllib.loads(asset("allowed.toml"))
_TAGS, _ATTRIBUTES = frozenset(_ALLOWED["tags"]), frozenset(_ALLOWED["attributes"])
_NUMBERS = re.compile(r"-?[\d.]+( -?[\d.]+)*")
_STYLE = re.compile(r"<style\b.*?</style>", re.DOTALL | re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(svg\+xml|png|gif|jpeg);base64,[A-Za-z0-9+/=]+")
_LINK = re.compile(r"(https?://|[\w./-]*#|[\w./-]+\.(html|csv))", re.IGNORECASE)


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
        "css": asset("report.css"), "script": asset("theme.js") + asset("tables.js"),
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


def prose_html(source: str) -> str:
    """Markdown as HTML; NotebookError where a formula cannot be read."""
    return MarkdownWithMath(renderer=_Prose(escape=True, allow_harmful_protocols=False)).render(source).strip()


def code_html(source: str) -> str:
    """Python as HTML with Pygments' short class names, without any element around it."""
    return str(highlight(source, PythonLexer(), HtmlFormatter(nowrap=True)))


def clean_html(source: str) -> str:
    """HTML with only the elements and attributes of the allow-list; pictures must be data, links plain."""
    protocols, plain = frozenset({"http", "https", "data"}), _STYLE.sub("", source)
    return str(bleach.clean(plain, tags=_TAGS, attributes=_allowed, protocols=protocols, strip=True))


def slug(title: str) -> str:
    """A heading as an id: lower-case letters and digits joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img" and name == "src":
        return bool(_PICTURE.fullmatch(value))
    if tag == "a" and name == "href":
        return bool(_LINK.match(value))
    if name in _ALLOWED["shapes"].get(tag, ()):
        return bool(_NUMBERS.fullmatch(value))
    return name in _ATTRIBUTES


class _Prose(IPythonRenderer):  # type: ignore[misc, unused-ignore]
    """Markdown with ids on the h2 headings, MathML for formulas, and no HTML from outside."""

    def heading(self, text: str, level: int, **_attributes: Any) -> str:
        """A heading; an h2 opens a section, and the contents link to its id."""
        if level != 2:
            return f"<h{level}>{text}</h{level}>\n"
        name = slug(re.sub("<[^>]+>", "", html.unescape(text)))
        link = f'<a class="anchor" href="#{name}" aria-label="Link to this section">#</a>'
        return f'<h2 id="{name}">{text}{link}</h2>\n'

    def text(self, text: str) -> str:
        """Plain text, with typographic apostrophes and minus signs."""
        return str(super().text(typographic(text)))

    def image(self, text: str, url: str, title: str | None = None) -> str:
        """Only a picture that is in the text itself; any other would be fetched from elsewhere when the page opens."""
        return str(super().image(text, url, title)) if _PICTURE.fullmatch(url) else html.escape(text)

    def block_math(self, body: str) -> str:
        """A display formula in the box in which it scrolls when it is wider than the page."""
        return f'<div class="eq" role="group" aria-label="Formula" tabindex="0">{_mathml(body, "block")}</div>'

    def inline_math(self, body: str) -> str:
        """A formula in the line."""
        return _mathml(body, "inline")

    def paragraph(self, text: str) -> str:
        """A paragraph; a formula on its own is no paragraph, since a `div` may not stand in a `p`."""
        return f"{text}\n" if text.lstrip().startswith('<div class="eq"') else f"<p>{text}</p>\n"


@cache
def _mathml(latex: str, display: str) -> str:
    try:
        return str(convert(latex.strip(), display=display))
    except _FORMULA_ERRORS as error:
        raise NotebookError(
            f"Turning the formula '{latex.strip()}' into MathML: {type(error).__name__}. Correct its LaTeX."
        ) from error

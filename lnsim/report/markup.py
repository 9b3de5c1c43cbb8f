"""This module writes the pieces of HTML that a page is made of: answers, figures, tables, provenance.

Everything that comes from outside, a model's name above all, is escaped here; nothing is trusted to be harmless text.
The look is that of ``templates/report.css``; JupyterLab shows the same pieces without the style sheet.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnsim.errors import NotebookError
from lnsim.words import TEXTS

if TYPE_CHECKING:
    import jinja2

PAGE_MIME = "application/vnd.lnsim.page+json"  # output that carries the answer, the source and the models of a page
TEMPLATES = Path(__file__).parent / "templates"  # folder of the templates, the style sheet and the scripts
REPLICA_BANNER = "These vectors are synthetic. No statement about a real model may rest on this report."

BADGES: Mapping[str, tuple[str, str]] = TEXTS["badges"]  # class and words of the badge of each source of vectors
_IN_SIGHT = 8  # lines of provenance that are not folded
_CODE = re.compile(r"`([^`]+)`")
_ITALIC = re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
_MINUS = re.compile(r"(?<![\w.\-])-(?=\d)")


@cache
def asset(name: str) -> str:
    """The text of a file beside the templates, for example ``report.css``."""
    return (TEMPLATES / name).read_text("utf-8")


def filled(name: str, **values: Any) -> str:
    """A template with its values; what it does not filter is put in as it is."""
    return _environment().get_template(name).render(values).strip()


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, autoescape=False, trim_blocks=True)
    environment.filters |= {"badge": badge, "inline": inline, "plain": escape}
    script = asset("theme.js") + asset("tables.js")
    environment.globals |= {"css": asset("report.css"), "script": script, "banner": REPLICA_BANNER}
    return environment


def typographic(text: str) -> str:
    """The same text with a real minus sign (U+2212) before numbers and with curved apostrophes."""
    return _MINUS.sub("−", text).replace("'", "’")


def inline(text: str) -> str:
    """Plain text as escaped HTML; ```code``` and ``*italic*`` are the only marks it knows."""
    return "".join(
        f"<code>{escape(part)}</code>" if place % 2 else _ITALIC.sub(r"<i>\1</i>", escape(typographic(part)))
        for place, part in enumerate(_CODE.split(str(text)))
    )


def badge(source: str) -> str:
    """The badge that says where the vectors come from: ``stored``, ``hub``, ``measured``, ``given`` or ``replica``."""
    if source not in BADGES:
        raise NotebookError(f"Writing a badge: '{source}' is not a source of vectors; known are {', '.join(BADGES)}.")
    kind, words = BADGES[source]
    return f'<span class="badge {kind}">{words}</span>'


def answer(page: Mapping[str, Any]) -> str:
    """The statements at the top of a report, from the record that ``Page.answer`` keeps."""
    rows = [(label, [page[label.lower()]]) for label in ("Finding", "Compared", "Control", "Trust")]
    if page.get("lacking"):
        rows.insert(3, ("Lacking", [page["lacking"]]))
    return says([*rows, ("Missing", page["absent"])] if page.get("absent") else rows, "Finding")


def says(rows: Iterable[tuple[str, Sequence[str | tuple[str, str, str]]]], lead: str) -> str:
    """The labelled statements at the top of a page, that of the label `lead` in large type.

    A statement of three parts is its text, and the address and the words of a link behind it.
    """
    return filled("pieces/says.html.j2", rows=rows, lead=lead)


def image(data: bytes, alt: str, kind: str = "svg+xml") -> str:
    """A picture as one `img` element that needs no other file."""
    if not alt.strip():
        raise NotebookError("Placing a picture: it has no alt text; say what is seen, with the numbers.")
    encoded = base64.b64encode(data).decode("ascii")
    return f'<img src="data:image/{kind};base64,{encoded}" alt="{escape(typographic(alt))}">'


def figure(data: bytes, alt: str, label: str, claim: str, caption: str, moving: bool = False) -> str:
    """An SVG with its caption; `label` is for example ``Figure 1.``, `claim` the sentence in bold.

    One that moves is a GIF behind a button: it plays only when a reader opens it.
    """
    picture = image(data, alt, "gif" if moving else "svg+xml")
    told = {"head": f"{label} {claim}".strip(), "caption": caption, "moving": moving}
    return filled("pieces/figure.html.j2", picture=picture, **told)


def columns(shows: Sequence[str], shows_not: Sequence[str]) -> str:
    """The two lists at the end of a report: what it shows and what it does not show."""
    if not shows or not shows_not:
        raise NotebookError("A report needs at least one entry under 'It shows' and one under 'It does not show'.")
    return filled("pieces/columns.html.j2", lists={"It shows": shows, "It does not show": shows_not})


def provenance(rows: Iterable[tuple[str, str]]) -> str:
    """The list of where everything came from, folded where it is long; values may mark ```code```."""
    return filled("pieces/provenance.html.j2", rows=list(rows), in_sight=_IN_SIGHT)

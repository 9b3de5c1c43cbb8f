"""This module writes the pieces of HTML that a page is made of: answers, figures, tables, provenance.

Everything that comes from outside, a model's name above all, is escaped here; nothing is trusted to be harmless text.
The look is that of ``templates/report.css``; JupyterLab shows the same pieces without the style sheet.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape

from lnsim.errors import NotebookError

__all__ = ["BADGES", "animation", "badge", "columns", "figure", "image", "inline", "provenance", "says", "typographic"]

BADGES = {
    "stored": ("real", "REAL WEIGHTS, stored"),
    "hub": ("real", "REAL WEIGHTS, from the Hub"),
    "replica": ("replica", "REPLICA, synthetic: tests the code, says nothing about the models"),
}
"""Class and words of the badge of each source of vectors."""

_CODE = re.compile(r"`([^`]+)`")
_ITALIC = re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
_MINUS = re.compile(r"(?<![\w.\-])-(?=\d)")


def typographic(text: str) -> str:
    """The same text with a real minus sign (U+2212) before numbers and with curved apostrophes."""
    return _MINUS.sub("−", text).replace("'", "’")


def inline(text: str) -> str:
    """Plain text as escaped HTML; ```code``` and ``*italic*`` are the only marks it knows."""
    parts = _CODE.split(str(text))
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"<code>{escape(part)}</code>"
        else:
            parts[place] = _ITALIC.sub(r"<i>\1</i>", escape(typographic(part)))
    return "".join(parts)


def badge(source: str) -> str:
    """The badge that says where the vectors come from: ``stored``, ``hub`` or ``replica``."""
    if source not in BADGES:
        raise NotebookError(f"Writing a badge: '{source}' is not a source of vectors; known are {', '.join(BADGES)}.")
    kind, words = BADGES[source]
    return f'<span class="badge {kind}">{words}</span>'


def says(rows: Iterable[tuple[str, Sequence[str | tuple[str, str, str]]]], lead: str) -> str:
    """The labelled statements at the top of a page.

    Args:
        rows: label and its statements; one of three parts is what is in sight, what is folded, and the words to unfold.
        lead: the label of the one in large type.
    """
    groups = []
    for label, texts in rows:
        kind = ' class="lead"' if label == lead else ""
        statements = "".join(f"<dd>{_statement(text)}</dd>" for text in texts)
        groups.append(f"<div{kind}><dt>{escape(label)}</dt>{statements}</div>")
    return f'<dl class="says">\n{"".join(group + chr(10) for group in groups)}</dl>'


def _statement(text: str | tuple[str, str, str]) -> str:
    if isinstance(text, str):
        return inline(text)
    seen, folded, words = text
    return (
        f'{inline(seen)} <details class="more"><summary>{escape(words)}</summary><p>{inline(folded)}</p></details>'
        if folded
        else inline(seen)
    )


def image(svg: bytes, alt: str) -> str:
    """An SVG picture as one `img` element that needs no other file."""
    if not alt.strip():
        raise NotebookError("Placing a figure: it has no alt text; say what is seen, with the numbers.")
    data = base64.b64encode(svg).decode("ascii")
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{escape(typographic(alt))}">'


def figure(svg: bytes, alt: str, label: str, claim: str, caption: str) -> str:
    """A figure with its caption; `label` is for example ``Figure 1.``, `claim` the sentence in bold."""
    heading = " ".join(part for part in (label, claim) if part)
    words = f"<figcaption><b>{inline(heading)}</b> {inline(caption)}</figcaption>"
    return f'<figure class="fig">{image(svg, alt)}{words}</figure>'


def animation(gif: bytes, alt: str, label: str, claim: str, caption: str) -> str:
    """An animated picture behind a button, with its caption: it plays only when a reader opens it."""
    if not alt.strip():
        raise NotebookError("Placing an animation: it has no alt text; say what is seen, with the numbers.")
    data = base64.b64encode(gif).decode("ascii")
    picture = f'<img src="data:image/gif;base64,{data}" alt="{escape(typographic(alt))}">'
    words = f"<figcaption><b>{inline(f'{label} {claim}')}</b> {inline(caption)}</figcaption>"
    shut = f'<details class="motion"><summary>Play the animation</summary>{picture}</details>'
    return f'<figure class="fig">{shut}{words}</figure>'


def columns(shows: Sequence[str], shows_not: Sequence[str]) -> str:
    """The two lists at the end of a report: what it shows and what it does not show."""
    if not shows or not shows_not:
        raise NotebookError("A report needs at least one entry under 'It shows' and one under 'It does not show'.")
    return (
        f'<div class="twocol"><div><h3>It shows</h3>{_items(shows)}</div>'
        f"<div><h3>It does not show</h3>{_items(shows_not)}</div></div>"
    )


def provenance(rows: Iterable[tuple[str, str]]) -> str:
    """The list of where everything came from; values may mark ```code```."""
    lines = (f"<div><dt>{escape(label)}</dt><dd>{inline(value)}</dd></div>\n" for label, value in rows)
    return f'<dl class="prov num">\n{"".join(lines)}</dl>'


def _items(texts: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{inline(text)}</li>" for text in texts) + "</ul>"

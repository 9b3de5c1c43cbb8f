"""This module turns a notebook's texts into safe HTML: Markdown with formulas, code, and HTML outputs.

Raw HTML in Markdown shows as text. Formulas become MathML, so that a page needs no script for them. HTML outputs pass
an allow-list: what is not on it is dropped or shown as text.
"""

from __future__ import annotations

import html
import re
import tomllib
from functools import cache
from typing import Any

import bleach
from latex2mathml import exceptions as formula_errors
from latex2mathml.converter import convert
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from lnsim.errors import NotebookError
from lnsim.report.markup import asset, typographic

_FORMULA_ERRORS: tuple[type[Exception], ...] = tuple(
    kind for kind in vars(formula_errors).values() if isinstance(kind, type) and issubclass(kind, Exception)
)

_ALLOWED = tomllib.loads(asset("allowed.toml"))
_TAGS, _ATTRIBUTES = frozenset(_ALLOWED["tags"]), frozenset(_ALLOWED["attributes"])
_NUMBERS = re.compile(r"-?[\d.]+( -?[\d.]+)*")
_STYLE = re.compile(r"<style\b.*?</style>", re.DOTALL | re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(svg\+xml|png|gif|jpeg);base64,[A-Za-z0-9+/=]+")
_LINK = re.compile(r"(https?://|[\w./-]*#|[\w./-]+\.(html|csv))", re.IGNORECASE)


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

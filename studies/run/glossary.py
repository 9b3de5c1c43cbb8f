"""This module links the words of a page to the glossary, which stands on the index."""

from __future__ import annotations

import re
from functools import cache

from lnsim.paths import at_home
from lnsim.report.html import prose_html, slug

_INDEX = "../index.html"  # from a page of a study
_NO_PROSE = frozenset(
    {"a", "button", "code", "h1", "h2", "h3", "head", "math", "nav", "pre", "script", "summary", "table"}
)


@cache
def glossary() -> dict[str, str]:
    """What each word of ``docs/glossary.md`` means, as HTML."""
    text = at_home("docs/glossary.md", "the glossary").read_text("utf-8")
    rows = re.findall(r"^\| \*\*(.+?)\*\*.*? \| (.+) \|$", text, re.M)
    return {word: prose_html(meaning).removeprefix("<p>").removesuffix("</p>") for word, meaning in rows}


def link_words(page: str) -> str:
    """A page of HTML in which each word of the glossary leads, where it first stands in prose, to its meaning."""
    left = {word.casefold(): f"{_INDEX}#word-{slug(word)}" for word in glossary() if len(word) > 1}
    pattern = re.compile(rf"\b({'|'.join(sorted(map(re.escape, left), key=len, reverse=True))})(?=s?\b)", re.IGNORECASE)
    parts, closed = re.split(r"(<[^>]*>)", page), ""

    def link(found: re.Match[str]) -> str:
        address = left.pop(found[0].casefold(), "")
        return f'<a class="word" href="{address}">{found[0]}</a>' if address else found[0]

    for place, part in enumerate(parts):
        tag = re.match(r"</?(\w+)", part)
        if closed:
            closed = "" if part == f"</{closed}>" else closed
        elif tag and tag[1] in _NO_PROSE and not part.startswith("</"):
            closed = tag[1]
        elif not tag:
            parts[place] = pattern.sub(link, part)
    return "".join(parts)

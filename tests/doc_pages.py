"""The pages for people: their blocks of commands, Python, files and changes to files, and the links between them.

The words behind the fence say what a block is. ``sh`` holds commands, ``python`` a session or plain code, ``toml PATH``
a file to write, ``diff PATH`` changes to a file, each ``@@`` followed by lines that stand there once, ``text`` what the
commands before it say on stderr. Marks: ``hub`` needs a Hub, ``slow`` is for the slow tests, ``fails`` ends with exit
code 1, ``patched`` needs the changes of the page to the package, ``setup`` is not run: it installs, or needs an account
or a browser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LANGUAGES = ("sh", "python", "toml", "diff", "text", "")
MARKS = ("hub", "slow", "fails", "patched", "setup")

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its marks, the path behind them, the text and the line it begins at."""

    language: str
    marks: tuple[str, ...]
    path: str
    text: str
    line: int


def pages() -> list[Path]:
    """Every page that a person is meant to read."""
    found = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*found, *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*/README.md"))]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page in their order."""
    for match in _FENCE.finditer(text):
        language, *words = match[1].split() or [""]
        marks = tuple(word for word in words if word in MARKS)
        path = " ".join(word for word in words if word not in MARKS)
        yield Block(language, marks, path, match[2], text.count("\n", 0, match.start()) + 1)


def changed(content: str, diff: str) -> str:
    """The content with the changes of a ``diff`` block; the lines that they are about must stand there exactly once."""
    for hunk in diff.split("@@\n")[1:]:
        lines = [line if line else " " for line in hunk.splitlines()]
        old = "".join(line[1:] + "\n" for line in lines if line[0] in " -")
        new = "".join(line[1:] + "\n" for line in lines if line[0] in " +")
        assert content.count(old) == 1, f"expected once, found {content.count(old)} times:\n{old}"
        content = content.replace(old, new)
    return content


def links(text: str) -> list[str]:
    """What a page links to within the repo; blocks and addresses elsewhere are left out."""
    targets = _LINK.findall(_FENCE.sub("", text))
    return [target for target in targets if "://" not in target]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as the usual viewers make them: small letters, hyphens for blanks."""
    found = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.replace(" ", "-"))
    return found

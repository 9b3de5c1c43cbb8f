"""This module runs axe-core on a page that is open in the browser.

axe-core comes from npm at one fixed version, and its hash is checked; nothing of it lies in this repo. Without npm, or
without its registry, the check cannot be made, and that is an error and no silent success.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page

VERSION = "4.14.1"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""What is asked of a page; no rule of these is switched off."""

_MOST_ROWS = 30
"""Rows of a table that axe-core sees: it takes minutes for thousands, which are made alike."""

_TRIM = """(most) => document.querySelectorAll('tbody').forEach(
  body => [...body.rows].slice(most).forEach(row => row.remove()))"""

_RUN = """(tags) => axe.run(document, {
  runOnly: {type: 'tag', values: tags}, resultTypes: ['violations'], preload: false,
}).then(found => found.violations.map(rule => ({
  id: rule.id, help: rule.help, n: rule.nodes.length, first: rule.nodes[0].html.slice(0, 160),
  why: (rule.nodes[0].failureSummary || '').split('\\n').slice(1).join(';').slice(0, 200),
})))"""


class NoAxeError(Exception):
    """axe-core could not be had; the message says why."""


def axe_source(given: Path | None = None) -> str:
    """The script of axe-core: a file that is at hand, or the one that npm fetches; NoAxeError where it is another."""
    script = given.read_bytes() if given is not None else _fetched()
    if (found := hashlib.sha256(script).hexdigest()) != SHA256:
        raise NoAxeError(f"axe.min.js of axe-core {VERSION}: expected sha256 {SHA256}, found {found}.")
    return script.decode("utf-8")


def _fetched() -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise NoAxeError(
            f"npm is not installed, so axe-core {VERSION} cannot be fetched; install it, or give --axe FILE."
        )
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", f"axe-core@{VERSION}", "--silent"]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180, check=False)
        except subprocess.TimeoutExpired as error:
            raise NoAxeError(f"npm did not fetch axe-core {VERSION} within {error.timeout:.0f} s.") from error
        packed = sorted(Path(folder).glob("axe-core-*.tgz"))
        if done.returncode or not packed:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise NoAxeError(f"npm could not fetch axe-core {VERSION}: {last}")
        with tarfile.open(packed[0]) as archive:
            member = archive.extractfile("package/axe.min.js")
            if member is None:
                raise NoAxeError(f"The package axe-core {VERSION} holds no axe.min.js.")
            return member.read()


def judge_accessibility(page: Page, axe: str) -> Iterator[str]:
    """Every rule of axe-core that a page breaks, with the first element that does."""
    page.evaluate(_TRIM, _MOST_ROWS)
    page.evaluate(axe)
    for rule in page.evaluate(_RUN, TAGS):
        yield f"axe {rule['id']} ({rule['help']}), {rule['n']} times, first {rule['first']} {rule['why']}"

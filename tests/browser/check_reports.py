"""This program opens the index and every report in headless Chromium and says what is wrong with them.

    python tests/browser/check_reports.py reports [--shots DIR] [--pdf DIR] [--chromium PATH] [--axe FILE]

Each page is opened light and dark, 1200 and 390 pixels wide. It fails on a request that leaves the page's own files, a
script error, a picture that is not painted or has no alt text, a page that scrolls sideways, a heading that skips a
level, an id used twice, a link that leads nowhere, a table without its CSV, a control that the keyboard does not reach
or that does not do what it says, anything that axe-core finds, an index whose three answers leave the first screen, and
on paper a figure that is cut, a table wider than the page or code that is unfolded. A figure's
SVG tells which of its words are cut or meet. Exit code 0: nothing found.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

from accessibility import NoAxeError, axe_source, judge_accessibility
from figure_words import faults
from keyboard import judge_filters, judge_keyboard
from playwright.sync_api import Browser, Page, sync_playwright
from printing import judge_print

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

SCRIPT = """() => {
  const images = [...document.images];
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  const seen = e => e.getClientRects().length > 0;
  const levels = [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].filter(seen)
    .filter(e => !e.closest('nav')).map(e => +e.tagName[1]);
  return {
    blank: images.filter(i => !(i.complete && i.naturalWidth > 0)).length,
    dumb: images.filter(i => !(i.alt || '').trim()).length,
    images: images.length,
    sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    repeated: ids.filter((id, n) => ids.indexOf(id) !== n).join(', '),
    levels: levels,
    links: [...document.links].map(a => a.href),
    unlinked: [...document.querySelectorAll('table > caption')].filter(e => !e.querySelector('a[href$=".csv"]'))
      .map(e => e.textContent.slice(0, 60)).join('; '),
    below: [...document.querySelectorAll('.first + div dt')].map(e => e.parentElement.getBoundingClientRect().bottom),
    errors: document.querySelectorAll('.stream.error').length,
    stray: document.querySelectorAll('.stream:not(.error), img[alt="A figure without a description"]').length,
    cut: [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1
      && !getComputedStyle(e).backgroundImage.includes('gradient')).length,
    unsaid: [...document.querySelectorAll('.scroll.long caption')]
      .filter(e => !/rows; the box scrolls/.test(e.textContent)).map(e => e.textContent.slice(0, 60)).join('; '),
    findings: [...document.querySelectorAll('.says .lead')].filter(e => e.querySelector('dt').textContent === 'Finding')
      .map(e => e.querySelector('dd').textContent),
    formulas: [...document.querySelectorAll('main .md')].filter(e => /\\$[^$]+\\$/.test(e.innerText)).length,
  };
}"""


FAULTS = {
    "blank": "{blank} of {images} pictures are not painted",
    "dumb": "{dumb} pictures have no alt text",
    "sideways": "the page is {sideways} pixels wider than the window",
    "repeated": "ids used twice: {repeated}",
    "errors": "{errors} cells show an error",
    "stray": "{stray} cells show a value or a picture of their own, which is no part of the page",
    "formulas": "{formulas} texts show a formula as its source",
    "cut": "{cut} tables are wider than their box without a sign of it",
    "unsaid": "boxes that scroll and do not say how many rows there are: {unsaid}",
    "unlinked": "tables without a link to their CSV: {unlinked}",
}
"""What is said of a fact that should be nought or empty."""


@dataclass(frozen=True, slots=True)
class View:
    """One way of looking at a page."""

    name: str
    width: int
    height: int
    scheme: str


MOST_WORDS, MOST_NUMBERS = 40, 4

VIEWS = (
    View("light", 1200, 800, "light"),
    View("dark", 1200, 800, "dark"),
    View("390", 390, 844, "light"),
    View("390-dark", 390, 844, "dark"),
)

BY_AXE = (VIEWS[0], VIEWS[3])
"""Views that axe-core looks at, which takes seconds a page: both widths and both themes are among them."""


def main(words: list[str] | None = None) -> int:
    """Check every page below the folder; returns the exit code."""
    parser = argparse.ArgumentParser(description="Open every report in Chromium and check it.")
    parser.add_argument("reports", type=Path, help="folder that holds index.html")
    parser.add_argument("--shots", type=Path, help="write a screenshot of every page and view into this folder")
    parser.add_argument("--pdf", type=Path, help="write every page as PDF into this folder")
    parser.add_argument("--axe", type=Path, help="axe.min.js of the expected version (fetched by npm)")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser (/usr/bin/chromium)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="browsers at a time (2)")
    options = parser.parse_args(words)
    pages = sorted(options.reports.rglob("*.html"))
    if not (options.reports / "index.html").is_file() or len(pages) < 2:
        print(f"{options.reports}: expected index.html and at least one report; run run_all.py first.")
        return 1
    try:
        axe = axe_source(options.axe)
    except NoAxeError as error:
        print(f"Accessibility was not checked: {error}")
        return 1
    shares = [pages[first :: options.jobs] for first in range(options.jobs)]  # pages of every kind in each share
    with ProcessPoolExecutor(options.jobs) as pool:
        check = partial(check_pages, chromium=options.chromium, axe=axe, shots=options.shots, pdf=options.pdf)
        found = sorted(line for lines in pool.map(check, shares) for line in lines)
        figures = sorted(options.reports.rglob("figures/*.svg"))
        found += [fault for faults in pool.map(figure_faults, figures) for fault in faults]
    for line in found:
        print(line)
    print(f"{len(pages)} pages in {len(VIEWS)} views: {len(found) or 'no'} findings.")
    return 1 if found else 0


def figure_faults(path: Path) -> list[str]:
    """What is wrong with the words of a figure."""
    return [f"{path.parents[1].name}/{fault}" for fault in faults(path)]


def check_pages(pages: list[Path], chromium: str, axe: str, shots: Path | None, pdf: Path | None) -> list[str]:
    """Every finding on these pages, in a browser of their own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        found = [line for path in pages for line in check_page(browser, path.resolve(), axe, shots, pdf)]
        browser.close()
    return found


def check_page(browser: Browser, path: Path, axe: str, shots: Path | None, pdf: Path | None) -> Iterator[str]:
    """Every finding on one page: in every view, by keyboard, on paper."""
    for view in VIEWS:
        size = {"width": view.width, "height": view.height}
        context = browser.new_context(viewport=size, color_scheme=view.scheme)
        page = context.new_page()
        noted: list[str] = []
        watch(page, noted)
        page.on(
            "console",
            lambda message, into=noted: message.type == "error" and into.append(f"console: {message.text[:200]}"),
        )
        page.goto(path.as_uri(), wait_until="load")
        found = list(judge(page, path, view))
        if shots is not None:
            shots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=shots / f"{path.parent.name}-{path.stem}-{view.name}.png", full_page=True)
        if view is VIEWS[0]:
            found += [*judge_keyboard(page), *judge_print(page, path, pdf)]
            page.emulate_media(media="screen", color_scheme=view.scheme)
            page.set_viewport_size(size)
        if view in BY_AXE:
            found += judge_accessibility(page, axe)  # last, since it takes rows out of long tables
        context.close()
        for finding in noted + found:
            yield f"{path.parent.name}/{path.name}, {view.name}: {finding}"


def watch(page: Page, noted: list[str], own: str = "file:") -> None:
    """Note every script error and every request that is not for the page's own files; let none of the latter out."""

    def route(request_route) -> None:  # type: ignore[no-untyped-def]
        asked = request_route.request.url
        if asked.startswith((own, "data:", "blob:")):
            request_route.continue_()
        else:
            noted.append(f"asked for {asked[:120]}")
            request_route.abort()

    page.route("**/*", route)
    page.on("pageerror", lambda error: noted.append(f"script error: {str(error)[:200]}"))


def judge(page: Page, path: Path, view: View) -> Iterator[str]:
    """What is wrong with a page that is open."""
    facts = page.evaluate(SCRIPT)
    yield from (text.format(**facts) for name, text in FAULTS.items() if facts[name])
    yield from judge_findings(facts["findings"])
    if facts["below"] and (last := max(facts["below"])) > view.height:
        yield f"the answers end {last - view.height:.0f} pixels below the first screen"
    yield from judge_headings(facts["levels"])
    yield from judge_filters(page)
    for link in sorted(set(facts["links"])):
        if not resolves(link, path):
            yield f"a link leads nowhere: {link}"


def judge_findings(findings: list[str]) -> Iterator[str]:
    """A finding is one sentence: at most 40 words and four numbers, names and N(0, 1) not counted."""
    for finding in findings:
        plain = re.sub(r"\|?N\([^)]*\)\|?", "", finding)
        words, numbers = len(finding.split()), re.findall(r"(?<![\w.-])\d[\d,]*(?:\.\d+)?(?![\w-])", plain)
        if words > MOST_WORDS or len(numbers) > MOST_NUMBERS:
            yield f"a finding of {words} words and {len(numbers)} numbers: {finding[:80]}"


def judge_headings(levels: list[int]) -> Iterator[str]:
    """One h1, and no level skipped on the way down."""
    if levels.count(1) != 1:
        yield f"{levels.count(1)} headings of level 1, expected one"
    for before, after in pairwise(levels):
        if after > before + 1:
            yield f"a heading of level {after} follows one of level {before}"


def resolves(link: str, path: Path) -> bool:
    """True where a link's file exists and, where it names a place, has that id."""
    address, place = urldefrag(link)
    parts = urlparse(address)
    if parts.scheme != "file":
        return parts.scheme in ("http", "https")
    target = Path(unquote(parts.path))
    if not target.is_file():
        return False
    return not place or f'id="{unquote(place)}"' in text_of(target)


@cache
def text_of(target: Path) -> str:
    """A page's source."""
    return target.read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())

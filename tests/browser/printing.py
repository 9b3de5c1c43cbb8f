"""This module prints a page to PDF and measures it as it lies on paper.

A figure is whole on one page where it is no higher than the page and may not be broken; nothing may be wider than the
paper; code stays folded. Pages are A4, with the margins of the style sheet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page

PAPER = (178 * 96 / 25.4, 261 * 96 / 25.4)
"""Width and height in CSS pixels of what margins of 16 and 18 mm leave of A4."""

_MEASURE = """([width, height]) => {
  const wrong = [], say = (element, what) => wrong.push(
    `${(element.querySelector('figcaption, caption') ?? element).textContent.trim().slice(0, 60)}: ${what}`);
  const seen = element => element.getClientRects().length > 0;
  for (const figure of [...document.querySelectorAll('figure')].filter(seen)) {
    const box = figure.getBoundingClientRect();
    if (getComputedStyle(figure).breakInside !== 'avoid') say(figure, 'may be cut by the end of a page');
    if (box.height > height) say(figure, `is ${Math.round(box.height)} pixels high, more than a page`);
  }
  for (const table of [...document.querySelectorAll('table')].filter(seen)) {
    const box = table.getBoundingClientRect();
    if (box.right > width + 1) say(table, `ends ${Math.round(box.right - width)} pixels beside the paper`);
    const row = [...table.rows].find(row => getComputedStyle(row).breakInside !== 'avoid' && seen(row));
    if (row) say(table, 'its rows may be cut by the end of a page');
    if (getComputedStyle(table.tHead).display !== 'table-header-group' && !table.matches('.cards'))
      say(table, 'its head does not stand on every page');
  }
  const open = [...document.querySelectorAll('details.code pre')].filter(seen);
  if (open.length) wrong.push(`${open.length} blocks of code are unfolded`);
  const shown = [...document.querySelectorAll('.bar, .tools, .contents, .skip')].filter(seen);
  if (shown.length) wrong.push(`${shown.length} controls are printed`);
  return {wrong, height: document.documentElement.scrollHeight};
}"""


def judge_print(page: Page, path: Path, into: Path | None = None) -> Iterator[str]:
    """What is wrong with a page on paper; its PDF is kept in a folder where one is given."""
    page.emulate_media(media="print", color_scheme="light")
    page.set_viewport_size({"width": round(PAPER[0]), "height": round(PAPER[1])})
    facts = page.evaluate(_MEASURE, list(PAPER))
    yield from facts["wrong"]
    printed = page.pdf(format="A4", prefer_css_page_size=True)
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        (into / f"{path.parent.name}-{path.stem}.pdf").write_bytes(printed)
    n_pages, least = len(re.findall(rb"/Type\s*/Page\b", printed)), facts["height"] / PAPER[1]
    if not least - 1 <= n_pages <= 2 * least + 2:
        yield f"{n_pages} pages of paper for a height of {least:.1f}"

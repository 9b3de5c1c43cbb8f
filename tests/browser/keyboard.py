"""This module uses a page as a reader without a mouse does: skip link, filters, sorting, boxes that scroll.

Keys are pressed, not handlers called, wherever a key is what a reader would use.
"""

from __future__ import annotations

from collections.abc import Iterator

from playwright.sync_api import Page

FILTERS = """() => [...document.querySelectorAll('.tools')].map(tools => {
  const table = tools.nextElementSibling.querySelector('table'), rows = [...table.tBodies[0].rows];
  const shown = () => rows.filter(row => row.getClientRects().length).length;
  const buttons = [...tools.querySelectorAll('button')], field = tools.querySelector('input'), wrong = [];
  const name = tools.getAttribute('aria-label');
  const expect = (what, found, wanted) => {
    if (found !== wanted) wrong.push(`${name}: ${what} shows ${found} rows, not ${wanted}`);
  };
  for (const button of buttons) {
    button.focus(); button.click();
    expect(button.textContent, shown(), +button.textContent.match(/(\\d+)$/)[1]);
    const pressed = button.getAttribute('aria-pressed') === 'true';
    if (document.activeElement !== button || !pressed) wrong.push(`${name}: ${button.textContent} is not pressed`);
  }
  if (field) {
    const type = words => { field.value = words; field.dispatchEvent(new Event('input')); };
    const seen = rows.find(row => row.getClientRects().length) ?? rows[0], before = shown();
    type(seen.cells[0].textContent.trim());
    if (shown() < 1 || shown() > before) wrong.push(`${name}: words show ${shown()} of ${before} rows`);
    type('no such words'); expect('words that are nowhere', shown(), 0);
    type('');
  }
  if (buttons.length) buttons[0].click();
  expect('no filter', shown(), rows.length);
  return wrong;
}).flat()"""


def judge_filters(page: Page) -> Iterator[str]:
    """Every filter of a table: a button shows as many rows as it says, words narrow further, and all rows come back."""
    yield from page.evaluate(FILTERS)


_CONTROLS = """() => {
  const seen = e => e.getClientRects().length > 0, wrong = [];
  for (const box of [...document.querySelectorAll('.scroll, .eq')].filter(seen)) {
    const name = box.getAttribute('aria-label')
      ?? document.getElementById(box.getAttribute('aria-labelledby'))?.textContent;
    const where = (name ?? box.textContent).trim().slice(0, 60);
    if (box.tabIndex !== 0 || !box.getAttribute('role') || !name)
      wrong.push(`${where}: its box is not reached by keyboard, or has no name`);
    box.focus({focusVisible: true, preventScroll: true});
    if (document.activeElement !== box || getComputedStyle(box).outlineStyle === 'none')
      wrong.push(`${where}: no focus is seen on its box`);
  }
  for (const head of document.querySelectorAll('th')) if (!head.scope) wrong.push(`${head.textContent}: no scope`);
  for (const table of document.querySelectorAll('table')) if (!table.caption) wrong.push('a table has no caption');
  if (!document.documentElement.lang) wrong.push('the page names no language');
  if (document.querySelectorAll('main').length !== 1) wrong.push('the page has not one main part');
  return wrong;
}"""

_SORTED = """() => {
  const head = document.activeElement.closest('th'), table = head.closest('table');
  return {sort: head.getAttribute('aria-sort'), first: table.tBodies[0].rows[0].textContent,
          others: table.querySelectorAll('[aria-sort]').length};
}"""


def judge_keyboard(page: Page) -> Iterator[str]:
    """What is wrong with a page for a reader who uses the keys."""
    page.reload(wait_until="load")
    page.keyboard.press("Tab")
    skip = page.evaluate("() => [document.activeElement.className, document.activeElement.getBoundingClientRect().top]")
    if skip[0] != "skip" or skip[1] < 0:
        yield f"the first Tab leads to '{skip[0]}' and not to a skip link in sight"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    if not page.evaluate("() => document.activeElement.closest('main, footer') !== null"):
        yield "the skip link does not lead into the content"
    yield from page.evaluate(_CONTROLS)
    yield from _sorting(page)
    yield from _filtering(page)


def _sorting(page: Page) -> Iterator[str]:
    """The last header of the first table that sorts: upwards, downwards, its own order."""
    heads = page.locator("table.sorts thead tr:last-child th button")
    if not heads.count():
        return
    head = heads.first
    head.focus()
    before = page.evaluate(_SORTED)["first"]
    for expected in ("ascending", "descending", None):
        page.keyboard.press("Enter")
        state = page.evaluate(_SORTED)
        if state["sort"] != expected or state["others"] != (expected is not None):
            yield f"sorting by key: expected aria-sort {expected}, found {state['sort']} on {state['others']} headers"
    if state["first"] != before:
        yield "sorting by key: the third press does not give the table its own order back"


def _filtering(page: Page) -> Iterator[str]:
    """The last button of the first filter, by the space bar; then the first one again."""
    buttons = page.locator(".tools").first.locator("button")
    if not page.locator(".tools").count() or not buttons.count():
        return
    for button in (buttons.last, buttons.first):
        button.focus()
        page.keyboard.press("Space")
        if button.get_attribute("aria-pressed") != "true":
            yield f"filtering by key: '{button.text_content()}' is not pressed"
    pressed = [text for text in buttons.all_text_contents() if text[:1] != text[:1].strip("Γ")]
    if pressed:
        yield f"a label that begins with γ was given a capital: {pressed[0]}"

"""Tests of the pieces of HTML that pages are made of."""

from __future__ import annotations

import pytest

from lnsim.errors import NotebookError
from lnsim.report import markup

HOSTILE = '<script>alert("x")</script>'


@pytest.mark.parametrize(
    "html",
    [
        markup.inline(HOSTILE),
        markup.inline(f"`{HOSTILE}`"),
        markup.says([(HOSTILE, [HOSTILE])], "Found"),
        markup.figure(b"<svg/>", HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        markup.columns([HOSTILE], [HOSTILE]),
        markup.provenance([(HOSTILE, HOSTILE)]),
    ],
    ids=["text", "code", "says", "figure", "columns", "provenance"],
)
def test_a_script_in_a_name_shows_as_text(html: str) -> None:
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_alt_text_cannot_leave_its_attribute() -> None:
    assert '" onerror="' not in markup.image(b"<svg/>", 'a" onerror="alert(1)')


def test_marks_make_code_and_italics() -> None:
    assert markup.inline("see `a_b*c*` and *r*.") == "see <code>a_b*c*</code> and <i>r</i>."


def test_a_product_is_no_italic() -> None:
    assert markup.inline("2 * 3 * 4") == "2 * 3 * 4"


@pytest.mark.parametrize(
    ("given", "expected"),
    [("-0.5 to -3", "−0.5 to −3"), ("2024-05-01", "2024-05-01"), ("MiniLM-L6-v2", "MiniLM-L6-v2"), ("p-1", "p-1")],
)
def test_only_negative_numbers_get_a_minus_sign(given: str, expected: str) -> None:
    assert markup.typographic(given) == expected


def test_code_keeps_its_hyphens() -> None:
    assert markup.inline("`--set seed=-1`") == "<code>--set seed=-1</code>"


def test_the_lead_statement_is_marked() -> None:
    html = markup.says([("Finding", ["No."]), ("Trust", ["One.", "Two."])], "Finding")
    assert html.count('class="lead"') == 1
    assert html.count("<dd>") == 3


@pytest.mark.parametrize(
    ("source", "words"),
    [("stored", "REAL WEIGHTS, stored"), ("hub", "REAL WEIGHTS, from the Hub"), ("replica", "REPLICA, synthetic")],
)
def test_a_badge_names_the_source(source: str, words: str) -> None:
    assert words in markup.badge(source)


def test_an_unknown_source_has_no_badge() -> None:
    with pytest.raises(NotebookError, match="'auto' is not a source of vectors; known are stored, hub, replica"):
        markup.badge("auto")


def test_a_figure_without_alt_text_is_refused() -> None:
    with pytest.raises(NotebookError, match="it has no alt text"):
        markup.image(b"<svg/>", "  ")


def test_both_columns_need_an_entry() -> None:
    with pytest.raises(NotebookError, match="'It does not show'"):
        markup.columns(["a"], [])

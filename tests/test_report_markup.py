"""Tests of the pieces of HTML that pages are made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lnsim.errors import NotebookError
from lnsim.report import markup


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("-0.5 to -3", "−0.5 to −3"),
        ("2024-05-01", "2024-05-01"),
        ("MiniLM-L6-v2", "MiniLM-L6-v2"),
        ("p-1", "p-1"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("`--set seed=-1`", "<code>--set seed=-1</code>"),
        ("see `a_b*c*` and *r*.", "see <code>a_b*c*</code> and <i>r</i>."),
    ],
)
def test_only_negative_numbers_get_a_minus_sign_and_only_marks_make_code_and_italics(given: str, expected: str) -> None:
    assert markup.inline(given) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: markup.badge("auto"), "'auto' is not a source of .*; known are stored, hub, measured, given, replica"),
        (lambda: markup.image(b"<svg/>", "  "), "it has no alt text"),
        (lambda: markup.columns(["a"], []), "'It does not show'"),
    ],
    ids=["an unknown source", "no alt text", "an empty column"],
)
def test_a_piece_that_lacks_something_is_refused(call: Callable[[], str], message: str) -> None:
    with pytest.raises(NotebookError, match=message):
        call()

"""Tests of Markdown, formulas and HTML outputs on a report."""

from __future__ import annotations

import pytest

from lnsim.report.prose import clean_html, prose_html, slug


def test_a_formula_becomes_mathml_in_its_own_box_or_in_the_line() -> None:
    html = prose_html(r"Let" + "\n\n" + r"$$c = \frac{1}{2}$$" + "\n\nbe so.")
    assert '<div class="eq" role="group"' in html
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in html
    assert "<p><div" not in html
    assert "$" not in html
    assert 'display="inline"' in prose_html("with $c_a$ as above")
    assert "study’s r is −0.5" in prose_html("study's r is -0.5")


def test_headings_of_sections_get_ids() -> None:
    assert '<h2 id="what-this-does-and-does-not-show">' in prose_html("## What this does and does not show")
    assert slug("γ") == "section"


def test_pieces_of_a_page_pass_the_allow_list_unchanged() -> None:
    piece = (
        '<div class="scroll" role="region" aria-labelledby="cap-1" tabindex="0"><table class="dataframe">'
        '<caption id="cap-1"><b>T</b></caption><thead><tr><td></td><th scope="col">a</th></tr></thead></table></div>'
    )
    picture = '<img src="data:image/svg+xml;base64,PHN2Zy8+" alt="a line">'
    assert clean_html(piece + picture) == piece + picture


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '<img src="https://example.org/x.png" alt="x">',
        '<img src="data:text/html;base64,AAAA" alt="x">',
        '<a href="javascript:alert(1)">x</a>',
        '<a href="data:text/html,x">x</a>',
        '<p onclick="alert(1)">x</p>',
        "<iframe src=x></iframe>",
        "<style>@import 'x'</style>",
        '<p style="background:url(x)">x</p>',
        '<svg viewBox="0 0 1 1" onload="alert(1)"><script>alert(1)</script><circle cx="url(x)"></circle></svg>',
        '<svg><a href="javascript:alert(1)">x</a><image src="x"></image><style>@import "x"</style></svg>',
    ],
)
def test_what_could_load_or_run_is_dropped(hostile: str) -> None:
    cleaned = clean_html(hostile)
    for sign in ("<script", "src=", "href=", "onclick", "onload", "url(", "<iframe", "@import", "style="):
        assert sign not in cleaned

"""Tests of reports made from executed notebooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from report_notebooks import PICTURE, answer, code, display, markdown, write

from lnsim.errors import NotebookError
from lnsim.report.html import clean_html, prose_html, read_report, slug, write_report
from lnsim.report.notebooks import Outcome
from studies.run.glossary import link_words
from studies.run.index import read_entry

FIGURE = f'<figure class="fig">{PICTURE}<figcaption><b>Figure 1. A line.</b> Drawn.</figcaption></figure>'


def executed(folder: Path, *more: object, **changes: object) -> Path:
    cells = [
        markdown("# Is it fair?"),
        markdown("## Question\n\nWe ask with $c^2$."),
        code("study = 1\nseed = 2"),
        markdown("## Result"),
        code("page.figure(...)", display({"text/html": FIGURE, "text/plain": ""})),
        code("page.answer(...)", answer(**changes)),
        *more,
    ]
    return write(folder / "01_fair.ipynb", *cells)  # type: ignore[arg-type]


def html_of(path: Path, before: Outcome | None = None, after: Outcome | None = None) -> str:
    return write_report(read_report(path), path.with_suffix(".html"), before, after).read_text("utf-8")


def test_the_answer_stands_at_the_top_before_its_sections_and_the_page_needs_no_other_file(tmp_path: Path) -> None:
    html = html_of(executed(tmp_path))
    assert html.index("No: it is 0.03.") < html.index('id="question"')
    assert html.count("No: it is 0.03.") == 1
    assert "the answer in JupyterLab" not in html
    assert re.findall(r"<h1>(.*?)</h1>", html) == ["Is it fair?"]
    assert html.count("<section") == html.count("</section>") == 2
    assert re.findall(r'<li><a href="#([^"]+)">', html) == ["question", "result"]
    assert "<summary>Code, 2 lines</summary>" in html
    assert "<summary>Code, 1 line</summary>" in html
    assert html.count("<details") == 3
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', html)
    assert not re.findall(r"<link(?! rel=\"icon\")|@import|url\((?!data:)", html)
    assert "<math" in html
    assert "Previous" not in html


def test_the_thumbnail_and_a_marked_figure_are_kept_for_the_index(tmp_path: Path) -> None:
    report = read_entry(executed(tmp_path))
    assert report.thumbnail == PICTURE
    assert report.headline == ""
    cell = code("x", display({"text/html": FIGURE}, {"lnsim": {"headline": True}}), display({"text/plain": ""}))
    assert read_entry(executed(tmp_path, cell)).headline == FIGURE.replace("Figure 1. ", "")
    assert '<pre class="cell stream"></pre>' not in html_of(executed(tmp_path, cell))
    assert html_of(executed(tmp_path)).count("<img") == 1


def test_neighbours_stand_in_the_bar_and_at_the_foot_with_their_questions(tmp_path: Path) -> None:
    before, after = (Outcome(n, f"{n}_a", question, "done", 1.0) for n, question in (("00", "?"), ("05", "<What>?")))
    html = html_of(executed(tmp_path), before, after)
    assert '<a href="00_a.html">Previous: 00</a>' in html
    assert '<a href="05_a.html"><small>Next</small><b>05 &lt;What&gt;?</b></a>' in html
    assert "../index.html#small_models" in html
    assert '<a href="provenance.html">provenance</a>' in html


def test_only_a_replica_carries_the_banner(tmp_path: Path) -> None:
    pages = [html_of(executed(tmp_path, source=source)) for source in ("stored", "hub", "replica")]
    assert ['class="banner"' in page for page in pages] == [False, False, True]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([markdown("# Q")], r"01_a.ipynb: it gives no answer; call page.answer"),
        ([code("x", answer())], "it has no first heading"),
        (None, r"Reading the executed notebook 01_a.ipynb"),
    ],
    ids=["no answer", "no question", "no notebook"],
)
def test_what_is_no_report_is_named(tmp_path: Path, cells: list[Any] | None, message: str) -> None:
    path = write(tmp_path / "01_a.ipynb", *(cells or []))
    if cells is None:
        path.write_text("{")
    with pytest.raises(NotebookError, match=message):
        read_report(path)


def test_models_that_are_missing_are_named_at_the_top_with_their_reasons(tmp_path: Path) -> None:
    html = html_of(executed(tmp_path, absent=["Qwen: nothing is stored"]))
    assert html.index("<dt>Missing</dt><dd>Qwen: nothing is stored") < html.index('id="question"')
    assert "<dt>Missing</dt>" not in html_of(executed(tmp_path))


def test_a_word_of_the_glossary_leads_to_its_meaning_where_it_first_stands_in_prose() -> None:
    text = "<p>Each role, and <code>role</code> in a Lineage.</p><p>roles, lineages</p>"
    page = f"<head><title>role</title></head><h2>A role</h2>{text}"
    linked = link_words(page)
    assert linked.count("<a ") == 2
    assert '<p>Each <a class="word" href="../index.html#word-role">role</a>, and <code>role</code>' in linked
    assert '<a class="word" href="../index.html#word-lineage">Lineage</a>.</p><p>roles, lineages</p>' in linked


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
        '<img src="https://example.org/x.png" alt="x">',
        '<img src="data:text/html;base64,AAAA" alt="x">',
        '<a href="javascript:alert(1)">x</a>',
        '<svg viewBox="0 0 1 1" onload="alert(1)"><script>alert(1)</script><circle cx="url(x)"></circle></svg>',
        '<svg><a href="javascript:alert(1)">x</a><image src="x"></image><style>@import "x"</style></svg>',
    ],
)
def test_what_could_load_or_run_is_dropped(hostile: str) -> None:
    cleaned = clean_html(hostile)
    for sign in ("<script", "src=", "href=", "onclick", "onload", "url(", "<iframe", "@import", "style="):
        assert sign not in cleaned

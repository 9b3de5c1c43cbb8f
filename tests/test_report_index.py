"""Tests of the index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from report_notebooks import PICTURE, answer, code, display, markdown, write

from lnsim.study.catalog import load_study
from studies.run.index import Entry, Section, read_entry, write_index
from studies.run.record import Recorded, StudyRun

FIGURE = f'<figure class="fig">{PICTURE}<figcaption>Top.</figcaption></figure>'
TABLE = '<div class="scroll"><table><caption><b>Table 8. Pairs.</b></caption></table></div>'


def report(folder: Path, number: str, headline_figure: bool = False, **changes: Any) -> Entry:
    figure = display({"text/html": FIGURE}, {"lnsim": {"headline": headline_figure}})
    cells = [markdown(f"# Question {number}?"), code("x", figure, answer(number=number, **changes))]
    return read_entry(write(folder / f"{number}_a.ipynb", *cells))


def outcome(number: str, error: str | None = None) -> Recorded:
    return Recorded(number, f"{number}_a", f"Question {number}?", "failed" if error else "done", 3.14, error)


def index(folder: Path, *found: Entry, study: str = "small_models") -> str:
    """The index over one run of a study, with these reports."""
    outcomes = {one.page["number"]: outcome(one.page["number"]) for one in found}
    run = StudyRun(study, str(found[0].page["source"]) if found else "stored", outcomes)
    return index_of(folder, run, dict(zip(outcomes, found, strict=True)))


def index_of(folder: Path, run: StudyRun, reports: dict[str, Entry]) -> str:
    return write_index([Section(load_study(run.study), run, reports)], folder / "index.html").read_text("utf-8")


def test_an_entry_has_question_finding_picture_badge_state_and_link_and_needs_no_other_file(tmp_path: Path) -> None:
    html = index(tmp_path, report(tmp_path, "01"))
    entry = re.search(r'<li class="entry" id="small_models-01">.*?</li>', html, re.DOTALL)
    assert entry is not None
    assert '<a href="small_models/01_a.html">Question 01?</a>' in entry[0]
    assert "<p>No: it is 0.03.</p>" in entry[0]
    assert PICTURE in entry[0]
    assert 'data-state="done">done, 3.1 s<' in entry[0]
    assert "REAL WEIGHTS, stored" in html
    assert set(re.findall(r'href="([^"#][^"]*)"', html)) == {"data:,", "index.html", "small_models/01_a.html"}
    assert html.count("<h1>") == 1
    assert '<div class="answer">' not in html
    (tmp_path / "small_models").mkdir()
    (tmp_path / "small_models" / "provenance.html").touch()
    html = index(tmp_path, report(tmp_path, "01", headline_figure=True))
    assert '<div class="answer">' in html
    assert '<a href="small_models/provenance.html">' in html


def test_a_failed_notebook_is_named_with_its_error_and_has_no_link(tmp_path: Path) -> None:
    run = StudyRun("small_models", "stored", {"05": outcome("05", "ValueError in cell 7: <b>")})
    html = index_of(tmp_path, run, {})
    assert 'data-state="failed">failed: ValueError in cell 7: &lt;b&gt;<' in html
    assert "05_a.html" not in html


def test_the_top_answers_in_order_the_dispute_what_holds_in_general_trust_and_what_to_do(tmp_path: Path) -> None:
    about = {"03": ("general", "Cosine cannot tell."), "13": ("trust", "All right."), "14": ("dispute", "It is 0.99.")}
    pages = [report(tmp_path, number, about=kind, headline=text) for number, (kind, text) in about.items()]
    html = index(tmp_path, report(tmp_path, "01"), *pages)
    said = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html)[:4]
    assert [label for label, _ in said] == ["The dispute", "In general", "Trust", "Your own"]
    for (_, text), number in zip(said[:3], ("14", "03", "13"), strict=True):
        assert text == f'{about[number][1]} <a href="#small_models-{number}">small_models {number}</a>'
    assert "lnsim compare A B --report DIR" in said[3][1]
    assert '<div class="lead"><dt>The dispute</dt>' in html
    assert "61 vectors of 1 published checkpoint, real weights all." in html
    own = {"a": {"source": "own", "commit": None, "n_vectors": 5, "published": False}}
    three = [report(tmp_path, "01"), report(tmp_path, "02", models=own), report(tmp_path, "04")]
    html = index(tmp_path, *three)  # no headline: the findings, of two at most
    assert re.findall(r"<dd>Question (\d\d)\? No: it is 0.03\.", html) == ["04", "02"]
    assert "66 vectors of 1 published checkpoint and 1 checkpoint made for a study, real weights all." in html


def test_what_a_study_needs_is_its_first_line_and_each_reason_stands_once(tmp_path: Path) -> None:
    reasons = {"00": "needs the vectors", "01": "needs the vectors", "09": "it needs `zoo`", "all": "no vectors:"}
    run = StudyRun("small_models", "auto", {}, reasons, command="python run_all.py --source hub")
    html = index_of(tmp_path, run, {})
    first = html.partition('id="small_models"')[2].partition("<p>")[0]
    assert '<p class="needs">No vectors: <code>python run_all.py --source hub</code>, a few megabytes.' in first
    assert '<li><span class="num">00, 01</span> Needs the vectors.</li>' in html
    assert '<li><span class="num">09</span> It needs <code>zoo</code>.</li>' in html


def showing(folder: Path, number: str, shown: dict[str, str], source: str = "stored") -> Entry:
    """A report with pieces that are marked for the index."""
    outputs = [display({"text/html": html}, {"lnsim": {mark: True}}) for html, mark in shown.items()]
    cells = [markdown(f"# Question {number}?"), code("x", *outputs, answer(number=number, source=source))]
    return read_entry(write(folder / f"{number}_a.ipynb", *cells))


def with_pairs(folder: Path, source: str = "stored") -> Entry:
    linked = TABLE.replace("</b>", '</b> <a href="tables/03_pairs.csv">03_pairs.csv</a>')
    return showing(folder, "03", {FIGURE: "headline", linked: "headline_table"}, source)


def test_a_replica_has_its_banner_and_no_headline_pairs_or_verdicts_of_it_stand_on_the_index(tmp_path: Path) -> None:
    first = report(tmp_path, "01", source="replica", headline="Synthetic.")
    html = index(tmp_path, first, with_pairs(tmp_path, "replica"), with_verdicts(tmp_path, "replica"))
    for unwanted in ("Synthetic.", "#pairs", "Top.", "#verdicts", "<b>Verdicts.</b>"):
        assert unwanted not in html
    assert "REPLICA, synthetic" in html
    assert 'class="banner"' in html
    assert "No report on real weights was made yet" in html


def with_verdicts(folder: Path, source: str = "stored") -> Entry:
    html = TABLE.replace("<caption>", '<caption id="cap-1">').replace("Pairs.", "Verdicts.")
    return showing(folder, "13", {html: "verdicts"}, source)


def test_verdicts_stand_before_the_pairs_and_lead_to_their_rules(tmp_path: Path) -> None:
    html = index(tmp_path, with_pairs(tmp_path), with_verdicts(tmp_path))
    assert html.index('<h2 id="verdicts">') < html.index('<h2 id="pairs">The pairs, and what chance gives</h2>')
    assert "<b>Verdicts.</b>" in html
    assert '<b>Pairs.</b> <a href="small_models/tables/03_pairs.csv">' in html
    place = re.search(r'<a href="#([^"]+)">How these sentences are chosen</a>: report 13 of (\w+)\.', html)
    assert place is not None
    assert f'id="{place[1]}"' in html

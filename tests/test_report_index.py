"""Tests of the index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from report_notebooks import PICTURE, answer, code, display, markdown, write

from lnsim.report.html import Report, read_report
from lnsim.report.index import Section, write_index
from lnsim.report.record import Outcome, StudyRun
from lnsim.study.catalog import load_study

FIGURE = f'<figure class="fig">{PICTURE}<figcaption>Top.</figcaption></figure>'


TABLE = '<div class="scroll"><table><caption><b>Table 8. Pairs.</b></caption></table></div>'


def report(folder: Path, number: str, headline_figure: bool = False, **changes: Any) -> Report:
    figure = display({"text/html": FIGURE}, {"lnsim": {"headline": headline_figure}})
    cells = [markdown(f"# Question {number}?"), code("x", figure, answer(number=number, **changes))]
    return read_report(write(folder / f"{number}_a.ipynb", *cells))


def outcome(number: str, error: str | None = None) -> Outcome:
    return Outcome(number, f"{number}_a", f"Question {number}?", "failed" if error else "done", 3.14, error)


def index(folder: Path, *found: Report, study: str = "small_models") -> str:
    """The index over one run of a study, with these reports."""
    outcomes = {one.page["number"]: outcome(one.page["number"]) for one in found}
    run = StudyRun(study, str(found[0].page["source"]) if found else "stored", outcomes)
    return index_of(folder, run, dict(zip(outcomes, found, strict=True)))


def index_of(folder: Path, run: StudyRun, reports: dict[str, Report]) -> str:
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
    assert '<div class="answer">' in index(tmp_path, report(tmp_path, "01", headline_figure=True))


def test_a_failed_notebook_is_named_with_its_error_and_has_no_link(tmp_path: Path) -> None:
    run = StudyRun("small_models", "stored", {"05": outcome("05", "ValueError in cell 7: <b>")})
    html = index_of(tmp_path, run, {})
    assert 'data-state="failed">failed: ValueError in cell 7: &lt;b&gt;<' in html
    assert "05_a.html" not in html


def test_headlines_make_the_top_with_their_trust(tmp_path: Path) -> None:
    second = report(tmp_path, "05", headline="Cosine cannot tell.", trust="Two.")
    html = index(tmp_path, report(tmp_path, "01"), second)
    assert '<div class="lead"><dt>Found</dt><dd>Cosine cannot tell.</dd></div>' in html
    assert "<dt>Trust</dt><dd>Two.</dd>" in html
    assert "61 vectors of 1 published checkpoint, real weights all." in html
    own = {"a": {"source": "own", "commit": None, "n_vectors": 5, "published": False}}
    html = index(tmp_path, report(tmp_path, "01"), report(tmp_path, "02", models=own))
    assert "66 vectors of 1 published checkpoint and 1 checkpoint made for a study, real weights all." in html
    html = index(tmp_path, report(tmp_path, "03", headline="Cosine cannot.\nIt is 0.99."))
    assert "<dt>Found</dt><dd>Cosine cannot.</dd><dd>It is 0.99.</dd>" in html  # two statements
    html = index(tmp_path, report(tmp_path, "00"), report(tmp_path, "01"))  # without headlines: findings and questions
    assert "<dt>Found</dt><dd>Question 01? No: it is 0.03.</dd><dd>Question 00?" in html


def test_a_second_study_has_its_last_headline_before_the_first_study_has_its_second(tmp_path: Path) -> None:
    first = {n: report(tmp_path / "a", n, headline=f"First {n}.") for n in ("03", "05", "07")}
    second = {n: report(tmp_path / "b", n, study="zoo", headline=f"Second {n}.") for n in ("09", "11")}
    runs = [
        StudyRun("small_models", "stored", {n: outcome(n) for n in first}),
        StudyRun("zoo", "stored", {n: outcome(n) for n in second}),
    ]
    sections = [Section(load_study(run.study), run, found) for run, found in zip(runs, (first, second), strict=True)]
    html = write_index(sections, tmp_path / "index.html").read_text("utf-8")
    assert "<dt>Found</dt><dd>First 03.</dd><dd>Second 11.</dd><dd>First 05.</dd></div>" in html


def test_of_trust_the_first_sentence_is_in_sight_and_the_others_are_folded(tmp_path: Path) -> None:
    html = index(tmp_path, report(tmp_path, "01", trust="Up to 0.5 it holds. One pair has p 0.01. That is all."))
    assert "<dd>Up to 0.5 it holds. <details" in html
    assert "<summary>More, small_models 01</summary><p>One pair has p 0.01. That is all.</p></details></dd>" in html


def test_a_study_leads_to_its_provenance_page_where_there_is_one(tmp_path: Path) -> None:
    assert "provenance.html" not in index(tmp_path, report(tmp_path, "01"))
    (tmp_path / "small_models").mkdir()
    (tmp_path / "small_models" / "provenance.html").touch()
    assert '<a href="small_models/provenance.html">' in index(tmp_path, report(tmp_path, "01"))


def showing(folder: Path, number: str, shown: dict[str, str], source: str = "stored") -> Report:
    """A report with pieces that are marked for the index."""
    outputs = [display({"text/html": html}, {"lnsim": {mark: True}}) for html, mark in shown.items()]
    cells = [markdown(f"# Question {number}?"), code("x", *outputs, answer(number=number, source=source))]
    return read_report(write(folder / f"{number}_a.ipynb", *cells))


def with_pairs(folder: Path, source: str = "stored") -> Report:
    return showing(folder, "03", {FIGURE: "headline", TABLE: "headline_table"}, source)


def test_the_pairs_have_a_section_of_their_own_and_the_figure_leads_to_it(tmp_path: Path) -> None:
    html = index(tmp_path, with_pairs(tmp_path))
    assert '<h2 id="pairs">The pairs, and what chance gives</h2>' in html
    assert "<caption><b>Pairs.</b>" in html
    assert html.count('<a href="#pairs">') == 2
    assert ' <a href="#pairs">All numbers</a></figcaption>' in html
    linked = TABLE.replace("</b>", '</b> <a href="tables/03_pairs.csv">03_pairs.csv</a>')
    html = index(tmp_path, showing(tmp_path, "03", {linked: "headline_table"}))
    assert '<a href="small_models/tables/03_pairs.csv">03_pairs.csv</a>' in html


def test_a_replica_has_its_banner_and_no_headline_pairs_or_verdicts_of_it_stand_on_the_index(tmp_path: Path) -> None:
    first = report(tmp_path, "01", source="replica", headline="Synthetic.")
    html = index(tmp_path, first, with_pairs(tmp_path, "replica"), with_verdicts(tmp_path, "replica"))
    for unwanted in ("Synthetic.", "#pairs", "Top.", "#verdicts", "<b>Verdicts.</b>"):
        assert unwanted not in html
    assert "REPLICA, synthetic" in html
    assert 'class="banner"' in html
    assert "No report on real weights was made yet" in html


def test_what_was_not_run_is_listed_with_reason_and_command(tmp_path: Path) -> None:
    reason, command = {"all": "no vectors. To read them:"}, "python run_all.py --source hub"
    html = index_of(tmp_path, StudyRun("solar_glm", "auto", {}, reason, command=command), {})
    assert "<li>No vectors. To read them: <code>python run_all.py --source hub</code></li>" in html
    run = StudyRun("small_models", "stored", {}, {"08": "no projection weights"})
    assert '<span class="num">08</span> No projection weights.' in index_of(tmp_path, run, {})


def with_verdicts(folder: Path, source: str = "stored") -> Report:
    html = TABLE.replace("<caption>", '<caption id="cap-1">').replace("Pairs.", "Verdicts.")
    return showing(folder, "13", {html: "verdicts"}, source)


def test_verdicts_stand_before_the_pairs_and_lead_to_their_rules(tmp_path: Path) -> None:
    html = index(tmp_path, with_pairs(tmp_path), with_verdicts(tmp_path))
    assert html.index('<h2 id="verdicts">') < html.index('<h2 id="pairs">')
    assert "<b>Verdicts.</b>" in html
    place = re.search(r'<a href="#([^"]+)">How these sentences are chosen</a>: report 13 of (\w+)\.', html)
    assert place is not None
    assert f'id="{place[1]}"' in html
    assert html.count('id="verdicts-') == 1

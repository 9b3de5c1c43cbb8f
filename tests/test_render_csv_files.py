"""Tests of the CSVs that lie beside a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from render_notebooks import code, display, write

from lnsim.render.csv_files import csv_place, keep_csvs, linked_from


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose tables are there, one of them of another notebook."""
    (tmp_path / "data" / "studies").mkdir(parents=True)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    for name in ("01_a.csv", "01_b.csv", "02_c.csv"):
        path = tmp_path / "data" / "tables" / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def executed(home: Path, *names: object) -> Path:
    outputs = [display({"text/html": "<table></table>"}, {"lnsim": {"csv": name}}) for name in names]
    return write(home / "reports" / "small" / "01_try.ipynb", code("x", display({"text/plain": ""}), *outputs))


def copies(home: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted((home / "reports" / "small" / "tables").iterdir())}


def test_the_csvs_of_the_tables_that_a_notebook_shows_are_copied_beside_it(home: Path) -> None:
    keep_csvs(executed(home, "01_a.csv", "01_b.csv", "01_a.csv"), "small")
    assert copies(home) == {"01_a.csv": "01_a.csv", "01_b.csv": "01_b.csv"}


def test_copies_of_an_earlier_run_go_and_those_of_other_notebooks_stay(home: Path) -> None:
    path = executed(home, "01_a.csv", "01_b.csv", "02_c.csv")
    keep_csvs(path, "small")
    keep_csvs(executed(home, "01_b.csv"), "small")
    assert set(copies(home)) == {"01_b.csv", "02_c.csv"}
    path.unlink()
    assert keep_csvs(path, "small") == []
    assert set(copies(home)) == {"02_c.csv"}


@pytest.mark.parametrize("name", ["../../studies/x.toml", "01_none.csv", None])
def test_only_a_file_of_the_studys_tables_is_copied(home: Path, name: Any) -> None:
    (home / "data" / "studies" / "x.toml").write_text("no table")
    assert keep_csvs(executed(home, name), "small") == []


def test_a_link_leads_from_the_report_and_from_the_index_to_the_copy() -> None:
    html = f'<a href="{csv_place("small", "01_a.csv")}">01_a.csv</a>'
    assert linked_from(html, "small") == '<a href="tables/01_a.csv">01_a.csv</a>'
    assert linked_from(html, "small", "small/") == '<a href="small/tables/01_a.csv">01_a.csv</a>'
    assert linked_from(html, "other") == html

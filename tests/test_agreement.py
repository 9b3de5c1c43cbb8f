"""Tests of holding a run's tables against the recorded ones, and of recording them."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.run.agreement import Agreement, compare, record, statement

BASE = "role,r,note\na,0.5,one\nb,inf,two\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "studies").mkdir(parents=True)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    return tmp_path


def put(home: Path, recorded: dict[str, str], new: dict[str, str]) -> Path:
    """The folder of a study's reports; tables by name, on both sides."""
    folder = home / "reports" / "small"
    for place, texts in ((home / "data" / "tables" / "small", recorded), (folder / "tables", new)):
        place.mkdir(parents=True)
        for name, text in texts.items():
            (place / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("new", "agree", "said"),
    [
        (BASE, 6, None),
        (BASE.replace("0.5", "0.50000000000001"), 6, None),
        (BASE.replace("0.5", "0.6"), 5, "small/01_a.csv, column 'r': 1 of 2 values, in row 1 '0.6', recorded '0.5'"),
        (BASE.replace("0.5", ""), 5, "column 'r': 1 of 2 values, in row 1 '', recorded '0.5'"),
        (BASE.replace("two", "2"), 5, "column 'note': 1 of 2 values, in row 2 '2', recorded 'two'"),
        (BASE.replace("note", "why"), 0, "small/01_a.csv: 2 rows of role, r, why; recorded 2 rows of role, r, note"),
    ],
    ids=["the same", "the last digits", "a number", "a gap", "a text", "a heading"],
)
def test_a_value_that_differs_is_named_by_table_and_column(home: Path, new: str, agree: int, said: str | None) -> None:
    found = compare("small", "01", put(home, {"01_a.csv": BASE}, {"01_a.csv": new}))
    assert (found.n_agree, found.not_compared) == (agree, "")
    assert (found.n_values == agree) == (said is None) == (not found.differ)
    assert said is None or said in found.differ[0]


def test_a_table_of_one_side_is_named_and_those_of_other_notebooks_are_left_out(home: Path) -> None:
    recorded = {"01_a.csv": "x\n1\n", "01_old.csv": "x\n1\n2\n", "02_b.csv": "x\n1\n", "01_empty.csv": "x\n"}
    folder = put(home, recorded, {"01_a.csv": "x\n1\n", "01_new.csv": "x\n", "01_empty.csv": "x\n"})
    found = compare("small", "01", folder)
    assert found.differ == ("small/01_new.csv was not recorded", "small/01_old.csv is no longer written")
    assert (found.n_agree, found.n_values) == (2, 5)
    assert compare("other", "01", folder).not_compared == "other has no recorded tables"


def test_what_is_recorded_has_12_digits_and_agrees_and_older_files_of_the_notebook_go(home: Path) -> None:
    cells = ["0.12345678901234568", "1.0", "1234567890123456789", "12345678e9012345", "0.5 (0.12345678901234567)", ""]
    new = {"01_a.csv": "\n".join([",x", *(f"{row},{cell}" for row, cell in enumerate(cells))]) + "\n"}
    folder = put(home, {"01_old.csv": "x\n1\n", "02_b.csv": "x\n1\n"}, new)
    (folder / "figures").mkdir()
    (folder / "figures" / "01_a.svg").write_text("<svg/>")
    record("small", "01", folder)
    kept = home / "data" / "tables" / "small"
    assert {path.name for path in kept.iterdir()} == {"01_a.csv", "02_b.csv"}
    expected = new["01_a.csv"].replace("0,0.12345678901234568", "0,0.123456789012")
    assert (kept / "01_a.csv").read_text() == expected
    assert (home / "figures" / "small" / "01_a.svg").read_text() == "<svg/>"
    found = compare("small", "01", folder)
    assert found.n_agree == found.n_values == 12
    assert 0 < found.largest < 1e-12


def test_the_statement_counts_names_what_differs_and_says_why_a_study_was_not_compared() -> None:
    parts = [Agreement(1000, 999, 3e-15, ("a/01_a.csv, column 'r': 1 of 2 values",)), Agreement(234, 234)]
    lines = statement([*parts, Agreement(not_compared="b has no recorded tables")])
    assert lines == [
        "1,233 of 1,234 values of the tables agree with the recorded ones (largest difference 3e-15; allowed are "
        "1e-09, relative, and 1e-12).",
        "Differs from the record: a/01_a.csv, column 'r': 1 of 2 values.",
        "Not compared with the record: b has no recorded tables.",
    ]
    many = statement([Agreement(30, 0, differ=tuple(f"table {number}" for number in range(30)))])
    assert len(many) == 22
    assert many[-1] == "10 more differ; run.json of each study names them all."
    assert statement([]) == []

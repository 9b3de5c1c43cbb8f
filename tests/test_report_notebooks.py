"""Tests of finding notebooks and checking parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_notebooks import small

from lnsim.errors import NotebookError
from studies.run.selection import check_parameters, known_parameters, list_notebooks, parse_setting, select_notebooks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed=1", ("seed", 1)),
        ("roles=['a', 'b']", ("roles", ["a", "b"])),
        ("layers=(1, 2)", ("layers", [1, 2])),
        ("model=smollm2", ("model", "smollm2")),
        ("flag=None", ("flag", None)),
        ("text=a=b", ("text", "a=b")),
    ],
)
def test_a_setting_is_a_name_and_a_literal_or_text(text: str, expected: tuple[str, object]) -> None:
    assert parse_setting(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((text, "expected name=value, for example seed=1") for text in ("seed", "=1", "1a=2", "a b=1")),
        ("study=x", "use --study for it"),
        ("source=x", "use --source for it"),
        ("seed={1, 2}", "expected a number, a text, True, False, None or a list"),
    ],
)
def test_a_setting_that_cannot_be_one_is_refused(text: str, message: str) -> None:
    with pytest.raises(NotebookError, match=message):
        parse_setting(text)


def test_notebooks_are_listed_by_number_with_their_question_and_each_number_once(tmp_path: Path) -> None:
    with pytest.raises(NotebookError, match="holds none that is named by two digits and a subject"):
        list_notebooks(tmp_path)
    for name in ("Untitled.ipynb", "01_a-Copy1.ipynb", "1_a.ipynb", "compare.ipynb", ".01_a.ipynb"):  # the user's own
        (tmp_path / name).write_text("{}")
    for name in ("05_b.ipynb", "01_a.ipynb"):
        small(tmp_path, name=name)
    expected = [("01", "Does it run?"), ("05", "Does it run?")]
    assert [(notebook.number, notebook.question) for notebook in list_notebooks(tmp_path)] == expected
    small(tmp_path, name="01_b.ipynb")
    with pytest.raises(NotebookError, match="the number 01 is used twice"):
        list_notebooks(tmp_path)


MALFORMED = [
    *(b"{", b"[]", b"\xff\xfe\x00", b"[" * 100_000, b'{"cells": [{"cell_type": "code"}]}'),
    b'{"cells": [{"cell_type": "code", "source": "", "metadata": {"tags": null}}]}',
    b'{"nbformat": 3, "worksheets": []}',
]


@pytest.mark.parametrize("content", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_notebook_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "01_a.ipynb").write_bytes(content)
    with pytest.raises(NotebookError, match=r"^Reading 01_a\.ipynb: it is not a notebook"):
        list_notebooks(tmp_path)


def test_what_has_no_question_or_is_no_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "01_a.ipynb"
    path.write_text('{"cells": []}')
    with pytest.raises(NotebookError, match=r"Reading 01_a\.ipynb: it has no first heading"):
        list_notebooks(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(NotebookError, match=r"01_a\.ipynb: it is not a notebook \(but a folder"):
        list_notebooks(tmp_path)


def test_a_notebook_that_papermill_could_not_read_is_refused_before_it_runs(tmp_path: Path) -> None:
    notebook = small(tmp_path)
    content = json.loads(notebook.path.read_text("utf-8"))
    for lost in ("nbformat", "metadata"):
        notebook.path.write_text(json.dumps({key: value for key, value in content.items() if key != lost}))
        with pytest.raises(NotebookError, match="'nbformat': 4 and 'metadata' were expected"):
            known_parameters(notebook)


def test_parameters_are_those_of_the_tagged_cell_without_which_a_notebook_is_refused(tmp_path: Path) -> None:
    assert list(known_parameters(small(tmp_path, "other = 1"))) == ["study", "seed"]
    with pytest.raises(NotebookError, match="no cell has the tag 'parameters'"):
        known_parameters(small(tmp_path, tagged=False))


KNOWN = {
    "00": {"study": "s", "source": "auto"},
    "01": {"study": "s", "source": "auto", "seed": 0, "roles": ["pre_attention"], "threshold": 0.5},
}


def test_an_unknown_parameter_is_refused_with_the_known_ones() -> None:
    check_parameters(KNOWN, {"seed": 1, "threshold": 1, "roles": ["pre_mlp"]})
    with pytest.raises(NotebookError, match=r"Setting 'sead': .* Known are 00: none; 01: seed, roles, threshold"):
        check_parameters(KNOWN, {"sead": 1})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seed": "abc"}, r"Setting 'seed' to 'abc': expected a value of type int, such as 0"),
        ({"seed": True}, r"Setting 'seed' to True: expected a value of type int, such as 0"),
        ({"seed": -1}, r"Setting 'seed' to -1: expected a whole number from 0 to 4294967295"),
        ({"roles": "x"}, r"Setting 'roles' to 'x': expected a value of type list, such as \['pre_attention'\]"),
        ({"threshold": "high"}, r"Setting 'threshold' to 'high': expected a value of type float"),
    ],
)
def test_a_value_of_another_kind_than_stands_there_is_refused_before_anything_runs(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(NotebookError, match=message):
        check_parameters(KNOWN, given)


@pytest.mark.parametrize("only", ["01,05", "1,5", " 01 , 05 "])
def test_only_selects_by_number_and_an_unknown_one_is_refused_with_the_known_ones(tmp_path: Path, only: str) -> None:
    three = [small(tmp_path, name=f"{number}_a.ipynb") for number in ("00", "01", "05")]
    assert [notebook.number for notebook in select_notebooks(three, only)] == ["01", "05"]
    with pytest.raises(NotebookError, match="there is no 07; known are 00, 01, 05"):
        select_notebooks(three, "01,07")

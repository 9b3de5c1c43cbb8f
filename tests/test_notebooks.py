"""The notebooks as they are stored: one shape, short cells, no logic, no outputs, and no name of a study's model."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lnsim.study.catalog import list_studies, load_study

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SECTIONS = ["Question", "Parameters", "Data", "Result", "Control", "What this does and does not show", "Provenance"]

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3
    assert all(re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem) for path in NOTEBOOKS)


@each
def test_a_notebook_opens_with_its_question_and_has_the_seven_sections_in_order(path: Path) -> None:
    lines = [line for cell in cells(path, "markdown") for line in source(cell).splitlines()]
    titles = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    assert len(titles) == 1
    assert titles[0].endswith("?")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == SECTIONS


@each
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells(path, "code"))


@each
def test_code_cells_are_short_and_hold_no_logic(path: Path) -> None:
    for cell in cells(path, "code"):
        assert len(source(cell).splitlines()) <= 12, source(cell)
        banned = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While, ast.If, ast.Try, ast.With, ast.Lambda)
        assert not [node for node in ast.walk(ast.parse(source(cell))) if isinstance(node, banned)], source(cell)


@each
def test_there_are_sixty_words_of_prose_a_code_cell(path: Path) -> None:
    words = sum(len(source(cell).split()) for cell in cells(path, "markdown"))
    assert words / len(cells(path, "code")) >= 60


@each
def test_exactly_one_cell_holds_parameters_literals_only_with_a_comment_each(path: Path) -> None:
    tagged = [cell for cell in cells(path, "code") if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    for line in source(tagged[0]).splitlines():
        code, _, comment = line.partition("#")
        (assignment,) = ast.parse(code.strip()).body
        assert isinstance(assignment, ast.Assign)
        ast.literal_eval(assignment.value)
        assert comment.strip()


@each
def test_no_number_is_typed_in_rendered_prose(path: Path) -> None:
    """A number in a text of the page must come from a variable; years, names and percent signs of captions aside."""
    for cell in cells(path, "code"):
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.JoinedStr):
                for part in node.values:
                    if isinstance(part, ast.Constant):
                        assert not re.search(r"\b(\d+\.\d|\d{3,})", str(part.value)), part.value


@each
def test_no_name_of_a_study_or_model_stands_in_a_notebook_but_as_the_default_study(path: Path) -> None:
    code = "\n".join(
        source(cell) for cell in cells(path, "code") if "parameters" not in cell["metadata"].get("tags", [])
    )
    names = {model.label for name in list_studies() for model in load_study(name).models} | set(list_studies())
    assert not [name for name in names if re.search(rf"\b{re.escape(name)}\b", code)]

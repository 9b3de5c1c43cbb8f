"""The notebooks as they are stored: one shape, short cells that compute, real parameters, no outputs."""

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
    assert all(re.fullmatch(r"\d\d_[a-z0-9_]+|compare|matrix", path.stem) for path in NOTEBOOKS)


@each
def test_a_notebook_opens_with_its_question_and_has_the_seven_sections_in_order(path: Path) -> None:
    lines = [line for cell in cells(path, "markdown") for line in source(cell).splitlines()]
    titles = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    assert len(titles) == 1
    assert titles[0].endswith("?")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == SECTIONS


@each
def test_a_notebook_is_stored_without_outputs_and_each_cell_with_an_id_of_its_own(path: Path) -> None:
    names = [cell["id"] for cell in json.loads(path.read_text())["cells"]]
    assert len(set(names)) == len(names)
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells(path, "code"))


@each
def test_code_cells_are_short_and_neither_read_nor_write_by_themselves(path: Path) -> None:
    for cell in cells(path, "code"):
        assert len(source(cell).splitlines()) <= 15, source(cell)
        tree = ast.parse(source(cell))
        assert not [node for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.Try, ast.With))], source(
            cell
        )
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not [
            name for name in called if re.search(r"^open$|^eval$|^exec$|read_csv|to_csv|savefig|^requests\.", name)
        ]


@each
def test_a_notebook_is_the_experiment(path: Path) -> None:
    """At least half of its statements, by lines and without imports and parameters, compute; parameters have values."""
    own = page = 0
    for cell in cells(path, "code"):
        tree = ast.parse(source(cell))
        if "parameters" in cell["metadata"].get("tags", []):
            assert not [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value is None]
            continue
        for node in tree.body:
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                of_page = any(isinstance(one, ast.Name) and one.id == "page" for one in ast.walk(node))
                page, own = (page + lines, own) if of_page else (page, own + lines)
    assert own >= page, f"{own} lines compute and {page} are calls of the page"


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
    own = [source(cell) for cell in cells(path, "code") if "parameters" not in cell["metadata"].get("tags", [])]
    code = "\n".join(line for text in own for line in text.splitlines() if not line.startswith("from studies."))
    names = {model.label for name in list_studies() for model in load_study(name).models} | set(list_studies())
    assert not [name for name in names if re.search(rf"\b{re.escape(name)}\b", code)]

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
    assert "injected-parameters" not in names
    assert not any(cell["outputs"] or cell["execution_count"] for cell in cells(path, "code"))


@each
def test_code_cells_are_short_and_neither_read_write_nor_fetch_by_themselves(path: Path) -> None:
    for cell in cells(path, "code"):
        assert len(source(cell).splitlines()) <= 15, source(cell)
        nodes = list(ast.walk(ast.parse(source(cell))))
        assert not [node for node in nodes if isinstance(node, (ast.ClassDef, ast.Try, ast.With))], source(cell)
        called = "\n".join(ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call))
        assert not re.search(r"^(open|eval|exec)$|read_csv|to_csv|savefig|extract|^requests\.", called, re.MULTILINE)
        assert not re.search(r"hf_hub|import requests|urllib|https?:", source(cell))


@each
def test_a_notebook_gives_an_answer_its_limits_and_its_provenance_once(path: Path) -> None:
    code = "\n".join(map(source, cells(path, "code")))
    assert [code.count(f"page.{call}(") for call in ("answer", "shows", "provenance")] == [1, 1, 1]


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
def test_exactly_one_cell_holds_parameters_literals_only_with_a_comment_each_and_those_of_the_study(path: Path) -> None:
    (tagged,) = (cell for cell in cells(path, "code") if "parameters" in cell["metadata"].get("tags", []))
    given = {}
    for line in source(tagged).splitlines():
        code, _, comment = line.partition("#")
        (assignment,) = ast.parse(code.strip()).body
        assert isinstance(assignment, ast.Assign)
        given[ast.unparse(assignment.targets[0])] = ast.literal_eval(assignment.value)
        assert comment.strip()
    if path.stem[0].isdigit():
        study = load_study(given.pop("study"))
        assert given.pop("source") == "auto"
        # In JupyterLab the experiment is the one that run_all.py runs: a value that stands here is the study file's.
        stands = study.experiments[path.stem[:2]]
        assert not {name: value for name, value in given.items() if value and value != stands.get(name)}


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

"""Each notebook opens by itself: its parameters name a study that ships, has this experiment and has vectors here."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lnsim.report.page import Page
from lnsim.study.catalog import list_studies, load_study
from lnsim.study.vectors import study_vectors

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


def defaults(path: Path) -> dict[str, Any]:
    """The values of a notebook's parameters as they stand in its cell."""
    cells = json.loads(path.read_text())["cells"]
    (cell,) = (cell for cell in cells if "parameters" in cell["metadata"].get("tags", []))
    assigned = ast.parse("".join(cell["source"])).body
    return {ast.unparse(one.targets[0]): ast.literal_eval(one.value) for one in assigned if isinstance(one, ast.Assign)}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_opens_with_its_own_parameters(path: Path) -> None:
    given = defaults(path)
    study, source = given.pop("study"), given.pop("source")
    assert study in list_studies()
    assert source == "auto"
    # In JupyterLab the experiment is the one that run_all.py runs: a value that stands here is the study file's.
    stands = load_study(study).experiments[path.stem[:2]]
    assert not {name: value for name, value in given.items() if value and value != stands.get(name)}
    Page.open(path.stem[:2], study, source, given)
    models = given.get("models", [])
    assert not models or study_vectors(load_study(study), source, models[:1]).vectors


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_an_answer_its_limits_and_its_provenance_once_and_fetches_nothing(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for call in ("page.answer(", "page.shows(", "page.provenance("):
        assert code.count(call) == 1, call
    assert not re.search(r"extract\w*\(|hf_hub|import requests|urllib|https?:", code)
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids)
    assert "injected-parameters" not in ids

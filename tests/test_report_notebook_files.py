"""Tests that the stored notebooks use their page as the reports need it; their form is tested in test_notebooks.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
PATHS = sorted(FOLDER.glob("*.ipynb"))

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == kind]


def sources(path: Path, kind: str) -> list[str]:
    return ["".join(cell["source"]) for cell in cells(path, kind)]


@each_notebook
def test_cell_ids_are_fixed_and_unique(path: Path) -> None:
    ids = [cell["id"] for cell in json.loads(path.read_text("utf-8"))["cells"]]
    assert len(set(ids)) == len(ids)
    assert "injected-parameters" not in ids


@each_notebook
def test_every_notebook_gives_an_answer_its_limits_and_its_provenance(path: Path) -> None:
    code = "\n".join(sources(path, "code"))
    for call in ("page.answer(", "page.shows(", "page.provenance("):
        assert code.count(call) == 1, call


@each_notebook
def test_no_notebook_fetches_anything(path: Path) -> None:
    code = "\n".join(sources(path, "code"))
    assert not re.search(r"extract\w*\(|hf_hub|import requests|urllib|https?:", code)

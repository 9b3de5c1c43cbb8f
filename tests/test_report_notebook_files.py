"""Tests that the stored notebooks use their page as the reports need it; their form is tested in test_notebooks.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

PATHS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_gives_an_answer_its_limits_and_its_provenance_once_and_fetches_nothing(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for call in ("page.answer(", "page.shows(", "page.provenance("):
        assert code.count(call) == 1, call
    assert not re.search(r"extract\w*\(|hf_hub|import requests|urllib|https?:", code)
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids)
    assert "injected-parameters" not in ids

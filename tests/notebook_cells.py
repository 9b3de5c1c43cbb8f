"""Running a notebook's cells in a test's own process: what they computed, without a page; and its recorded tables."""

from __future__ import annotations

import ast
import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, patch

import pandas as pd

from lnsim.report.page import Page

__all__ = ["check_on_record", "computed", "defined"]

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"


def computed(number: str, name: str) -> dict[str, Any]:
    """The variables of a notebook after the first cell that leaves one of this name, with its own parameters."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    variables: dict[str, Any] = {}
    with patch.multiple(Page, figure=DEFAULT, table=DEFAULT, say=DEFAULT):  # they would write figures and tables
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "code" and name not in variables:
                exec(compile("".join(cell["source"]), f"{path.stem}, {cell['id']}", "exec"), variables)
    return variables


def defined(number: str) -> dict[str, Any]:
    """The functions of a notebook, and what its cells import; nothing else of it is run."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    nodes = [node for cell in cells for node in ast.parse(cell).body]
    kept: list[ast.stmt] = [one for one in nodes if isinstance(one, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    variables: dict[str, Any] = {}
    exec(compile(ast.Module(kept, []), path.stem, "exec"), variables)
    return variables


def check_on_record(study: str, name: str, found: pd.DataFrame) -> None:
    """Hold a table against the recorded one, row by row, as closely as its twelve digits allow."""
    written = io.StringIO(found.to_csv(index=found.index.name is not None))
    recorded = pd.read_csv(ROOT / "data" / "tables" / study / f"{name}.csv")
    found = pd.read_csv(written)
    pd.testing.assert_frame_equal(found, recorded[list(found.columns)], check_dtype=False, rtol=1e-9, atol=1e-12)

"""Running a notebook's cells in a test's own process until a name is there: what they computed, without a page."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, patch

from lnsim.report.page import Page

__all__ = ["computed", "defined"]

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


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

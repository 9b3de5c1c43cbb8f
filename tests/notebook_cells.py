"""The functions of a notebook, for tests of their own."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def defined(number: str) -> dict[str, Any]:
    """The functions of a notebook, and what its cells import; nothing else of it is run."""
    (path,) = NOTEBOOKS.glob(f"{number}_*.ipynb")
    cells = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    nodes = [node for cell in cells for node in ast.parse(cell).body]
    kept: list[ast.stmt] = [one for one in nodes if isinstance(one, ast.Import | ast.ImportFrom | ast.FunctionDef)]
    variables: dict[str, Any] = {}
    exec(compile(ast.Module(kept, []), path.stem, "exec"), variables)
    return variables

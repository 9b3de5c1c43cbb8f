"""Running a notebook's cells in a test's own process until a name is there: what they computed, without a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import DEFAULT, patch

from lnsim.render.page import Page

__all__ = ["computed"]

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

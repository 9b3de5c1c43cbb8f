"""This module gives each report the CSVs of its tables, so that every number leads to its full digits.

A notebook writes its tables to ``data/tables/<study>/`` and links them from where it lies. Beside the report lies a
copy, taken when the notebook has just ended, and the report links that: the folder of reports can be sent as it is.
"""

from __future__ import annotations

import json
from pathlib import Path

from lnsim.paths import working_root
from lnsim.render.saving import write_whole

__all__ = ["COPIES", "CSV_MARK", "csv_place", "keep_csvs", "linked_from"]

CSV_MARK = "csv"
"""Key of an output's metadata that names the CSV of the table it shows."""

COPIES = "tables"
"""Folder of the copies, inside that of a study's reports."""


def csv_place(study: str, name: str) -> str:
    """Where a table's CSV lies, seen from a notebook of the project.

    >>> csv_place("small_models", "01_terms.csv")
    '../data/tables/small_models/01_terms.csv'
    """
    return f"../data/tables/{study}/{name}"


def linked_from(html: str, study: str, folder: str = "") -> str:
    """HTML of a notebook's output whose links lead to the copies.

    Args:
        html: of an output of this study's notebooks.
        study: the study's name.
        folder: the reports' folder, seen from the page and with its slash; empty for a report itself.
    """
    return html.replace(f'href="{csv_place(study, "")}', f'href="{folder}{COPIES}/')


def keep_csvs(executed: Path, study: str) -> list[Path]:
    """Copy the CSVs of an executed notebook's tables into the folder beside it; older ones of this notebook go.

    Args:
        executed: the executed notebook; where there is none, only the older copies go.
        study: the study's name.
    """
    folder = executed.parent / COPIES
    for old in folder.glob(f"{executed.stem[:2]}_*.csv"):
        old.unlink()
    source = working_root() / "data" / "tables" / study
    names = [name for name in _names(executed) if (source / name).is_file()]
    return [write_whole(folder / name, (source / name).read_bytes()) for name in names]


def _names(executed: Path) -> list[str]:
    if not executed.is_file():
        return []
    cells = json.loads(executed.read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    named = (output.get("metadata", {}).get("lnsim", {}).get(CSV_MARK) for output in outputs)
    return list(dict.fromkeys(Path(str(name)).name for name in named if name))

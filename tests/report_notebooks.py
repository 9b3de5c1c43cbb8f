"""Helpers of the reports' tests: small notebooks, written by hand so that each is plain to see."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from lnsim.paths import project_root
from lnsim.report.notebooks import Notebook
from lnsim.report.page import PAGE_MIME

PICTURE = '<img src="data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=" alt="A line.">'


def project(folder: Path) -> Path:
    """A project folder with the real studies and vectors, and nothing else; call it before LNSIM_HOME is set."""
    source = project_root() / "data"
    (folder / "data").mkdir()
    (folder / "data" / "vectors").symlink_to(source / "vectors", target_is_directory=True)
    shutil.copytree(source / "studies", folder / "data" / "studies")
    return folder


def markdown(source: str) -> dict[str, Any]:
    """A Markdown cell."""
    return {"cell_type": "markdown", "id": "x", "metadata": {}, "source": source}


def code(source: str, *outputs: dict[str, Any], tags: tuple[str, ...] = ()) -> dict[str, Any]:
    """A code cell with its outputs."""
    metadata = {"tags": list(tags)} if tags else {}
    return {
        "cell_type": "code", "id": "x", "metadata": metadata, "source": source, "execution_count": None,
        "outputs": list(outputs),
    }  # fmt: skip


def display(data: dict[str, Any], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    """An output that a cell displayed."""
    return {"output_type": "display_data", "data": data, "metadata": metadata or {}}


def record(**changes: Any) -> dict[str, Any]:
    """An answer as ``Page.answer`` writes it."""
    return {
        "number": "01", "study": "small_models", "source": "stored", "headline": None, "finding": "No: it is 0.03.",
        "compared": "30 layers", "control": "shuffles", "trust": "one model", "versions": {"lnsim": "0.1.0"},
        "models": {"smollm2": {"source": "SmolLM2", "commit": None, "n_vectors": 61, "published": True}}, **changes,
    }  # fmt: skip


def answer(**changes: Any) -> dict[str, Any]:
    """The output that carries an answer."""
    return display({PAGE_MIME: record(**changes), "text/html": "<p>the answer in JupyterLab</p>"})


def small(folder: Path, *sources: str, name: str = "01_try.ipynb", tagged: bool = True) -> Notebook:
    """A notebook with two parameters and these cells."""
    text = 'study = "a"  # name\nseed = None  # of the shuffles'
    parameters = code(text, tags=("parameters",) if tagged else ())
    path = write(folder / name, markdown("# Does it run?"), parameters, *[code(source) for source in sources])
    return Notebook(name[:2], path, "Does it run?")


def write(path: Path, *cells: dict[str, Any]) -> Path:
    """Write a notebook of these cells."""
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number:02d}"
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    content = {"cells": list(cells), "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
    return path

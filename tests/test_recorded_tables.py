"""Every recorded table is what the cells of its notebook compute, run in the test's own process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from lnsim.report import page
from lnsim.report.saving import PAGE_VARIABLE
from lnsim.study.catalog import list_studies, load_study
from studies.run.agreement import compare

ROOT = Path(__file__).resolve().parents[1]
# These take longest; a run of run_all.py holds them to their record like all others, and CI makes one.
LEFT_TO_A_RUN = ("small_models 12", "small_models 15", "zoo 11", "zoo 15")
RECORDED = [
    (study, path)
    for study in list_studies()
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
    if any((ROOT / "data" / "tables" / study).glob(f"{path.stem[:2]}_*.csv"))
    and f"{study} {path.stem[:2]}" not in LEFT_TO_A_RUN
]


def drawn(*_: Any, moving: Any = None, **__: Any) -> None:
    """In place of saving a figure, which would take most of the time; an animation shall not complain of it."""
    if moving is not None:
        moving._draw_was_started = True
    plt.close("all")


@pytest.mark.parametrize(("study", "path"), RECORDED, ids=lambda one: getattr(one, "stem", one))
def test_the_cells_of_a_notebook_compute_the_tables_on_record(
    study: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = path.stem[:2]
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    monkeypatch.setenv(PAGE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(page, "_show", lambda *_: None)
    monkeypatch.setattr(page.Page, "figure", drawn)
    variables: dict[str, Any] = {}
    with mpl.rc_context():
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{path.stem}, {cell['id']}", "exec"), variables)
            if "parameters" in cell["metadata"].get("tags", ()):
                variables |= load_study(study).experiments[number] | {"study": study}
    plt.close("all")
    found = compare(study, number, tmp_path)
    # As in CI: on another processor a permutation may fall on the other side of a tie.
    assert found.n_agree * 1000 >= found.n_values * 999 > 0, found.differ
    assert found.not_compared == ""

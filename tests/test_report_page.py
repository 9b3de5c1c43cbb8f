"""Tests of what a notebook puts on its page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from matplotlib.animation import FuncAnimation
from report_notebooks import project

from lnsim import plots
from lnsim.errors import NotebookError, StudyError
from lnsim.paths import project_root
from lnsim.report import page as module
from lnsim.report.html import clean_html
from lnsim.report.page import PAGE_MIME, Page
from lnsim.report.saving import PAGE_VARIABLE

SOURCE = project_root() / "data" / "vectors"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Everything that was displayed, as (data, metadata)."""
    outputs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    monkeypatch.setattr(module, "_show", lambda data, metadata=None: outputs.append((dict(data), dict(metadata or {}))))
    return outputs


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder of its own, so that figures and tables of a test go nowhere else."""
    monkeypatch.setenv("LNSIM_HOME", str(project(tmp_path)))
    monkeypatch.setenv(PAGE_VARIABLE, str(tmp_path / "page"))
    return tmp_path


@pytest.fixture
def opened(home: Path, shown: list[Any]) -> Page:
    return Page.open("01", "small_models")


def answer(page: Page, **changes: str) -> None:
    given = {"finding": "No: 0.03.", "compared": "30 layers", "control": "shuffles", "trust": "one model", **changes}
    page.answer(**given)


def drawn() -> Any:
    ax = plt.subplots()[1]
    ax.plot([0, 1])
    return ax


def test_a_notebook_that_the_study_does_not_run_gives_the_studys_reason(home: Path) -> None:
    with pytest.raises(StudyError, match="'small_models' does not run notebook 10: nobody has published numbers"):
        Page.open("10", "small_models")


def test_missing_vectors_are_an_error_that_names_the_command(home: Path) -> None:
    page = Page.open("01", "solar_glm", source="stored")
    with pytest.raises(StudyError, match=r"has no vectors.*python run_all.py --study solar_glm --source hub"):
        page.load(["solar"])
    with pytest.raises(StudyError, match="has no vectors"):
        page.load_available(["solar", "glm"])


def test_a_model_without_vectors_is_named_and_the_others_stay(opened: Page, shown: list[Any], home: Path) -> None:
    whole = opened.load(["minilm", "sre", "e5"])
    (home / "data" / "vectors").unlink()
    (home / "data" / "vectors").mkdir()
    for key in ("minilm", "e5"):
        name = f"{opened.study.model(key).stored}.safetensors"
        shutil.copy(next(SOURCE.rglob(name)), home / "data" / "vectors" / name)
    page = Page.open("01", "small_models")
    found = page.load_available(["minilm", "sre", "e5"])
    assert list(found) == ["minilm", "e5"]
    assert all((found[key]["post_mlp"].scale == whole[key]["post_mlp"].scale).all() for key in found)
    answer(page)
    assert list(page.missing) == ["sre-MiniLM"]
    assert "<dt>Missing</dt><dd>sre-MiniLM: There is no stored model" in shown[-1][0]["text/html"]
    assert list(shown[-1][0][PAGE_MIME]["missing"]) == ["sre"]


def test_the_answer_carries_what_the_index_needs(opened: Page, shown: list[Any]) -> None:
    opened.load(["smollm2"])
    answer(opened)
    record = shown[-1][0][PAGE_MIME]
    assert (record["number"], record["study"], record["source"]) == ("01", "small_models", "stored")
    assert record["finding"] == "No: 0.03."
    assert record["models"]["smollm2"] == {
        "source": "SmolLM2-135M-Instruct",
        "commit": None,
        "n_vectors": 61,
        "published": True,
    }
    assert "REAL WEIGHTS, stored" in shown[-1][0]["text/html"]
    with pytest.raises(NotebookError, match="the answer's 'Trust' is empty"):
        answer(opened, trust=" ")
    opened.say(f"The mean is {-0.5:.1f}.")
    assert shown[-1][0]["text/markdown"] == "The mean is −0.5."


def test_a_figure_is_saved_shown_marked_and_closed(home: Path, opened: Page, shown: list[Any]) -> None:
    opened.figure(drawn(), "line", "A line.", "Drawn.", "A line from 0 to 1.", headline=True)
    assert {path.name for path in (home / "page" / "figures").iterdir()} == {"01_line.png", "01_line.svg"}
    assert "<b>Figure 1. A line.</b>" in shown[-1][0]["text/html"]
    assert shown[-1][1] == {"lnsim": {"headline": True}}
    assert not plt.get_fignums()


def test_a_table_is_written_whole_where_a_part_is_shown_and_that_for_the_index_is_marked_and_in_sight(
    home: Path, opened: Page, shown: list[Any]
) -> None:
    frame = pd.DataFrame({"role": [f"role {place}" for place in range(20)], "r": 0.123456789})
    opened.table(frame, "r", "Claim.", "Caption.", headline=True)
    assert shown[-1][1] == {"lnsim": {"headline_table": True}}
    assert "scroll long" not in shown[-1][0]["text/html"]
    opened.table(frame, "r", "Claim.", "Caption.", shown=frame.head(15))
    html = shown[-1][0]["text/html"]
    assert shown[-1][1] == {}
    assert "scroll long" in html
    assert 'In full: <a href="tables/01_r.csv">01_r.csv</a></caption>' in html
    assert "role 15" not in html
    written = (home / "page" / "tables" / "01_r.csv").read_text().splitlines()
    assert (written[:2], len(written)) == (["role,r", "role 0,0.123456789"], 21)


def test_figures_and_tables_count_apart_and_keep_their_number_when_run_again(opened: Page, shown: list[Any]) -> None:
    frame = pd.DataFrame({"a": [1.0]}, index=["x"])
    for name in ("one", "two", "one"):
        opened.table(frame, name, "Claim.")
    opened.figure(drawn(), "one", "Claim.", "Caption.", "Alt.")
    found = [data["text/html"] for data, _ in shown]
    expected = ("Table 1.", "Table 2.", "Table 1.", "Figure 1.")
    assert all(name in html for name, html in zip(expected, found, strict=True))


def test_an_animation_waits_behind_a_button_with_its_number_and_alt_text(
    home: Path, opened: Page, shown: list[Any]
) -> None:
    figure, (ax,) = plots.panels(1)
    (point,) = ax.plot([0], [0], "o")
    moving = FuncAnimation(figure, lambda n: point.set_ydata([n / 60]), 2)
    opened.kind = "replica"
    opened.figure(figure, "mean_removal", "They part.", "Slowly.", alt="two vectors <move>", moving=moving)
    html = shown[0][0]["text/html"]
    assert clean_html(html) == html
    assert '<details class="motion"><summary>' in html
    assert "open" not in html.split("<summary>")[0]
    assert 'src="data:image/gif;base64,' in html
    assert 'alt="REPLICA. two vectors &lt;move&gt;"' in html
    assert "<b>REPLICA. Figure 1. They part.</b>" in html
    assert (home / "page" / "figures" / "01_mean_removal.gif").is_file()
    assert not plt.get_fignums()


def test_a_notebook_run_by_hand_saves_into_a_folder_of_trials_and_not_over_the_record_or_a_run(
    home: Path, opened: Page, shown: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PAGE_VARIABLE)
    (home / "notebooks").mkdir()
    monkeypatch.chdir(home / "notebooks")
    before = set(home.iterdir())
    opened.table(pd.DataFrame({"r": [1]}), "r", "Claim.")
    opened.figure(drawn(), "line", "Claim.")
    assert {path.name for path in set(home.iterdir()) - before} == {"reports"}
    saved = {path.relative_to(home).as_posix() for path in (home / "reports").rglob("01_*")}
    trials = "reports/by_hand/small_models"
    assert saved == {f"{trials}/tables/01_r.csv", f"{trials}/figures/01_line.png", f"{trials}/figures/01_line.svg"}
    assert f'href="../{trials}/tables/01_r.csv"' in shown[0][0]["text/html"]


def test_every_piece_made_from_a_replica_says_so(home: Path, opened: Page, shown: list[Any]) -> None:
    label = opened.study.model("smollm2").label
    assert opened.label("smollm2") == label
    opened.kind = "replica"
    assert opened.label("smollm2") == f"the replica of {label}"
    opened.table(pd.DataFrame({"a": [1.0]}, index=["x"]), "t", "Claim.")
    ax = drawn()
    opened.figure(ax, "f", "Claim.", "Caption.", "Seen.")
    answer(opened)
    html = [data["text/html"] for data, _ in shown]
    assert "REPLICA. Table 1." in html[0]
    (saved,) = (home / "page").rglob("*.csv")
    assert all("REPLICA" in line for line in saved.read_text().splitlines()[1:])
    assert 'alt="REPLICA. Seen."' in html[1]
    assert [text.get_text() for text in ax.get_figure().texts] == ["REPLICA"]
    figure, (panel,) = plots.panels(1)
    figure.set_layout_engine("none")  # an engine that stands for one that has done its work
    opened.figure(panel, "g", "Claim.", "Caption.", "Seen.")
    assert "REPLICA, synthetic" in html[2]


def test_provenance_lists_models_seed_versions_and_the_command(home: Path, shown: list[Any]) -> None:
    page = Page.open("01", "small_models", variables={"roles": ["pre_mlp"], "seed": 7})
    page.load(["smollm2"])
    page.provenance(seed=7, n_permutations=9999)
    html = shown[-1][0]["text/html"]
    assert "7; 9,999 permutations" in html
    assert "python run_all.py --study small_models --only 01 --set &#x27;roles=[&#x27;" in html
    assert "--set seed=7" in html


def test_showing_goes_through_ipythons_display(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, Any]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **options: seen.append((data, options)))
    Page.open("01", "small_models").shows(["a"], ["b"])
    assert seen[0][1]["raw"] is True
    assert "text/plain" in seen[0][0]


def test_a_name_that_papermill_set_and_the_notebook_does_not_have_is_refused() -> None:
    cells = ["", "study = 'small_models'\nseed = 0", "# Parameters\nseeed = 3\n"]
    with pytest.raises(NotebookError, match=r"papermill set 'seeed', which is no parameter .* those are study, seed"):
        Page.open("13", "small_models", variables={"In": cells})
    Page.open("13", "small_models", variables={"In": [*cells[:2], "# Parameters\nseed = 3\n"]})

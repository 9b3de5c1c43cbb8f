"""Figures of notebooks 07 and 08, and an animation: what is drawn is what was measured, the same bytes each time."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

import lnsim
from lnsim.errors import NotebookError
from lnsim.paths import project_root
from lnsim.render import markup, plots
from lnsim.render import page as page_module
from lnsim.render.plots.style import readable
from lnsim.render.prose import clean_html
from lnsim.render.saving import figure_bytes, save_animation
from lnsim.study.catalog import list_studies, load_study

ROLES = ["post_attention", "post_mlp"]
LABELS = {"a": "MiniLM", "b": "e5"}
COLOURS = {"MiniLM": "#332288", "e5": "#88ccee"}
STEPS = {0.0: (0.955, 17.2), 1.0: (-0.602, 127.0)}
"""Cosine and angle of the two example vectors as they are, and less their means."""


@pytest.fixture(scope="module")
def models() -> dict[str, lnsim.NormVectors]:
    return {"a": lnsim.load("all-minilm-l6-v2"), "b": lnsim.load("multilingual-e5-small")}


def toy(*steps: float) -> pd.DataFrame:
    """Two vectors of three channels while their means are taken away."""
    raw = np.array([[0.95, 0.7, 0.72], [0.7, 1.05, 0.72]])
    frames = [
        pd.DataFrame(raw - step * raw.mean(axis=1, keepdims=True), columns=["x", "y", "z"]).assign(
            step=step, vector=["A", "B"], cosine=STEPS[round(step)][0], angle=STEPS[round(step)][1]
        )
        for step in steps
    ]
    return pd.concat(frames, ignore_index=True)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def lines(ax: plt.Axes) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()]


def test_the_panels_in_space_print_cosine_r_and_both_angles() -> None:
    figure = plots.mean_removal_panels(toy(0, 1))
    texts = [text.get_text() for text in figure.texts]
    assert texts[0] == "as they are: cosine 0.955, 17.2°"
    assert texts[1] == "less their means: r −0.602, 127.0°"
    assert len(figure.axes) == 2


def test_an_animation_is_the_same_bytes_twice_and_has_a_picture_for_each_step(tmp_path: Path) -> None:
    frame = toy(0, 0.5, 1)
    one, two = (save_animation(plots.mean_removal_moving(frame), tmp_path / str(n), "07_toy") for n in (1, 2))
    assert one == two == (tmp_path / "1" / "07_toy.gif").read_bytes()
    with Image.open(io.BytesIO(one)) as picture:
        assert picture.format == "GIF"
        assert picture.n_frames == 3
    assert [path.name for path in (tmp_path / "1").iterdir()] == ["07_toy.gif"]


def test_an_animation_waits_behind_a_button_with_its_alt_text_and_passes_the_allow_list() -> None:
    html = clean_html(markup.animation(b"GIF89a", "two vectors <move>", "Figure 2.", "They part.", "Slowly."))
    assert '<details class="motion"><summary>' in html
    assert "open" not in html.split("<summary>")[0]
    assert 'src="data:image/gif;base64,' in html
    assert 'alt="two vectors &lt;move&gt;"' in html
    with pytest.raises(NotebookError, match="it has no alt text"):
        markup.animation(b"GIF89a", " ", "Figure 2.", "They part.", "Slowly.")


@pytest.mark.parametrize(("kind", "mark"), [("stored", ""), ("replica", "REPLICA. ")])
def test_a_page_numbers_an_animation_marks_a_replica_and_frees_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mark: str
) -> None:
    shutil.copytree(project_root() / "data" / "studies", tmp_path / "data" / "studies")
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(page_module, "_show", lambda data, metadata=None: shown.append(data))
    page = page_module.Page.open("07", "solar_glm", seed=None)
    page.kind = kind
    moving = plots.mean_removal_moving(toy(0, 1))
    page.animation(moving, "mean_removal", "They part.", "Slowly.", alt="two vectors")
    assert f"<b>{mark}Figure 1. They part.</b>" in shown[0]["text/html"]
    assert any(text.get_text() == "REPLICA" for text in moving.figure.texts) is bool(mark)
    assert (tmp_path / "figures" / "solar_glm" / "07_mean_removal.gif").is_file()
    assert not plt.get_fignums()


def test_curves_are_the_measured_ones(models: dict[str, lnsim.NormVectors]) -> None:
    curves = lnsim.cells(models, [("a", "b")], ROLES[:1]).rename(columns={"layer_a": "layer", "pearson": "r"})
    curves = curves[curves.offset == 0].assign(pair="MiniLM × e5", null_std=0.05)
    figure = plots.cosine_and_r(curves, curves.iloc[:1])
    drawn = lines(figure.axes[0])
    assert any(np.array_equal(line, curves["cosine"]) for line in drawn)
    assert any(np.array_equal(line, curves["r"]) for line in drawn)
    assert [text.get_text() for text in figure.axes[0].texts] == ["r", "cosine"]


def test_statistics_have_a_line_for_each_model(models: dict[str, lnsim.NormVectors]) -> None:
    frame = lnsim.statistics({LABELS[key]: one for key, one in models.items()}, ROLES)
    drawn = plots.statistics_panels(frame, COLOURS)
    assert [len(ax.get_lines()) for ax in drawn.axes] == [2, 2, 2, 2, 2, 2, 4, 4]


def test_placed_panels_keep_their_places_when_they_are_saved(models: dict[str, lnsim.NormVectors]) -> None:
    frame = lnsim.statistics({LABELS[key]: one for key, one in models.items()}, ROLES)
    figure = plots.statistics_panels(frame, COLOURS)
    before = [ax.get_position().bounds for ax in figure.axes]
    assert figure_bytes(figure, "svg") == figure_bytes(figure, "svg")
    assert [ax.get_position().bounds for ax in figure.axes] == before


@pytest.mark.parametrize("study", list_studies())
def test_every_models_name_can_be_read_in_its_colour(study: str) -> None:
    for colour in load_study(study).colours.values():
        red, green, blue = (
            ((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(readable(colour))
        )
        assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.45

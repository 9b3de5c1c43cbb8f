"""An animation: the same bytes each time, nothing moves unasked; and every model's name can be read in its colour."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.animation import FuncAnimation
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from report_notebooks import project

from lnsim import plots
from lnsim.errors import NotebookError
from lnsim.plots.style import readable
from lnsim.report import markup
from lnsim.report import page as page_module
from lnsim.report.prose import clean_html
from lnsim.report.saving import PAGE_VARIABLE, save_animation
from lnsim.study.catalog import list_studies, load_study


def moving(n_frames: int = 2) -> tuple[Figure, FuncAnimation]:
    """A point that climbs, a step a frame."""
    figure, (ax,) = plots.panels(1)

    def draw(number: int) -> None:
        ax.clear()
        ax.plot([0], [number], "o")
        ax.set(ylim=(0, n_frames), title=f"step {number}")

    return figure, FuncAnimation(figure, draw, n_frames)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_an_animation_is_the_same_bytes_twice_and_has_a_picture_for_each_step(tmp_path: Path) -> None:
    made = [moving(), moving()]
    one, two = (save_animation(drawn, on, tmp_path / str(n), "07_toy") for n, (on, drawn) in enumerate(made, 1))
    assert one == two == (tmp_path / "1" / "07_toy.gif").read_bytes()
    with Image.open(io.BytesIO(one)) as picture:
        assert picture.format == "GIF"
        assert picture.n_frames == 2
    assert [path.name for path in (tmp_path / "1").iterdir()] == ["07_toy.gif"]


def test_an_animation_waits_behind_a_button_with_its_alt_text_and_passes_the_allow_list() -> None:
    html = clean_html(markup.figure(b"GIF89a", "two vectors <move>", "Figure 2.", "They part.", "Slowly.", moving=True))
    assert '<details class="motion"><summary>' in html
    assert "open" not in html.split("<summary>")[0]
    assert 'src="data:image/gif;base64,' in html
    assert 'alt="two vectors &lt;move&gt;"' in html
    with pytest.raises(NotebookError, match="it has no alt text"):
        markup.figure(b"GIF89a", " ", "Figure 2.", "They part.", "Slowly.", moving=True)


@pytest.mark.parametrize(("kind", "mark"), [("stored", ""), ("replica", "REPLICA. ")])
def test_a_page_numbers_and_marks_an_animation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mark: str
) -> None:
    monkeypatch.setenv("LNSIM_HOME", str(project(tmp_path)))
    monkeypatch.setenv(PAGE_VARIABLE, str(tmp_path / "page"))
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(page_module, "_show", lambda data, metadata=None: shown.append(data))
    page = page_module.Page.open("07", "solar_glm")
    page.kind = kind
    figure, drawn = moving()
    page.figure(figure, "mean_removal", "They part.", "Slowly.", alt="two vectors", moving=drawn)
    assert f"<b>{mark}Figure 1. They part.</b>" in shown[0]["text/html"]
    assert any(text.get_text() == "REPLICA" for text in figure.texts) is bool(mark)
    assert (tmp_path / "page" / "figures" / "07_mean_removal.gif").is_file()
    assert not plt.get_fignums()


@pytest.mark.parametrize("study", list_studies())
def test_every_models_name_can_be_read_in_its_colour(study: str) -> None:
    for colour in load_study(study).colours.values():
        linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(readable(colour))]
        assert 1.05 / (np.dot((0.2126, 0.7152, 0.0722), linear) + 0.05) >= 4.45

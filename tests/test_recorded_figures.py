"""The recorded figures, as SVG: in matplotlib's own font, every word inside its figure and free of the others."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import pytest
from browser.figure_words import faults, words
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont

from lnsim.plots.style import style
from lnsim.report.saving import figure_bytes

FIGURES = Path(__file__).resolve().parents[1] / "figures"


@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_the_font_of_figures_is_a_file_of_matplotlib(weight: str) -> None:
    with mpl.rc_context(style):
        assert Path(findfont(FontProperties(weight=weight))).is_relative_to(mpl.get_data_path())


@pytest.mark.parametrize("study", ["small_models", "zoo"])  # git leaves out those of a replica
def test_no_word_leaves_its_figure_or_meets_another_and_all_are_drawn_in_the_same_font(study: str) -> None:
    figures = sorted((FIGURES / study).glob("*.svg"))
    fonts = {font for path in figures for font in re.findall(r'<path id="([A-Za-z-]+)-[0-9a-f]+"', path.read_text())}
    assert [fault for path in figures for fault in faults(path)] == []
    assert sum(len(words(path)) for path in figures) > 100
    assert fonts <= {"DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"}


def test_words_that_leave_a_figure_or_meet_are_found(tmp_path: Path) -> None:
    figure = Figure(figsize=(2, 1))
    for x, y, said in [(0.1, 0.5, "one"), (0.14, 0.5, "two"), (0.9, 0.2, "a long text")]:
        figure.text(x, y, said)
    path = tmp_path / "01_a.svg"
    path.write_bytes(figure_bytes(figure, "svg"))
    found = list(faults(path))
    assert len(found) == 2
    assert "'a long text' leaves the figure" in found[0]
    assert "'one' and 'two' overlap" in found[1]

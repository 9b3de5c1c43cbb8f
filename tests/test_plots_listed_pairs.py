"""Tests of the figure of listed pairs."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd

from lnsim.render import plots
from lnsim.render.plots.style import GROUP_COLOURS

FRAME = pd.DataFrame(
    {
        "pair": ["A × B", "A × B", "C × A", "C × A"],
        "norms": ["attention", "MLP", "encoder attention", "decoder attention"],
        "group": ["related", "related", "independent", "independent"],
        "cosine": [1.0, 0.99, 0.95, 0.9],
        "r": [1.0, 0.9, 0.02, -0.05],
        "null_low": [-0.08, -0.07, -0.06, -0.05],
        "null_high": [0.08, 0.07, 0.06, 0.05],
    }
)


def test_a_pair_has_one_row_and_a_tower_a_row_of_its_own() -> None:
    figure = plots.cosines_beside_r(FRAME)
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["A × B", "C × A, encoder", "C × A, decoder"]
    assert [ax.get_title("left") for ax in (left, right)] == ["Cosine: all alike", "Centred correlation: apart"]
    plt.close(figure)


def test_every_mark_lies_over_its_own_null_in_the_colour_of_its_group() -> None:
    figure = plots.cosines_beside_r(FRAME)
    right = figure.axes[1]
    marks = {}
    for line in right.lines:
        marks |= dict.fromkeys(zip(line.get_xdata(), line.get_ydata(), strict=True), line.get_color())
    assert {x: colour for (x, _), colour in marks.items()} == {
        1.0: GROUP_COLOURS["related"],
        0.9: GROUP_COLOURS["related"],
        0.02: GROUP_COLOURS["independent"],
        -0.05: GROUP_COLOURS["independent"],
    }
    bars = sorted((round(bar.get_y() + bar.get_height() / 2, 6), round(bar.get_x(), 6)) for bar in right.patches)
    assert [x for _, x in bars] == list(FRAME["null_low"])
    assert [y for y, _ in bars] == sorted(round(float(y), 6) for _, y in marks)
    plt.close(figure)

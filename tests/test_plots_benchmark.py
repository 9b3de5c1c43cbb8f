"""Tests of the figures of a contest of methods."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lnsim.render import plots
from lnsim.render.plots.benchmark import NEAREST

CURVE = pd.DataFrame({"false": [0.0, 0.0, 0.5, 1.0], "true": [0.0, 0.8, 1.0, 1.0]})
NAMES = {"cosine": "raw cosine", "pearson": "Pearson"}


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_a_curve_is_drawn_for_every_method_in_every_panel() -> None:
    figure = plots.roc_panels({"one": {"a": CURVE, "b": CURVE}, "other": {"a": CURVE, "b": CURVE}})
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "other"]
    assert all(len(ax.lines) == 3 for ax in figure.axes)
    assert figure.axes[0].lines[1].get_ydata().tolist() == CURVE["true"].tolist()


def test_every_kind_has_a_row_with_its_number_of_pairs_and_blind_ones_a_band() -> None:
    frame = pd.DataFrame(
        [
            {"kind": kind, "blind": kind == "hidden", "n": n, "method": method, "area": area, "low": 0.4, "high": 1.0}
            for kind, n in (("light", 4), ("hidden", 12))
            for method, area in (("cosine", 0.5), ("pearson", 1.0))
        ]
    )
    ax = plots.area_dots(frame, NAMES)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["light (4)", "hidden (12)"]
    assert len(ax.patches) == 1
    marks = [line for line in ax.lines if line.get_marker() in "os"]
    assert [line.get_xdata().tolist() for line in marks] == [[0.5, 0.5], [1.0, 1.0]]
    assert ax.get_ylim() == (1.5, -0.5)


def test_equal_vectors_stand_at_the_edge_and_undefined_ones_are_not_drawn() -> None:
    truth = pd.DataFrame({"kind": ["a", "a", "b"], "group": ["derived", "derived", "independent"]})
    scores = pd.DataFrame({"cosine": [1.0, 0.9, 0.99], "pearson": [1.0, np.nan, 0.0]})
    figure = plots.values_by_kind(truth, scores)
    left, right = figure.axes
    assert left.lines[0].get_xdata().tolist() == pytest.approx([NEAREST, 0.1])
    assert right.lines[0].get_xdata().tolist() == [1.0]
    assert left.get_xscale() == "log"
    assert left.get_xlim()[0] > left.get_xlim()[1]


def test_the_thumbnail_names_its_lines() -> None:
    ax = plots.benchmark_thumbnail({"cosine": CURVE, "Pearson": CURVE})
    assert [text.get_text() for text in ax.texts] == ["cosine", "Pearson"]

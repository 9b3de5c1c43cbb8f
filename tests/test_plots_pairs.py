"""Tests of the figures of pairs: layers by distance, the map of models, kinds, curves, and the null."""

from __future__ import annotations

import functools
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from lnsim.errors import NotebookError
from lnsim.render.plots.distance import by_distance, distance_thumbnail
from lnsim.render.plots.groups import groups_thumbnail, kind_strips, pair_curves, pairs_against_null
from lnsim.render.plots.model_matrix import model_matrix
from lnsim.render.plots.style import INDEPENDENT, INK, RELATED
from lnsim.render.saving import figure_bytes

COLOURS = {"A": "#112233", "B": "#445566"}


def distances() -> pd.DataFrame:
    rows = [
        ("A", "within", 1, 0.98, 0.8, 0.02),
        ("A", "within", 2, 0.95, 0.5, 0.03),
        ("B", "within", 1, 0.97, 0.7, 0.02),
        ("A × B", "independent", 0, 0.96, 0.01, 0.02),
        ("A × B", "independent", 1, 0.95, -0.01, 0.04),
        ("A × C", "related", 0, 0.99, 0.9, 0.02),
    ]
    return pd.DataFrame(rows, columns=["name", "group", "distance", "cosine_mean", "r_mean", "null_std"])


def pairs() -> pd.DataFrame:
    rows = [
        ("A × B", "independent", "MoE × dense", 0.96, 0.01),
        ("A × C", "related", "MoE × MoE", 0.99, 0.90),
        ("B × C", "disputed", "MoE × dense", 0.95, 0.02),
        ("B × D", "independent", "dense × dense", 0.94, -0.02),
    ]
    frame = pd.DataFrame(rows, columns=["pair", "group", "kinds", "cosine", "r"])
    return frame.assign(cosine_mean=frame["cosine"], mean_term=0.95, r_mean=frame["r"], null_std=0.02)


def curves() -> pd.DataFrame:
    return pd.concat([pairs().assign(layer=layer) for layer in range(4)], ignore_index=True)


def matrix(value: float) -> pd.DataFrame:
    found = pd.DataFrame(value, index=list("ABC"), columns=list("ABC"))
    found.loc["A", "C"] = found.loc["C", "A"] = np.nan
    return found


FIGURES: dict[str, Callable[[], Axes | Figure]] = {
    "distance": lambda: by_distance(distances(), COLOURS),
    "distance, one model": lambda: by_distance(distances().head(2), COLOURS),
    "distance, thumbnail": lambda: distance_thumbnail(distances().rename(columns={"r_mean": "r"})),
    "matrix": lambda: model_matrix(matrix(0.97), matrix(0.1), [("A", "B")]),
    "kinds": lambda: kind_strips(pairs()),
    "curves": lambda: pair_curves(curves(), ["A × C", "not there"]),
    "null": lambda: pairs_against_null(pairs()),
    "null, thumbnail": lambda: groups_thumbnail(pairs()),
}


@pytest.fixture(autouse=True)
def _close() -> object:
    yield
    plt.close("all")


def whole(drawn: Axes | Figure) -> Figure:
    return drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)


TWICE_EVERY_DAY = ("distance, thumbnail", "matrix", "curves")
"""A panel, a map and labelled lines; CI draws the figures of notebooks 00, 01, 05 and 10 twice as well."""


@functools.cache
def drawn(name: str) -> bytes:
    """A figure as it is saved, drawn once for both questions to it."""
    figure = whole(FIGURES[name]())
    assert not figure.legends
    assert not any(ax.get_legend() for ax in figure.axes)
    return figure_bytes(figure, "svg")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_and_has_no_legend(name: str) -> None:
    assert drawn(name).endswith(b"</svg>\n")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in TWICE_EVERY_DAY else [pytest.mark.slow]) for name in FIGURES]
)
def test_every_figure_draws_the_same_bytes_twice(name: str) -> None:
    assert figure_bytes(whole(FIGURES[name]()), "svg") == drawn(name)


def test_models_have_their_own_colours_and_pairs_those_of_their_group() -> None:
    axes = by_distance(distances(), COLOURS).axes
    assert [line.get_color() for line in axes[0].lines] == ["#112233", "#445566"]
    assert [line.get_color() for line in axes[1].lines] == [INDEPENDENT, RELATED]
    assert axes[0].get_ylim() == axes[1].get_ylim()
    assert [text.get_text() for text in axes[3].texts] == ["independent, 1 pair", "related, 1 pair"]


def test_the_null_band_is_the_widest_of_the_pairs() -> None:
    band = by_distance(distances(), COLOURS).axes[3].collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(1.96 * 0.04)


def test_a_panel_without_pairs_says_so() -> None:
    axes = by_distance(distances().head(2), COLOURS).axes
    assert [text.get_text() for text in axes[3].texts] == ["none to compare"]


def test_a_map_prints_its_limits_and_what_cannot_be_compared() -> None:
    figure = model_matrix(matrix(0.97), matrix(-0.1), [("B", "A")])
    cells = [text.get_text() for text in figure.axes[0].texts]
    assert cells == [".97", "none", ".97", "−.10", "none", "−.10"]
    ticks = [[label.get_text() for label in bar.get_yticklabels()] for bar in figure.axes[1:]]
    assert ticks == [["0.95", "1"], ["−1", "0", "1"]]
    assert len(figure.axes[0].patches) == 2


def test_a_map_of_other_models_or_beyond_its_limits_is_refused() -> None:
    with pytest.raises(NotebookError, match=r"cosine has \['A', 'B', 'C'\], r has \['A', 'B'\]"):
        model_matrix(matrix(0.97), matrix(0.1).loc[["A", "B"], ["A", "B"]], [])
    with pytest.raises(NotebookError, match="a value lies outside its limits, -1 to 1"):
        model_matrix(matrix(0.97), matrix(1.5), [])


def test_a_row_of_marks_has_a_mean_with_and_one_without_the_related() -> None:
    axes = kind_strips(pairs()).axes
    bars = [sorted({segment[0][0] for one in ax.collections for segment in one.get_segments()}) for ax in axes]
    assert bars[0] == pytest.approx([0.94, 0.955, 0.99])
    words = [label.get_text() for label in axes[0].get_yticklabels()]
    assert words == ["dense × dense\n1 pair", "MoE × MoE\n1 pair", "MoE × dense\n2 pairs"]


def test_only_the_named_pairs_are_labelled() -> None:
    axes = pair_curves(curves(), ["A × C", "not there"]).axes
    assert [text.get_text() for text in axes[1].texts] == ["A × C"]
    assert max(line.get_linewidth() for line in axes[0].lines) == 2.2


def test_a_group_keeps_one_colour_in_every_figure() -> None:
    left, right = pairs_against_null(pairs()).axes
    marks = {to_hex(line.get_color()) for line in (*left.lines, *right.lines) if line.get_marker() != "None"}
    assert marks == {RELATED, INDEPENDENT, INK}

"""Tests of the figures of how γ began: each mark where its number says, each stroke where the closed form says."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from lnsim.render.plots.initialisation import cosine_and_r_by_start, r_by_layer, start_thumbnail

PAIRS = pd.DataFrame(
    {
        "architecture": ["Llama", "Llama", "GPT-2", "GPT-2"],
        "first_gamma": ["1", "N(0, 1)", "1", "N(0, 1)"],
        "predicted": [1.0, 0.0, 1.0, 0.0],
        "cosine": [0.99, -0.3, 0.98, 0.02],
        "r": [0.01, -0.02, 0.4, 0.03],
    }
)
LAYERS = pd.DataFrame(
    [
        {"architecture": name, "role": role, "layer": layer, "r": 0.1 * layer}
        for name in ("Llama", "GPT-2")
        for role in ("pre_attention", "pre_mlp")
        for layer in (0, 1, 2)
        for _ in range(2)
    ]
)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def marks(ax: Axes) -> dict[str, list[list[float]]]:
    """Places of the marks by the kind of mark."""
    lines = [line for line in ax.lines if line.get_linestyle() == "None"]
    return {str(line.get_marker()): np.column_stack(line.get_data()).tolist() for line in lines}


def test_each_pair_stands_at_its_cosine_and_its_r_in_the_row_of_its_beginning() -> None:
    left, right = cosine_and_r_by_start(PAIRS, 100).axes
    for ax, column in ((left, "cosine"), (right, "r")):
        found = marks(ax)
        assert [x for x, _ in found["o"]] == PAIRS[column].tolist()[:2]
        assert [x for x, _ in found["s"]] == PAIRS[column].tolist()[2:]
        assert [round(y) for _, y in found["o"]] == [round(y) for _, y in found["s"]] == [0, 1]
    assert [label.get_text() for label in left.get_yticklabels()] == ["1", "N(0, 1)"]
    assert left.get_ylabel() == "γ began as"
    assert left.get_ylim() == (1.5, -0.5)


def test_a_stroke_marks_the_cosine_before_training_in_each_row() -> None:
    left = cosine_and_r_by_start(PAIRS, 100).axes[0]
    strokes = [line for line in left.lines if line.get_linestyle() == "-"]
    assert [set(line.get_xdata()) for line in strokes] == [{1.0}, {0.0}]


def test_the_band_is_two_over_the_root_of_the_channels() -> None:
    right = cosine_and_r_by_start(PAIRS, 100).axes[1]
    low, high = right.patches[0].get_extents().transformed(right.transData.inverted()).intervalx
    assert (low, high) == pytest.approx((-0.2, 0.2))
    assert right.get_xlim()[1] > 0.4
    upper = r_by_layer(LAYERS, 400).axes[0].patches[0]
    assert upper.get_extents().transformed(upper.axes.transData.inverted()).intervaly == pytest.approx([-0.1, 0.1])


def test_no_mark_is_cut_off_whatever_the_least_cosine() -> None:
    left = cosine_and_r_by_start(PAIRS, 100).axes[0]
    assert left.get_xlim()[0] < -0.3


def test_every_role_has_a_panel_with_all_pairs_near_their_layer_and_none_upon_another() -> None:
    figure = r_by_layer(LAYERS, 192)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["r, pre-attention", "r, pre-MLP"]
    for ax in figure.axes:
        places = np.array([place for kind in marks(ax).values() for place in kind])
        assert places.shape == (12, 2)
        assert 0.1 * np.round(places[:, 0]) == pytest.approx(places[:, 1])
        assert len(np.unique(places, axis=0)) == 12


def test_the_legend_names_the_architectures_once() -> None:
    figure = cosine_and_r_by_start(PAIRS, 100)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Llama", "GPT-2"]


def test_one_architecture_alone_stands_in_the_middle_of_its_row() -> None:
    left = cosine_and_r_by_start(PAIRS[:2], 100).axes[0]
    assert [y for _, y in marks(left)["o"]] == [0, 1]


def test_the_thumbnail_shows_the_cosines_with_few_words() -> None:
    ax = start_thumbnail(PAIRS)
    assert [x for x, _ in marks(ax)["o"]] == [0.99, -0.3]
    assert len(ax.get_title(loc="left").split()) <= 3

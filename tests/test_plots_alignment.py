"""Tests of the figures of alignments."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from lnsim.errors import NotebookError
from lnsim.render import plots
from lnsim.render.plots.style import GROUP_COLOURS

PAIRS = [("a × b", "related"), ("a × c", "independent"), ("b × c", "disputed")]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def stack_map(value: float = 0.5, block: bool = False) -> pd.DataFrame:
    names = [str(layer) for layer in range(6)]
    frame = pd.DataFrame(np.full((6, 6), value), index=names, columns=names)
    if block:
        frame[""], frame["MTP"] = np.nan, 0.1
    return frame.rename_axis(index="a", columns="b")


def offsets() -> pd.DataFrame:
    rows = [(pair, group, "pre_mlp", k, 0.95, 0.9 - 0.1 * abs(k)) for pair, group in PAIRS for k in range(-4, 5)]
    return pd.DataFrame(rows, columns=["pair", "group", "role", "offset", "cosine", "r"])


def nearest() -> pd.DataFrame:
    rows = [(pair, group, "pre_mlp", k, k, 0.3 + 0.1 * k) for pair, group in PAIRS for k in range(5)]
    return pd.DataFrame(rows, columns=["pair", "group", "role", "layer_a", "layer_b", "value"])


def test_maps_of_r_are_symmetric_about_zero_with_their_ends_printed() -> None:
    figure = plots.stack_maps([("a × b", "related", stack_map()), ("a × c", "independent", stack_map(-0.2))], "r")
    first, second, bar = figure.axes[0], figure.axes[1], figure.axes[-1]
    assert first.images[0].get_clim() == second.images[0].get_clim() == (-1.0, 1.0)
    assert [label.get_text() for label in bar.get_xticklabels()] == ["−1", "0", "1"]
    assert (
        to_hex(first.title.get_color() if first.get_title() else first._left_title.get_color())
        == (GROUP_COLOURS["related"])
    )


def test_the_scale_of_cosines_begins_at_or_under_the_least() -> None:
    figure = plots.stack_maps(
        [("a × b", "related", stack_map(0.93)), ("a × c", "independent", stack_map(0.99))], "cosine"
    )
    low, high = figure.axes[0].images[0].get_clim()
    assert (round(low, 6), high) == (0.9, 1.0)


def test_the_mtp_block_is_labelled_and_its_gap_stays_blank() -> None:
    figure = plots.stack_maps([("a × b", "related", stack_map(block=True))], "r")
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels[-1] == "MTP"
    assert "" not in labels
    assert np.ma.getmaskarray(figure.axes[0].images[0].get_array())[:, 6].all()


def test_equal_layer_numbers_are_dotted_and_the_block_is_not() -> None:
    figure = plots.stack_maps([("a × b", "related", stack_map(block=True))], "r")
    dots = figure.axes[0].lines[0]
    assert list(dots.get_xdata()) == list(dots.get_ydata()) == [0, 1, 2, 3, 4, 5]


def test_a_value_outside_the_scale_is_refused() -> None:
    with pytest.raises(NotebookError, match=r"values from 1\.500 to 1\.500 leave -1 to 1"):
        plots.stack_maps([("a × b", "related", stack_map(1.5))], "r")


def test_offsets_have_one_panel_a_pair_on_one_scale() -> None:
    figure = plots.mean_by_offset(offsets(), "pre_mlp")
    drawn = [ax for ax in figure.axes if ax.lines]
    assert [ax.get_title(loc="left") for ax in drawn] == [pair for pair, _ in PAIRS]
    assert len({ax.get_ylim() for ax in drawn}) == 1
    assert all(0 in ax.get_xticks() for ax in drawn)


def test_best_partners_below_one_half_are_open() -> None:
    figure = plots.nearest_layers(nearest(), "pre_mlp")
    _, sure, unsure = figure.axes[0].lines
    assert list(sure.get_xdata()) == [2, 3, 4]
    assert list(unsure.get_xdata()) == [0, 1]
    assert unsure.get_markerfacecolor() == "none"


def test_a_mean_r_beyond_the_enlarged_panel_points_outwards() -> None:
    rows = pd.DataFrame(
        {"pair": ["a × b", "a × c"], "group": ["related", "independent"], "role": "pre_mlp",
         "r_mean": [0.99, 0.01], "null_std": [0.04, 0.04]}
    )  # fmt: skip
    whole, enlarged = plots.null_of_mean_r(rows).axes
    assert [line.get_marker() for line in enlarged.lines[:2]] == [">", "s"]
    assert [float(line.get_xdata()[0]) for line in whole.lines[:2]] == [0.99, 0.01]
    assert whole.patches[0].get_width() == pytest.approx(2 * 1.96 * 0.04)


def test_the_thumbnail_has_a_line_a_pair() -> None:
    ax = plots.alignment_thumbnail(offsets(), "pre_mlp")
    assert [to_hex(line.get_color()) for line in ax.lines] == [GROUP_COLOURS[group] for _, group in PAIRS]

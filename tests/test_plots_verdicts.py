"""Tests of the figure of p against p by ranks."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from lnsim.render.plots.style import GROUP_COLOURS
from lnsim.render.plots.verdicts import p_against_ranks, p_thumbnail

TESTS = pd.DataFrame(
    {
        "group": ["related", "independent", "independent", "disputed"],
        "pvalue": [0.002, 0.006, None, 0.7],
        "p_ranks": [0.002, 0.18, None, 0.5],
        "p_holm": [0.006, 0.012, None, 0.7],
        "p_ranks_holm": [0.006, 0.36, None, 0.5],
    }
)


def test_every_test_is_a_mark_in_the_colour_of_its_group() -> None:
    ax = p_against_ranks(TESTS)
    marks = {(x, y): line.get_color() for line in ax.lines[2:] for x, y in line.get_xydata()}
    expected = {(0.002, 0.002): "related", (0.006, 0.18): "independent", (0.7, 0.5): "disputed"}
    assert marks == {place: GROUP_COLOURS[group] for place, group in expected.items()}
    plt.close(ax.figure)


def test_a_mark_is_solid_where_both_hold_after_adjustment() -> None:
    ax = p_against_ranks(TESTS)
    solid = [tuple(line.get_xydata()[0]) for line in ax.lines[2:] if line.get_markerfacecolor() != "none"]
    assert solid == [(0.002, 0.002)]
    plt.close(ax.figure)


def test_the_level_is_drawn_on_both_scales() -> None:
    ax = p_against_ranks(TESTS)
    assert [line.get_ydata()[0] for line in ax.lines[:1]] == [0.05]
    assert [line.get_xdata()[0] for line in ax.lines[1:2]] == [0.05]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlim()[0] == pytest.approx(0.001)
    plt.close(ax.figure)


def test_the_thumbnail_holds_the_same_marks() -> None:
    ax = p_thumbnail(TESTS)
    assert sum(len(line.get_xdata()) for line in ax.lines[2:]) == 3
    plt.close(ax.figure)

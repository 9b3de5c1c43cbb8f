"""Figures of published numbers: labelled data in, everything that was given is drawn."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from studies.claims import report


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


COUNTS = pd.DataFrame({"reproduced": [1, 20], "contradicted": [30, 2]}, index=["000", "001"])


def test_a_bar_has_a_part_for_each_verdict_and_numbers_where_they_fit() -> None:
    figure = report.verdict_bars(COUNTS)
    (ax,) = figure.axes
    assert len(ax.patches) == COUNTS.size
    assert {text.get_text() for text in ax.texts} == {"20", "30", "2"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(COUNTS.columns)


def test_a_printed_cosine_stands_beside_its_interval_on_a_scale_that_parts_those_near_one() -> None:
    table = pd.DataFrame(
        {"layer_a": [0, 3], "layer_b": [0, 5], "printed": [0.95, 0.94], "least": [-0.7, 0.97], "most": [1.0, 0.99],
         "stored": [0.1, float("nan")]}
    )  # fmt: skip
    ax = report.printed_against_possible(table)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "3, 5"]
    assert ax.get_yscale() == "log"
    low, high = sorted(ax.get_ylim())
    assert all(low <= bar.get_y() and bar.get_y() + bar.get_height() <= high for bar in ax.patches)


def test_shares_read_off_stand_over_the_band_that_rounding_gives() -> None:
    frame = pd.DataFrame(
        {"layer": [0, 40], "read_off": [96, 0.1], "from_mean_change": [91, 0.05], "from_share": [96, 13]}
    )
    ax = report.rounding_alone(frame)
    assert list(ax.lines[-1].get_ydata()) == [96, 0.1]
    assert ax.get_yscale() == "log"


def test_the_thumbnail_names_the_contradicted_rows() -> None:
    ax = report.claims_thumbnail(pd.Series({"reproduced": 3, "contradicted": 2}))
    assert [text.get_text() for text in ax.texts] == ["2 contradicted"]
    assert ax.get_xlabel() == "of 5"

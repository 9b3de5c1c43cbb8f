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

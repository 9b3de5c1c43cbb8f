"""What notebook 10 computes of the published numbers, against its record; and how it is shown."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from notebook_cells import check_on_record, computed

from studies.claims import report
from studies.claims.intervals import Interval


def test_verdicts_findings_and_the_control_of_the_rules_are_those_on_record() -> None:
    found = computed("10", "moved")
    fits = found.pop("fits")[["allowed", "fits"]]
    tables = {"printed_table": found["table"], "groups": fits} | {
        name: found[name] for name in ("counts", "others", "rows", "sigma", "rounding", "moved")
    }
    for name, table in tables.items():
        check_on_record("solar_glm", f"10_{name}", table)


@pytest.mark.parametrize(
    ("low", "high", "half", "text"),
    [
        (0.12724, 0.12726, 5e-5, "0.12725"),
        (-0.5, 0.5, 0.005, "−0.500 to 0.500"),
        (float("-inf"), 145.0, 5.0, "at most 145"),
        (104857600.0, float("inf"), 5e6, "at least 1.05e08"),
    ],
)
def test_a_number_has_one_digit_more_than_the_printed_one(low: float, high: float, half: float, text: str) -> None:
    assert report.number_text(Interval(low, high), half) == text


def test_a_bar_has_a_part_for_each_verdict_and_numbers_where_they_fit() -> None:
    counts = pd.DataFrame({"reproduced": [1, 20], "contradicted": [30, 2]}, index=["000", "001"])
    figure = report.verdict_bars(counts)
    (ax,) = figure.axes
    assert len(ax.patches) == counts.size
    assert {text.get_text() for text in ax.texts} == {"20", "30", "2"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(counts.columns)
    plt.close(figure)

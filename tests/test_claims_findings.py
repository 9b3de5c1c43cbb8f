"""The numbers that the main findings are computed from, the control of the rules, and how both are shown."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from published_claims import corpus

from studies.claims import findings, judging, report
from studies.claims.intervals import Interval


def test_the_printed_table_stands_beside_what_is_known_of_its_shares() -> None:
    cells = findings.printed_cells(corpus())
    assert len(cells) == 15
    assert cells.layer_a.tolist() == [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 0, 10, 20, 25, 35]
    for name in ("printed", "r", "share_a", "share_b"):
        assert (cells[f"{name}_low"] < cells[f"{name}_high"]).all()
    known = cells.dropna(subset="stored")
    a, b, r = known.share_a_low, known.share_b_low, known.stored_r
    assert np.allclose(a * b + r * np.sqrt(1 - a**2) * np.sqrt(1 - b**2), known.stored, atol=1e-4)


def test_the_four_group_numbers_are_found_with_their_finest_print() -> None:
    groups = findings.printed_groups(corpus())
    assert groups.printed == pytest.approx((0.9722, 0.0178, 0.9738, 0.0183))
    assert (len(groups.first), len(groups.second)) == (4, 4)
    assert list(groups.first.values()) == pytest.approx([0.98524, 0.99564, 0.9922, 0.9540], abs=1e-4)


def test_strangers_miss_the_group_numbers_and_one_related_pair_meets_them() -> None:
    groups = findings.printed_groups(corpus())
    assert findings.fit(groups, 3 / 64)[1] > 20 * groups.half
    r, miss = findings.fit(groups, 3 / 64, 3 * len(groups.second))
    assert miss < groups.half
    assert abs(r) > 0.4


def test_the_sigma_comes_back_only_with_the_pooled_population_spread() -> None:
    claim, first, second, baseline = findings.effect_values(corpus())
    assert (len(first), len(second)) == (4, 4)
    sizes = [(first.mean() - second.mean()) / np.sqrt((first.var(ddof=d) + second.var(ddof=d)) / 2) for d in (0, 1)]
    assert [Interval(size, size).meets(claim.allowed) for size in sizes] == [True, False]
    assert sizes[1] == pytest.approx(157.6, abs=0.05)
    assert baseline < 0.2 < first.min()


def test_shares_that_were_read_off_stand_beside_the_moments_of_their_layers() -> None:
    frame = findings.read_off(corpus())
    assert frame.layer.tolist() == [0, 1, 2, 3, 5, 10, 13, 20, 30, 40]
    assert frame.read_off.iloc[[0, -1]].tolist() == [96, 0.1]
    assert frame.mean_change[0] * np.sqrt(np.pi / 2) == pytest.approx(5.64e-4, rel=1e-3)
    assert frame[["mean", "std"]].notna().all(axis=None)


@pytest.mark.parametrize(
    ("low", "high", "half", "text"),
    [
        (0.12724, 0.12726, 5e-5, "0.12725"),
        (-0.5, 0.5, 0.005, "−0.500 to 0.500"),
        (float("-inf"), 145.0, 5.0, "at most 145"),
        (104857600.0, float("inf"), 5e6, "at least 1.05e08"),
        (46.0, 46.0, 0.0, "46"),
        (5e-6, 5e-6, 5e-7, "5e-06"),
    ],
)
def test_a_number_has_one_digit_more_than_the_printed_one(low: float, high: float, half: float, text: str) -> None:
    assert report.number_text(Interval(low, high), half) == text


def test_right_numbers_pass_as_printed_and_are_found_once_moved() -> None:
    tried = judging.moved(corpus(), [0, 2]).set_index("units")
    assert tried.numbers[0] >= 100
    assert tried.contradicted[0] == 0
    assert tried.share[2] > 0.9


def test_a_bar_has_a_part_for_each_verdict_and_numbers_where_they_fit() -> None:
    counts = pd.DataFrame({"reproduced": [1, 20], "contradicted": [30, 2]}, index=["000", "001"])
    figure = report.verdict_bars(counts)
    (ax,) = figure.axes
    assert len(ax.patches) == counts.size
    assert {text.get_text() for text in ax.texts} == {"20", "30", "2"}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(counts.columns)
    plt.close(figure)

"""The arithmetic of the main findings, and the control of the rules."""

from __future__ import annotations

import numpy as np
import pytest
from published_claims import corpus

from studies.claims import findings, judging, report
from studies.claims.intervals import Interval


def test_the_printed_table_lies_where_no_r_can_bring_it() -> None:
    table = findings.printed_table(corpus())
    assert len(table) == 15
    assert table[~table.possible].layer_a.tolist() == [10, 15, 20, 25, 30, 35, 40, 45, 0, 10, 20, 25, 35]
    known = table.dropna(subset="stored")
    assert ((known.least <= known.stored) & (known.stored <= known.most)).all()  # the stored ones are possible, all
    assert np.allclose(known.with_printed_r, known.stored, atol=0.03)


def test_the_four_group_numbers_are_found_with_their_finest_print() -> None:
    groups = findings.printed_groups(corpus())
    assert groups.printed == pytest.approx((0.9722, 0.0178, 0.9738, 0.0183))
    assert (len(groups.first), len(groups.second)) == (4, 4)
    assert list(groups.first.values()) == pytest.approx([0.98524, 0.99564, 0.9922, 0.9540], abs=1e-4)


def test_strangers_miss_the_group_numbers_and_one_related_pair_meets_them() -> None:
    groups = findings.printed_groups(corpus())
    bounded, _ = findings._fit(groups, np.full(22, 3 / 64), None)
    assert bounded > 20 * groups.half
    miss, r = findings._fit(groups, np.full(22, 3 / 64), 3 * len(groups.second))
    assert miss < groups.half
    assert abs(r) > 0.4


def test_the_slopes_of_the_group_numbers_are_their_slopes() -> None:
    groups = findings.printed_groups(corpus())
    shares = np.array(list(groups.first.values()))
    x = np.concatenate([[0.95, 0.96, 0.97, 0.98], np.linspace(-0.2, 0.3, 22)])
    _, slopes = findings._aggregates(x, shares, 4)
    step = 1e-6
    for place in range(len(x)):
        moved = [x + sign * step * (np.arange(len(x)) == place) for sign in (1, -1)]
        ends = [findings._aggregates(one, shares, 4)[0] for one in moved]
        assert np.allclose((ends[0] - ends[1]) / (2 * step), slopes[:, place], atol=1e-6)


def test_the_sigma_comes_back_only_with_the_pooled_population_spread() -> None:
    sizes = findings.effect_sizes(corpus()).set_index("divided_by").effect
    printed = findings.effect_claim(corpus()).allowed
    assert [name for name, value in sizes.items() if Interval(value, value).meets(printed)] == ["pooled std, ddof 0"]
    assert sizes["pooled std, ddof 1"] == pytest.approx(157.6, abs=0.05)
    assert sizes.iloc[-1] < 2
    assert findings.least_pvalue(corpus()) == 1 / 70


def test_rounding_alone_makes_the_share_of_changed_values_fall() -> None:
    frame = findings.by_rounding_alone(corpus()).set_index("layer")
    assert frame.attrs["size_from_mean_change"] == pytest.approx(5.64e-4, rel=1e-3)
    expected = {0: 91, 1: 73, 2: 56, 3: 13, 5: 8, 10: 4, 13: 0.6, 20: 0.08, 30: 0.05, 40: 0.05}
    for layer, share in expected.items():
        assert frame.from_mean_change[layer] == pytest.approx(share, rel=0.12), layer
    assert frame.from_share[0] == pytest.approx(96)


def test_right_numbers_pass_as_printed_and_are_found_once_moved() -> None:
    tried = judging.moved(corpus(), [0, 2]).set_index("units")
    assert tried.numbers[0] >= 100
    assert tried.contradicted[0] == 0
    assert tried.share[2] > 0.9


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
def test_a_number_is_written_with_one_digit_more_than_the_printed_one(
    low: float, high: float, half: float, text: str
) -> None:
    assert report.number_text(Interval(low, high), half) == text

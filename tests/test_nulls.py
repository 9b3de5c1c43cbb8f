"""Tests of null distributions."""

from __future__ import annotations

import numpy as np
import pytest
from made_vectors import drawn, made

from lnsim.errors import ComparisonError
from lnsim.measure.cells import cells
from lnsim.measure.nulls import holm, pvalue, shuffled_layers


@pytest.mark.parametrize(
    ("statistic", "null", "alternative", "expected"),
    [
        (3.0, [0.0, 1.0, 2.0, -2.0], "greater", 1 / 5),
        (1.0, [0.0, 1.0, 2.0, -2.0], "greater", 3 / 5),
        (-2.0, [0.0, 1.0, 2.0, -2.0], "two-sided", 3 / 5),
        (-9.0, [0.0, 1.0, 2.0, -2.0], "greater", 1.0),
        (10.0, [1.0] * 99, "greater", 0.01),  # never zero
        (0.1 + 0.2, [0.3], "greater", 1.0),  # a tie in all but the last bits is a hit
    ],
)
def test_p_counts_the_true_order_too(statistic: float, null: list[float], alternative: str, expected: float) -> None:
    found = pvalue(statistic, null, alternative)
    assert found.pvalue == expected
    assert (found.null_mean, found.null_std) == pytest.approx((np.mean(null), np.std(null)))


def test_an_empty_or_undefined_null_and_an_unknown_alternative_are_refused() -> None:
    for statistic, null in ((1.0, []), (1.0, [np.nan]), (np.nan, [1.0])):
        with pytest.raises(ComparisonError, match="all must be there and defined"):
            pvalue(statistic, null)
    with pytest.raises(ComparisonError, match="'less' is no alternative; known are two-sided and greater"):
        pvalue(1.0, [1.0], "less")


def test_holm_multiplies_by_the_tests_left_and_never_falls() -> None:
    assert holm([0.5, 0.01, 0.03]) == pytest.approx([0.5, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
    # A published minimum among thirteen tests is no finding.
    assert min(holm([0.0058, *np.linspace(0.1, 0.9, 12)])) == pytest.approx(0.0754)


def test_a_shuffle_keeps_values_and_loses_the_pattern() -> None:
    a, roles = drawn(0, layers=[0, 1, 3]), ["pre_mlp"]
    models = {"a": a, "b": made(a["pre_mlp"].scale + 0.01, [0, 1, 3]), "c": drawn(1, layers=[0, 1, 2, 3])}
    broken = shuffled_layers(models, roles, seed=3)
    assert (np.sort(broken["a"]["pre_mlp"].scale) == np.sort(models["a"]["pre_mlp"].scale)).all()
    assert (broken["a"]["pre_mlp"].scale == shuffled_layers({"a": models["a"]}, roles, 3)["a"]["pre_mlp"].scale).all()
    before, after = (cells(some, [("a", "b"), ("a", "c")], roles).groupby("b") for some in (models, broken))
    assert before.pearson.mean()["b"] > 0.2
    assert abs(after.pearson.mean()["b"]) < 0.1
    assert after.cosine.mean()["c"] == pytest.approx(before.cosine.mean()["c"], abs=0.01)

"""Tests of what is done to rows before they are measured: robust correlations, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from lnsim.measure.rows import CORRELATIONS, prepared, trimmed, winsorised


def row() -> np.ndarray:
    """0 to 40, with a far value at either end: the 5 % and 95 % quantiles are 2 and 38."""
    values = np.arange(41.0)
    values[0], values[40] = -900, 5000
    return values[None]


def test_winsorising_draws_extreme_values_in_to_the_quantiles() -> None:
    found = winsorised(row())[0]
    assert found[[0, 1, 2, 3, 37, 38, 39, 40]].tolist() == [2, 2, 2, 3, 37, 38, 38, 38]


def test_trimmed_values_count_as_the_mean_of_those_kept() -> None:
    found = trimmed(row())[0]
    assert found[[0, 1, 2, 38, 39, 40]].tolist() == [20, 20, 2, 38, 20, 20]
    assert found.mean() == 20


@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_every_preparation_goes_with_a_permutation_of_the_channels(correlation: str) -> None:
    rows = np.random.default_rng(0).standard_t(3, size=(3, 50))
    order = np.random.default_rng(1).permutation(50)
    assert prepared(rows[:, order], correlation) == pytest.approx(prepared(rows, correlation)[:, order])
    assert (prepared(rows, "pearson") == rows).all()

"""The synthetic models of notebook 12: drawn as measured, and permutation tests keep their word between them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from notebook_cells import defined
from scipy import stats

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise

cells = defined("12")
fitted = cells["fitted"]


def drawn_after(template: SimpleNamespace, n_channels: int, generator: np.random.Generator) -> np.ndarray:
    stack: np.ndarray = cells["stack"](template, cells["patterns"](template, n_channels, generator))
    return stack


def real() -> np.ndarray:
    return np.asarray(lnsim.load("all-minilm-l6-v2")["post_attention"].scale, dtype=float)


def test_a_drawn_stack_has_the_level_the_spread_and_the_likeness_of_layers_measured() -> None:
    rows, template = real(), fitted("A", "post_attention", real())
    drawn = drawn_after(template, 20_000, np.random.default_rng(0))
    assert np.median(drawn, axis=1) == pytest.approx(np.median(rows, axis=1), abs=0.01)
    for one in (drawn, rows):
        half = np.median(np.abs(one - np.median(one, axis=1, keepdims=True)), axis=1)
        assert half == pytest.approx(np.median(np.abs(rows - np.median(rows, axis=1, keepdims=True)), axis=1), rel=0.03)
    assert pairwise(drawn, drawn, "spearman") == pytest.approx(pairwise(rows, rows, "spearman"), abs=0.05)


def test_a_layer_without_spread_is_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(3, 20))
    rows[1, :15] = 1
    with pytest.raises(ComparisonError, match="Measuring A, pre_mlp: layer 1 has no spread"):
        fitted("A", "pre_mlp", rows)


@pytest.mark.parametrize("how", [{}, {"correlation": "spearman"}, {"statistic": "max"}], ids=["mean", "ranks", "max"])
def test_the_p_values_of_strangers_are_uniform(how: dict[str, str]) -> None:
    """Beyond 1 in 1,000 by Kolmogorov and Smirnov, and by the upper point of the binomial; the seeds are fixed."""
    template, pvalues = fitted("A", "post_attention", real()), []
    for place in range(400):
        generator = np.random.default_rng([0, place])
        a, b = (drawn_after(template, 128, generator) for _ in range(2))
        pvalues.append(lnsim.permutation_test(a, b, 99, place, **how).pvalue)
    steps = np.random.default_rng(1).uniform(size=len(pvalues)) / 100
    assert stats.kstest(pvalues - steps, "uniform").pvalue > 0.001
    for level in (0.05, 0.01):
        assert (np.array(pvalues) <= level).sum() <= stats.binom.ppf(0.999, len(pvalues), level)

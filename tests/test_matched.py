"""Tests of layers compared at equal numbers and of all cells at once: both agree with the general metrics."""

from __future__ import annotations

import numpy as np
import pytest
from made_vectors import drawn, made

from lnsim.errors import ComparisonError
from lnsim.measure.matched import MatchedRows
from lnsim.measure.metrics import pairwise, row_statistics


def test_only_layer_numbers_that_both_have_are_compared_and_none_shifts() -> None:
    whole, gap = drawn(0, layers=[0, 1, 2, 3]), drawn(1, layers=[0, 2, 3, 7])
    found = MatchedRows.of(whole["pre_mlp"]).against(MatchedRows.of(gap["pre_mlp"]))
    assert found["layer"].tolist() == [0, 2, 3]
    a, b = whole["pre_mlp"].scale[[0, 2, 3]], gap["pre_mlp"].scale[[0, 1, 2]]
    assert found["cosine"].to_numpy() == pytest.approx(np.diag(pairwise(a, b, "cosine")), abs=1e-14)
    assert found["r"].to_numpy() == pytest.approx(np.diag(pairwise(a, b, "pearson")), abs=1e-14)
    assert found["mean_term"].to_numpy() == pytest.approx(row_statistics(a).share * row_statistics(b).share, abs=1e-14)


def test_equal_vectors_give_exactly_one() -> None:
    one = MatchedRows.of(drawn(0)["pre_mlp"])
    assert (one.against(one)[["cosine", "r"]] == 1.0).all(axis=None)


def test_a_constant_layer_has_a_cosine_and_no_r() -> None:
    scale = np.stack([np.ones(8), np.arange(8.0)])
    found = MatchedRows.of(made(scale)["pre_mlp"]).against(MatchedRows.of(made(scale)["pre_mlp"]))
    assert found["cosine"].tolist() == [1.0, 1.0]
    assert np.isnan(found["r"]).tolist() == [True, False]


def test_models_without_a_common_layer_or_size_are_refused() -> None:
    one = MatchedRows.of(drawn(0, layers=[0, 1])["pre_mlp"])
    with pytest.raises(ComparisonError, match="no layer number in common"):
        one.against(MatchedRows.of(drawn(1, layers=[2, 3])["pre_mlp"]))
    with pytest.raises(ComparisonError, match="hidden sizes 64 and 32 differ"):
        one.against(MatchedRows.of(drawn(1, size=32)["pre_mlp"]))

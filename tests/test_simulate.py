"""Gaussian pairs: what is drawn agrees with what is known in closed form."""

from __future__ import annotations

import pytest

from lnsim.errors import ComparisonError
from studies.controls.simulate import Gaussian, draw


def test_the_published_random_vectors_have_their_closed_form() -> None:
    closed = Gaussian(1.0, 0.1, 1.0, 0.1, 4096).closed()
    assert closed["cosine"] == pytest.approx(0.990099, abs=5e-7)
    assert closed["cosine_std"] == pytest.approx(0.000219, abs=5e-7)
    assert closed["r_std"] == pytest.approx(0.0156, abs=5e-5)
    assert closed["l2"] == pytest.approx(9.0504, abs=5e-5)
    assert closed["l2_std"] == pytest.approx(0.1, abs=5e-4)


def test_vectors_without_spread_and_too_few_draws_are_refused() -> None:
    with pytest.raises(ComparisonError, match="found 64 channels and 0 and 1"):
        Gaussian(1, 0, 1, 1, 64)
    with pytest.raises(ComparisonError, match="Drawing 1 random pairs of 64 channels"):
        draw(64, 1, seed=0)

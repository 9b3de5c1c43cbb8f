"""Tests of the power curves: what is found surely, what never, and what changes are made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lnsim.errors import ComparisonError
from lnsim.measure.calibration_power import CHANGES, farthest_found, power_curve, power_curves
from lnsim.measure.drawn_models import Template

TEMPLATE = Template("A", "pre_mlp", np.ones(8), np.full(8, 0.1), 0.5 * np.eye(8) + 0.5, 4.0)


def found(change: str, amounts: list[float], search: str, n_draws: int = 20) -> list[float]:
    curve = power_curve(TEMPLATE, change, amounts, 128, n_draws, 99, seed=0)
    return list(curve.loc[curve["search"] == search, "found"])


def test_an_unchanged_model_is_always_found_and_a_stranger_hardly_ever() -> None:
    for search in ("mean r", "mean r of ranks", "largest r"):
        same, other = found("share of update", [0.0, 1.0], search)
        assert same == 1
        assert other <= 0.1


def test_the_more_noise_the_less_is_found() -> None:
    shares = found("added noise", [0.5, 8.0, 200.0], "mean r")
    assert shares[0] == 1
    assert shares[0] >= shares[1] >= shares[2]
    assert shares[2] <= 0.2


def test_one_layer_of_many_is_found_by_the_largest_r_better_than_by_the_mean() -> None:
    assert found("share of layers", [1 / 8], "largest r") == [1]
    assert found("share of layers", [0.0], "largest r")[0] <= 0.1


def test_changes_do_what_they_say() -> None:
    generator = np.random.default_rng(0)
    pattern = TEMPLATE.patterns(50, generator)
    kept = CHANGES["share of layers"](TEMPLATE, pattern, 3 / 8, generator)
    assert (kept == pattern).all(axis=1).sum() == 3
    assert (CHANGES["share of update"](TEMPLATE, pattern, 0.0, generator) == pattern).all()
    noise = CHANGES["added noise"](TEMPLATE, pattern, 2.0, generator) - pattern
    assert noise.std() == pytest.approx(2, rel=0.1)


def test_the_farthest_found_is_the_last_before_the_first_miss() -> None:
    curve = pd.DataFrame({"change": "added noise", "search": "mean r", "amount": [1, 2, 4, 8],
                          "found": [1.0, 0.95, 0.5, 0.95]})  # fmt: skip
    layers = pd.DataFrame({"change": "share of layers", "search": "mean r", "amount": [0.1, 0.5, 1.0],
                           "found": [0.2, 0.9, 1.0]})  # fmt: skip
    never = layers.assign(search="largest r", found=0.0)
    result = farthest_found(pd.concat([curve, layers, never]))
    assert result["amount"].iloc[:2].tolist() == [2, 0.5]
    assert np.isnan(result["amount"].iloc[2])


def test_each_share_has_its_interval_and_curves_stand_one_below_the_other() -> None:
    amounts = {"added noise": [1.0], "share of layers": [0.5, 1.0]}
    curves = power_curves(TEMPLATE, amounts, 64, 5, 99, seed=0)
    assert list(curves["change"].drop_duplicates()) == list(amounts)
    assert len(curves) == 9
    assert ((curves["low"] <= curves["found"]) & (curves["found"] <= curves["high"])).all()


@pytest.mark.parametrize(
    ("change", "n_draws", "n_permutations"), [("none", 5, 99), ("added noise", 0, 99), ("added noise", 5, 98)]
)
def test_what_cannot_be_measured_is_refused(change: str, n_draws: int, n_permutations: int) -> None:
    with pytest.raises(
        ComparisonError, match=f"Looking for the power after '{change}': expected one of share of update"
    ):
        power_curve(TEMPLATE, change, [1.0], 64, n_draws, n_permutations, seed=0)

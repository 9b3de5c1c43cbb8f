"""Tests of stacks against Gaussian nulls: closed forms beside simulation, and the exact spread of permuted channels."""

from __future__ import annotations

import numpy as np
import pytest
from made_vectors import LABELS, drawn, made

from lnsim.measure.listed_pairs import ListedPair
from lnsim.measure.stack_nulls import stack_nulls

PAIR = ListedPair("a", "b", "pre_mlp", "pre_mlp", "MLP")


def test_closed_form_and_simulation_agree_and_strangers_lie_inside_their_own_null() -> None:
    models = {"a": drawn(0, size=256), "b": drawn(1, range(2, 9), size=256)}
    row = stack_nulls(models, [PAIR], LABELS, 1500, 0).iloc[0]
    assert row["layers"] == 3
    for name in ("published", "own"):
        close = 5 * row[f"cosine_{name}_std"] / np.sqrt(1500) + 2e-3 * (1 - row[f"cosine_{name}"])
        assert row[f"cosine_{name}_simulated"] == pytest.approx(row[f"cosine_{name}"], abs=close)
    assert abs(row["cosine"] - row["cosine_own"]) < 4 * row["cosine_own_std"]
    assert row["cosine_published"] == pytest.approx(1 / 1.01)
    assert row["r_std_gaussian"] == pytest.approx(1 / np.sqrt(255 * 3))
    assert row["r_std_simulated"] == pytest.approx(row["r_std_gaussian"], rel=0.06)


def test_layers_that_resemble_each_other_make_permuted_channels_stray_farther() -> None:
    one, other = (np.random.default_rng(seed).normal(1, 0.1, size=(1, 128)) for seed in (0, 1))
    models = {"a": made(np.tile(one, (9, 1))), "b": made(np.tile(other, (9, 1)))}
    row = stack_nulls(models, [PAIR], LABELS, 10, 0).iloc[0]
    assert row["r_std_permuted"] == pytest.approx(3 * row["r_std_gaussian"], rel=1e-6)


def test_a_pair_without_the_role_is_left_out() -> None:
    models = {"a": drawn(0), "b": drawn(1, role="final")}
    assert stack_nulls(models, [PAIR], LABELS, 10, 0).empty

"""What BF16 keeps of a pattern: the expected error against the measured one."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import lnsim
from lnsim.measure.rounding import pattern_kept, rounding_by_layer, rounding_summary

ROLES = ["post_attention", "post_mlp"]


def test_the_expected_error_is_what_rounding_does_to_real_float32_vectors() -> None:
    models = {name: lnsim.load(name) for name in ("all-minilm-l6-v2", "multilingual-e5-small")}
    frame = rounding_by_layer(models, ROLES, 0)
    assert (frame["error_measured"] / frame["error"]).between(0.9, 1.1).all()
    assert (frame["r_kept"] - frame["r_measured"]).abs().max() < 1e-4
    assert frame["ratio"].min() > 20
    assert (frame["bits"] == np.log2(frame["ratio"])).all()


def test_vectors_on_the_grid_are_judged_by_jitter_with_a_seed() -> None:
    model = lnsim.load("all-minilm-l6-v2")
    role = model[ROLES[0]]
    stored = role.scale.astype(ml_dtypes.bfloat16)
    coarse = replace(model, roles={ROLES[0]: replace(role, stored=stored, scale=stored.astype(np.float32))})
    one, again, other = (rounding_by_layer({"m": coarse}, ROLES[:1], seed) for seed in (0, 0, 1))
    assert (one["error_measured"] / one["error"]).between(0.85, 1.15).all()
    assert one["error_measured"].tolist() == again["error_measured"].tolist() != other["error_measured"].tolist()
    assert one["stored"].unique().tolist() == ["bfloat16"]
    assert one["levels"].tolist() == [len(np.unique(row.view(np.uint16))) for row in stored]


def test_a_pattern_as_small_as_the_error_is_half_lost() -> None:
    assert pattern_kept([1.0, 3.0]) == pytest.approx([np.sqrt(0.5), 3 / np.sqrt(10)])
    generator = np.random.default_rng(2)
    signal = generator.normal(0, 1, 200_000)
    noisy = signal + generator.normal(0, 1 / 3, signal.size)
    assert np.corrcoef(signal, noisy)[0, 1] == pytest.approx(pattern_kept(3.0), abs=2e-3)


def test_the_summary_gives_the_ends_of_each_role() -> None:
    frame = rounding_by_layer({"m": lnsim.load("all-minilm-l6-v2")}, ROLES, 0)
    summary = rounding_summary(frame).set_index("role")
    for role, one in frame.groupby("role"):
        assert summary.loc[role, "ratio_min"] == one["ratio"].min()
        assert summary.loc[role, "check_max"] == (one["error_measured"] / one["error"]).max()

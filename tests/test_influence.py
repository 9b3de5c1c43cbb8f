"""Tests of the influence of single channels: the closed form, and the real case of one channel that makes r."""

from __future__ import annotations

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.influence import (
    carrying_channels,
    channel_influence,
    extreme_channels,
    r_without_each,
    without_extremes,
)


def rows(n: int = 3, hidden_size: int = 40, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_t(3, size=(n, hidden_size)) * 0.1 + 1


def beta(name: str) -> np.ndarray:
    bias = lnsim.load(name)["post_attention"].bias
    assert bias is not None
    return bias


def test_the_closed_form_is_the_correlation_without_the_channel() -> None:
    a, b = rows(), rows(seed=1)
    found = r_without_each(a, b)
    for channel in range(40):
        x, y = np.delete(a, channel, 1), np.delete(b, channel, 1)
        assert found[:, channel] == pytest.approx([np.corrcoef(x[i], y[i])[0, 1] for i in range(3)], abs=1e-12)


def test_a_row_that_is_constant_without_a_channel_has_no_r_there() -> None:
    a, b = np.ones((1, 9)), rows(1, 9)
    a[0, 4] = 2
    assert np.flatnonzero(np.isnan(r_without_each(a, b)[0])).tolist() == [4]


def test_influence_is_what_a_channel_adds_to_the_mean_r_and_the_shares_add_up() -> None:
    a, b = rows(), rows(seed=1)
    found = channel_influence(a, b)
    whole = np.mean([np.corrcoef(x, y)[0, 1] for x, y in zip(a, b, strict=True)])
    assert found["share"].sum() == pytest.approx(whole)
    assert (found["r_without"] + found["influence"]).to_numpy() == pytest.approx(whole)
    assert found["influence"].abs().is_monotonic_decreasing


def test_one_channel_makes_the_correlation_of_two_strangers() -> None:
    """MiniLM x e5, β of the attention output, layer 3 with layer 10: r = 0.33 with channel 223, 0.001 without."""
    a, b = beta("all-minilm-l6-v2")[3:4], beta("multilingual-e5-small")[10:11]
    found = channel_influence(a, b)
    assert found.index[0] == 223
    assert found["r_without"].iloc[0] + found["influence"].iloc[0] == pytest.approx(0.334, abs=5e-4)
    assert found["r_without"].iloc[0] == pytest.approx(0.001, abs=5e-4)
    carried = carrying_channels(a, b, below=0.05)
    assert (carried.channels, carried.hidden_size) == ((223,), 384)
    assert 223 in extreme_channels(a)
    assert 223 in extreme_channels(b)


def test_three_channels_carry_the_smallest_p_of_the_real_strangers() -> None:
    a, b = (
        lnsim.load("whisper-tiny.en")["pre_attention"].scale,
        lnsim.load("all-minilm-l6-v2")["post_attention"].scale[:4],
    )
    carried = carrying_channels(a, b, below=0.01)
    assert carried.channels == (99, 223, 261)
    assert (carried.r, carried.r_without) == (pytest.approx(0.105, abs=5e-4), pytest.approx(0.001, abs=5e-4))


def test_no_few_channels_carry_what_relatives_share() -> None:
    a, b = (lnsim.load(name)["post_attention"].scale for name in ("all-minilm-l6-v2", "sre-minilm-l6"))
    carried = carrying_channels(a, b, below=0.01, most=5)
    assert len(carried.channels) == 5
    assert carried.r_without > 0.999


def test_channels_are_taken_out_whatever_the_sign_of_r() -> None:
    a, b = rows(1, 200), rows(1, 200, seed=1)
    a[0, 50], b[0, 50] = 9, -7
    carried = carrying_channels(a, b, below=0.15)
    assert carried.r < -0.5
    assert carried.channels == (50,)


def test_extreme_channels_are_those_far_from_the_middle_in_many_layers() -> None:
    a = rows(4, 300)
    a[:, 17] += 4
    a[:, 250] -= 5
    assert extreme_channels(a, share=2 / 300) == (250, 17)
    quiet = without_extremes(a, share=2 / 300)
    assert quiet[:, 17] == pytest.approx(np.delete(a, [17, 250], 1).mean(axis=1))
    assert (np.delete(quiet, [17, 250], 1) == np.delete(a, [17, 250], 1)).all()


def test_a_stack_with_little_spread_has_extreme_channels_too() -> None:
    a = np.ones((2, 50))
    a[:, 3] = 5
    assert extreme_channels(a) == (3,)


def test_rows_that_do_not_match_and_constant_ones_are_refused() -> None:
    with pytest.raises(ComparisonError, match=r"with at least 3 channels, got \(3, 40\) and \(2, 40\)"):
        r_without_each(rows(3), rows(2))
    with pytest.raises(ComparisonError, match="got \\(3, 2\\) and \\(3, 2\\)"):
        r_without_each(rows(3, 2), rows(3, 2))
    with pytest.raises(ComparisonError, match="Taking channels out: row 0 is constant"):
        channel_influence(np.ones((1, 9)), rows(1, 9))

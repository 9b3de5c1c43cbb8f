"""What the mean does to a cosine: the published example, closed forms against shuffles, and samples without a fault."""

from __future__ import annotations

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure import geometry

KEYS = {"minilm": "all-minilm-l6-v2", "sre": "sre-minilm-l6", "e5": "multilingual-e5-small"}
LABELS = {key: key for key in KEYS}
PAIRS = [["minilm", "sre"], ["minilm", "e5"]]
ROLES = ["post_attention", "post_mlp"]


@pytest.fixture(scope="module")
def models() -> dict[str, lnsim.NormVectors]:
    return {key: lnsim.load(name) for key, name in KEYS.items()}


def test_the_published_example_comes_out_of_the_same_code() -> None:
    """004, figure 0: cosine 0.955 at 17.2 degrees, r -0.602 at 127.0 degrees."""
    frame = geometry.mean_removal(geometry.TOY)
    before, after = frame.iloc[0], frame.iloc[-1]
    assert (round(before.cosine, 3), round(before.angle, 1)) == (0.955, 17.2)
    assert (round(after.cosine, 3), round(after.angle, 1)) == (-0.602, 127.0)
    assert np.allclose(frame[frame.step == 1][["x", "y", "z"]].sum(axis=1), 0)


def test_the_mean_leaves_step_by_step_and_only_two_vectors_of_three_channels_are_taken() -> None:
    frame = geometry.mean_removal(geometry.TOY, [0, 0.25, 0.5, 1])
    assert frame["angle"].is_monotonic_increasing
    assert len(frame) == 8
    with pytest.raises(ComparisonError, match=r"two of three channels, got \(1, 2\)"):
        geometry.mean_removal({"A": (1.0, 2.0)})


def test_the_closed_form_of_a_shuffled_cosine_agrees_with_shuffles(models: dict[str, lnsim.NormVectors]) -> None:
    curves = geometry.pair_curves([PAIRS[1]], models, ROLES[:1], LABELS)
    a, b = (models[key][ROLES[0]].scale[0].astype(np.float64) for key in PAIRS[1])
    generator = np.random.default_rng(0)
    cosines = [generator.permutation(a) @ b / np.linalg.norm(a) / np.linalg.norm(b) for _ in range(4000)]
    row = curves.iloc[0]
    assert np.mean(cosines) == pytest.approx(row.expected, abs=5 * row.expected_std / np.sqrt(4000))
    assert np.std(cosines) == pytest.approx(row.expected_std, rel=0.05)
    assert row.null_std == pytest.approx(1 / np.sqrt(383))


def test_strangers_gain_nothing_over_shuffles_and_relatives_do(models: dict[str, lnsim.NormVectors]) -> None:
    curves = geometry.pair_curves(PAIRS, models, ROLES, LABELS)
    means = geometry.pair_means(curves, PAIRS, models, LABELS).set_index("pair")
    strangers, tuned = means.loc["minilm × e5"], means.loc["minilm × sre"]
    assert strangers["cosine_mean"].min() > 0.96
    assert (strangers["cosine_mean"] - strangers["cosine_expected"]).abs().max() < 0.001
    assert (strangers["r_mean"] / strangers["r_null_std"]).abs().max() < 2
    assert tuned["r_mean"].min() > 0.999


def test_the_best_layer_is_the_largest_cosine_and_says_among_how_many(models: dict[str, lnsim.NormVectors]) -> None:
    curves = geometry.pair_curves(PAIRS, models, ROLES, LABELS)
    best = geometry.best_layers(curves)
    assert len(best) == 4
    for row in best.itertuples():
        group = curves[(curves.pair == row.pair) & (curves.role == row.role)]
        assert row.cosine == group.cosine.max()
        assert row.layers == len(group)


@pytest.mark.parametrize("n", [50, 7, 4])
def test_samples_take_each_quarter_alike_even_among_equal_values(n: int) -> None:
    a = np.repeat([1.0, 1.0, 2.0, 3.0], 25)
    channels = geometry.sample_channels(a, a, n, 0)
    assert len(set(channels.tolist())) == n
    quarters = np.bincount(np.argsort(np.argsort(a + a, kind="stable"), kind="stable")[channels] // 25, minlength=4)
    assert quarters.max() - quarters.min() <= 1
    assert (np.diff(a[channels]) >= 0).all()


def test_a_sample_has_a_seed_and_cannot_exceed_the_channels() -> None:
    a = np.arange(100.0)
    assert geometry.sample_channels(a, a, 9, 1).tolist() == geometry.sample_channels(a, a, 9, 1).tolist()
    assert geometry.sample_channels(a, a, 9, 1).tolist() != geometry.sample_channels(a, a, 9, 2).tolist()
    with pytest.raises(ComparisonError, match="Sampling 101 channels"):
        geometry.sample_channels(a, a, 101, 0)


def test_bars_are_centred_by_the_model_and_not_by_the_sample(models: dict[str, lnsim.NormVectors]) -> None:
    best = geometry.best_layers(geometry.pair_curves(PAIRS, models, ROLES, LABELS))
    bars = geometry.channel_bars(PAIRS, models, best, ROLES[0], LABELS, 0)
    assert len(bars) == 2 * 2 * geometry.SAMPLED
    layer = int(best[(best.pair == "minilm × e5") & (best.role == ROLES[0])].layer.iloc[0])
    row = models["e5"][ROLES[0]].scale[layer].astype(np.float64)
    mine = bars[(bars.pair == "minilm × e5") & (bars.model == "e5")]
    assert np.allclose(mine.gamma - mine.centred, row.mean())
    assert abs(mine.centred.mean()) > 1e-6


def test_no_pair_at_all_is_an_error() -> None:
    with pytest.raises(ComparisonError, match="no pair has the vectors of both of its models"):
        geometry.pair_curves([], {}, ROLES, LABELS)

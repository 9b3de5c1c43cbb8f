"""γ with depth: bins that hold everything, channels in a steady order, ranks that mean what they say."""

from __future__ import annotations

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure import depth
from lnsim.measure.overview import statistics_by_layer
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

ROLES = ["post_attention", "post_mlp"]


@pytest.fixture(scope="module")
def models() -> dict[str, lnsim.NormVectors]:
    return {name: lnsim.load(name) for name in ("all-minilm-l6-v2", "multilingual-e5-small")}


def test_every_value_is_in_a_bin(models: dict[str, lnsim.NormVectors]) -> None:
    frame = depth.histograms(models, ROLES)
    sums = frame.groupby(["model", "role", "layer"])["share"].sum()
    assert sums.to_numpy() == pytest.approx(1.0, abs=1e-12)
    assert sorted(set(frame["layer"])) == [0, 1, 2, 3, 4, 5]
    for role, heap in frame.groupby("role"):
        assert heap["left"].min() <= min(float(one[str(role)].scale.min()) for one in models.values())
        assert heap["right"].max() > max(float(one[str(role)].scale.max()) for one in models.values())


def test_models_without_a_common_layer_are_refused(models: dict[str, lnsim.NormVectors]) -> None:
    one = models["all-minilm-l6-v2"]
    with pytest.raises(ComparisonError, match="a, b share no layer"):
        depth.histograms({"a": one, "b": _shifted(one)}, ROLES[:1])


def _shifted(one: lnsim.NormVectors) -> lnsim.NormVectors:
    from dataclasses import replace

    role = one[ROLES[0]]
    return replace(one, roles={ROLES[0]: replace(role, layers=role.layers + 100)})


@pytest.mark.usefixtures("replica")
def test_the_published_ends_cut_most_of_a_deep_layer_where_its_mean_lies_beyond_them() -> None:
    """EXPERIMENTS.md: post means from 1.94 to 2.25, so half or more was cut; the replica has the same levels."""
    found = study_vectors(load_study("solar_glm"), "replica", ["solar", "glm"]).vectors
    cut = depth.cut_by_range(found, ["pre_attention", "pre_mlp"]).set_index(["model", "role"])
    assert cut.loc[("glm", "pre_mlp"), "worst_share_outside"] > 0.5
    assert cut.loc[("solar", "pre_mlp"), "worst_share_outside"] == 0


def test_a_share_outside_is_counted_value_by_value(models: dict[str, lnsim.NormVectors]) -> None:
    cut = depth.cut_by_range(models, ROLES[:1], (0.5, 0.6)).set_index("model")
    scale = models["multilingual-e5-small"][ROLES[0]].scale
    outside = ((scale < 0.5) | (scale > 0.6)).mean()
    assert cut.loc["multilingual-e5-small", "share_outside"] == pytest.approx(outside)


def test_maps_keep_the_mean_of_every_layer_and_sort_channels(models: dict[str, lnsim.NormVectors]) -> None:
    found = depth.sorted_map(models, ROLES[0])["all-minilm-l6-v2"]
    assert found.shape == (6, 128)
    scale = models["all-minilm-l6-v2"][ROLES[0]].scale.astype(np.float64)
    assert found.to_numpy().mean(axis=1) == pytest.approx(scale.mean(axis=1))
    assert (np.diff(found.mean(axis=0)) >= 0).all()


def test_the_scale_with_depth_names_the_largest_layer_and_the_rank(models: dict[str, lnsim.NormVectors]) -> None:
    statistics = statistics_by_layer(models)
    scale = depth.scale_with_depth(statistics[statistics["role"].isin(ROLES)]).set_index(["model", "role"])
    row = scale.loc[("multilingual-e5-small", "post_attention")]
    norms = np.linalg.norm(models["multilingual-e5-small"]["post_attention"].scale.astype(np.float64), axis=1)
    assert (row["norm_first"], row["norm_last"]) == (pytest.approx(norms[0]), pytest.approx(norms[-1]))
    assert row["at_layer"] == norms.argmax()
    assert row["depth_rank_r"] < -0.9
    assert row["rank_null_std"] == pytest.approx(1 / np.sqrt(11))

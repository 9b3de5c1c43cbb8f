"""Principal components: those of a singular value decomposition, and the mean found where it is all there is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure.components import principal_components

ROLE = "post_attention"


@pytest.fixture(scope="module")
def models() -> dict[str, lnsim.NormVectors]:
    return {name: lnsim.load(name) for name in ("all-minilm-l6-v2", "multilingual-e5-small")}


@pytest.mark.parametrize("pattern", [False, True])
def test_components_are_those_of_a_decomposition(models: dict[str, lnsim.NormVectors], pattern: bool) -> None:
    rows = np.concatenate([one[ROLE].scale for one in models.values()]).astype(np.float64)
    if pattern:
        rows -= rows.mean(axis=1, keepdims=True)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows -= rows.mean(axis=0)
    values = np.linalg.svd(rows, compute_uv=False)
    found = principal_components(models, ROLE, pattern)
    assert found.explained == pytest.approx((values**2 / (values**2).sum())[:3])
    places = found.places[["pc1", "pc2", "pc3"]].to_numpy()
    assert np.linalg.norm(places, axis=0) == pytest.approx(values[:3])
    assert found.places["layer"].tolist() == [*range(6), *range(12)]


def test_signs_are_settled_by_the_layer_farthest_out(models: dict[str, lnsim.NormVectors]) -> None:
    places = principal_components(models, ROLE).places[["pc1", "pc2", "pc3"]].to_numpy()
    assert (places[np.abs(places).argmax(axis=0), range(3)] > 0).all()


def test_vectors_that_differ_in_their_mean_alone_vary_along_equal_channels(
    models: dict[str, lnsim.NormVectors],
) -> None:
    one = models["all-minilm-l6-v2"]
    generator = np.random.default_rng(0)
    scale = np.linspace(0.2, 2, 6)[:, None] + 0.01 * generator.standard_normal((6, 384))
    role = replace(one[ROLE], scale=scale.astype(np.float32))
    made = {"made": replace(one, roles={ROLE: role})}
    raw, pattern = principal_components(made, ROLE), principal_components(made, ROLE, pattern=True)
    assert raw.explained[0] > 0.99
    assert raw.along_mean[0] == pytest.approx(1, abs=1e-3)
    assert pattern.along_mean[0] < 1e-9
    assert pattern.explained[0] < 0.4


def test_models_of_another_width_are_left_out_by_name(models: dict[str, lnsim.NormVectors]) -> None:
    role = models["all-minilm-l6-v2"][ROLE]
    narrow = replace(role, scale=role.scale[:, :100], stored=role.stored[:, :100])
    found = principal_components({**models, "narrow": replace(models["all-minilm-l6-v2"], roles={ROLE: narrow})}, ROLE)
    assert found.left_out == ("narrow",)
    assert "narrow" not in set(found.places["model"])


def test_three_vectors_are_too_few(models: dict[str, lnsim.NormVectors]) -> None:
    role = models["all-minilm-l6-v2"][ROLE]
    few = replace(role, layers=role.layers[:3], scale=role.scale[:3], stored=role.stored[:3], names=role.names[:3],
                  bias=None, stored_bias=None, bias_names=())  # fmt: skip
    with pytest.raises(ComparisonError, match="only 3 vectors"):
        principal_components({"few": replace(models["all-minilm-l6-v2"], roles={ROLE: few})}, ROLE)

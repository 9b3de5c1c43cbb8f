"""Two norms of one block: matched by layer, beside other layers, and their difference between models."""

from __future__ import annotations

import numpy as np
import pytest

import lnsim
from lnsim.errors import ComparisonError
from lnsim.measure import block_norms

ROLES = ["post_attention", "post_mlp"]
KEYS = {"minilm": "all-minilm-l6-v2", "sre": "sre-minilm-l6", "e5": "multilingual-e5-small"}


@pytest.fixture(scope="module")
def models() -> dict[str, lnsim.NormVectors]:
    return {key: lnsim.load(name) for key, name in KEYS.items()}


def test_each_layer_agrees_with_numpy_and_stands_beside_the_other_layers(models: dict[str, lnsim.NormVectors]) -> None:
    frame = block_norms.two_norms({"m": models["minilm"]}, ROLES)
    a, b = (models["minilm"][role].scale.astype(np.float64) for role in ROLES)
    r = np.corrcoef(a, b)[:6, 6:]
    assert frame["r"].to_numpy() == pytest.approx(np.diag(r))
    assert frame["r_other_layers"].iloc[2] == pytest.approx(np.delete(r[2], 2).mean())
    assert frame["difference_std"].iloc[1] == pytest.approx((b[1] - a[1]).std())
    assert frame["norm_ratio"].iloc[0] == pytest.approx(np.linalg.norm(b[0]) / np.linalg.norm(a[0]))


def test_the_summary_counts_layers_and_takes_means(models: dict[str, lnsim.NormVectors]) -> None:
    frame = block_norms.two_norms(models, ROLES)
    summary = block_norms.two_norms_summary(frame)
    assert summary["layers"].to_dict() == {"minilm": 6, "sre": 6, "e5": 12}
    assert summary.loc["e5", "r_mean"] == pytest.approx(frame[frame["model"] == "e5"]["r"].mean())


def test_relatives_share_the_difference_of_their_norms_and_strangers_do_not(
    models: dict[str, lnsim.NormVectors],
) -> None:
    pairs = [["minilm", "sre"], ["minilm", "e5"]]
    found = block_norms.difference_pairs(pairs, models, ROLES, {key: key for key in KEYS})
    assert found.loc["minilm × sre", "r_mean"] > 0.999
    assert abs(found.loc["minilm × e5", "r_mean"]) < 3 * found.loc["minilm × e5", "r_null_std"]


def test_one_role_is_not_enough(models: dict[str, lnsim.NormVectors]) -> None:
    with pytest.raises(ComparisonError, match="two roles are needed, found post_mlp"):
        block_norms.two_norms(models, ["post_mlp"])

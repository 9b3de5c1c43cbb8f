"""Tests of what is measured for the verdicts, and of the verdicts on made pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_stacks import noisy, stack
from made_vectors import LABELS, drawn, made

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.listed_pairs import ListedPair
from lnsim.measure.nulls import holm
from lnsim.measure.permutation import permutation_test
from lnsim.measure.verdict_table import verdicts, with_controls
from lnsim.measure.verdict_tests import norm_tests
from lnsim.study.relations import Relation

ROWS = stack(12)
SIZES = {"small": drawn(1, size=64), "other": drawn(2, size=65)}


def pair(a: str = "a", b: str = "b", norms: str = "MLP") -> ListedPair:
    return ListedPair(a, b, "pre_mlp", "pre_mlp", norms)


def measured(models: dict[str, NormVectors], *pairs: ListedPair, n: int = 199) -> pd.DataFrame:
    return norm_tests(models, pairs or (pair(),), LABELS | {"small": "S", "other": "O"}, n, 0)


def sentence(b: np.ndarray, a: np.ndarray = ROWS, n: int = 199) -> str:
    return str(verdicts(measured({"a": made(a), "b": made(b)}, n=n), n)["verdict"].iloc[0])


def test_the_numbers_are_those_of_the_permutation_test() -> None:
    a, b = drawn(1, range(2, 7)), drawn(2, range(4, 9))
    row = measured({"a": a, "b": b}).iloc[0]
    matched = a["pre_mlp"].scale[2:], b["pre_mlp"].scale[:3]
    by_r, by_ranks = (permutation_test(*matched, 199, 0, correlation=kind) for kind in ("pearson", "spearman"))
    assert (row["layers"], row["channels"], row["r"]) == (3, 64, by_r.statistic)
    assert (row["pvalue"], row["p_ranks"], row["rank_r"]) == (by_r.pvalue, by_ranks.pvalue, by_ranks.statistic)
    assert (row["null_low"], row["null_high"]) == tuple(np.quantile(by_r.null_distribution, [0.025, 0.975]))


def test_p_is_adjusted_over_every_test_whatever_is_known_of_the_pair() -> None:
    models = {key: drawn(seed) for seed, key in enumerate("abcd")}
    found = measured(models, pair("a", "b"), pair("a", "c"), pair("b", "d"), pair("c", "d"))
    assert found["p_holm"].tolist() == holm(found["pvalue"].tolist())
    assert found["p_ranks_holm"].tolist() == holm(found["p_ranks"].tolist())


@pytest.mark.parametrize(
    ("b", "key"),
    [
        (ROWS.copy(), "identical"),
        (noisy(ROWS), "one_by_one"),
        (noisy(ROWS[4:]), "rearranged"),
        (noisy(ROWS[1::2]), "rearranged"),
        (noisy(ROWS[[*range(8), *range(4, 12)]]), "rearranged"),
        (stack(12, seed=1), "none"),
    ],
    ids=["copy", "fine-tune", "first layers cut", "every second layer", "expanded", "stranger"],
)
def test_a_made_pair_gets_its_sentence(b: np.ndarray, key: str) -> None:
    assert sentence(b) == key


def test_one_extreme_channel_makes_a_contradiction_and_no_signal() -> None:
    generator = np.random.default_rng(5)
    a, b = generator.normal(1.0, 0.1, size=(2, 3, 256))
    a[:, 7] = b[:, 7] = 9.0
    assert sentence(b, a) == "contradictory"


def test_too_few_permutations_decide_nothing() -> None:
    assert sentence(stack(12, seed=1), n=19) == "undecided"
    assert sentence(noisy(ROWS), n=19) == "undecided"


def test_permuted_channels_escape_as_the_documentation_says() -> None:
    order = np.random.default_rng(1).permutation(ROWS.shape[1])
    assert sentence(ROWS[:, order]) == "none"


def test_equal_weights_with_other_biases_are_not_identical() -> None:
    one = made(ROWS)
    role = one["pre_mlp"]
    biases = [replace(role, bias=role.scale * k, stored_bias=role.stored * k) for k in (0, 1)]
    models = [replace(one, roles={"pre_mlp": changed}) for changed in biases]
    assert not measured({"a": models[0], "b": models[1]})["identical"].iloc[0]
    assert not measured({"a": one, "b": models[0]})["identical"].iloc[0]
    assert measured({"a": models[1], "b": models[1]})["identical"].iloc[0]


def test_equal_values_in_another_dtype_are_not_identical() -> None:
    one = made(np.ones((3, 8)) + np.eye(3, 8))
    role = one["pre_mlp"]
    half = replace(one, roles={"pre_mlp": replace(role, stored=role.stored.astype(np.float16))})
    found = measured({"a": one, "b": half})
    assert (found["r"].iloc[0], found["identical"].iloc[0]) == (pytest.approx(1.0), False)


def test_what_cannot_be_compared_says_why() -> None:
    models = SIZES | {"c": drawn(3, role="pre_attention"), "d": drawn(4, range(20, 22))}
    found = measured(models, pair("small", "other"), pair("small", "c"), pair("small", "d"))
    assert found["obstacle"].tolist() == [
        "their hidden sizes are 64 and 65, and no channel of one is a channel of the other",
        "C has no norm of the role pre_mlp",
        "no layer number in common",
    ]
    judged = verdicts(found, 199)
    assert judged["verdict"].tolist() == ["not_comparable"] * 3
    assert judged["obstacle"].tolist() == found["obstacle"].tolist()


def test_a_pair_that_can_be_compared_in_one_norm_is_judged_by_it() -> None:
    found = measured({"a": made(ROWS), "b": made(noisy(ROWS))}, pair(), ListedPair("a", "b", "final", "final", "final"))
    row = verdicts(found, 199).iloc[0]
    assert (row["verdict"], row["tested"], row["tests"], row["obstacle"]) == ("one_by_one", "MLP", 1, "")


def test_pairs_without_vectors_are_left_out_and_none_at_all_is_an_error() -> None:
    with pytest.raises(ComparisonError, match="Testing 1 listed pairs: none has the vectors of both its models"):
        measured({"a": drawn(1)})


def test_the_strongest_norm_stands_for_the_pair_and_partners_are_summed() -> None:
    models = {"a": made(ROWS), "b": made(noisy(ROWS))}
    other = {key: replace(one, roles={**one.roles, "post_mlp": drawn(seed, range(4), 256)["pre_mlp"]})
             for seed, (key, one) in enumerate(models.items())}  # fmt: skip
    found = measured(other, ListedPair("a", "b", "post_mlp", "post_mlp", "weak"), pair())
    row = verdicts(found, 199).iloc[0]
    assert (row["strongest"], row["tests"], row["signals"]) == ("MLP", 2, 1)
    assert (row["layers_least"], row["layers_most"]) == (4, 12)
    assert (row["same"], row["elsewhere"], row["without"]) == (12, 0, 4)


def test_controls_leave_their_own_pair_out_and_relations_change_no_verdict() -> None:
    models = {"a": made(ROWS), "b": made(noisy(ROWS)), "c": made(stack(12, 1)), "d": made(stack(12, 2))}
    judged = verdicts(measured(models, pair("a", "b"), pair("a", "c"), pair("c", "d")), 199)

    def as_it_is(a: str, b: str) -> Relation:
        return Relation(a, b, "fine_tune" if {a, b} == {"a", "b"} else "independent", "Made so.")

    def wrong(a: str, b: str) -> Relation:
        return Relation(a, b, "independent" if {a, b} == {"a", "b"} else "fine_tune", "Made otherwise.")

    right, turned = with_controls(judged, as_it_is), with_controls(judged, wrong)
    assert right["verdict"].tolist() == turned["verdict"].tolist() == ["one_by_one", "none", "none"]
    assert right["related"].tolist() == right["related_found"].tolist() == [0, 1, 1]
    assert right["strangers"].tolist() == right["strangers_quiet"].tolist() == [2, 1, 1]
    assert turned["related_found"].tolist() == [0, 0, 0]
    assert turned["strangers_quiet"].tolist() == [0, 0, 0]

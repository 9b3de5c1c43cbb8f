"""Tests of the verdicts on made pairs, and of what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_stacks import noisy, stack
from made_vectors import drawn, made

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure import cells
from lnsim.measure.nulls import holm
from lnsim.measure.permutation import permutation_test
from lnsim.measure.verdict_table import verdicts, with_partners

ROWS = stack(12)
SIZES = {"small": drawn(1, size=64), "other": drawn(2, size=65)}


def measured(
    models: dict[str, NormVectors], *pairs: tuple[str, str], n: int = 199, roles: Sequence[cells.Role] = ("pre_mlp",)
) -> pd.DataFrame:
    tests = cells.tests(models, pairs or [("a", "b")], roles, n, 0)
    return with_partners(models, tests).assign(norms=tests["role"])


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
    found = measured(models, ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"))
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
    found = measured(models, ("small", "other"), ("small", "c"), ("small", "d"))
    assert found["obstacle"].tolist() == [
        "their hidden sizes are 64 and 65, and no channel of one is a channel of the other",
        "c has no norm of the role pre_mlp",
        "no layer number in common",
    ]
    judged = verdicts(found, 199)
    assert judged["verdict"].tolist() == ["not_comparable"] * 3
    assert judged["obstacle"].tolist() == found["obstacle"].tolist()


def test_a_pair_that_can_be_compared_in_one_norm_is_judged_by_it() -> None:
    found = measured({"a": made(ROWS), "b": made(noisy(ROWS))}, roles=("pre_mlp", "final"))
    row = verdicts(found, 199).iloc[0]
    assert (row["verdict"], row["tested"], row["tests"], row["obstacle"]) == ("one_by_one", "pre_mlp", 1, "")


def test_no_pair_at_all_is_an_error() -> None:
    with pytest.raises(ComparisonError, match="none was given, or none has the vectors of both its models"):
        cells.tests({"a": drawn(1)}, [], ["pre_mlp"])


def test_norms_of_two_roles_are_judged_by_both() -> None:
    found = measured({"a": made(ROWS), "b": made(noisy(ROWS), role="final")}, roles=(("pre_mlp", "final"),))
    assert verdicts(found, 199)["verdict"].tolist() == ["one_by_one"]


def test_the_strongest_norm_stands_for_the_pair_and_partners_are_summed() -> None:
    models = {"a": made(ROWS), "b": made(noisy(ROWS))}
    other = {key: replace(one, roles={**one.roles, "post_mlp": drawn(seed, range(4), 256)["pre_mlp"]})
             for seed, (key, one) in enumerate(models.items())}  # fmt: skip
    found = measured(other, roles=("post_mlp", "pre_mlp"))
    row = verdicts(found, 199).iloc[0]
    assert (row["strongest"], row["tests"], row["signals"]) == ("pre_mlp", 2, 1)
    assert (row["layers_least"], row["layers_most"]) == (4, 12)
    assert (row["same"], row["elsewhere"], row["without"]) == (12, 0, 4)

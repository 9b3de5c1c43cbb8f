"""Many models at once: every pair has the test it has alone, relatives come first, strangers are never strong."""

from __future__ import annotations

import math
from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest
from made_vectors import drawn, made, noisy, stack

from lnsim.measure.many import STRENGTHS, matrix, relatives
from lnsim.measure.nulls import centred_unit
from lnsim.measure.pair_test import PairTest, Stack, _interval, _looks, levels_for, pair_test, pair_tests
from lnsim.measure.permutation import order_stream, permuted_sums
from lnsim.measure.rows import ranks
from lnsim.measure.verdict import STRENGTHS as OF_VERDICTS


def one_by_one(stacks: list[Stack], levels: tuple[float, ...], most: int, seed: int = 0) -> PairTest:
    """The same test as it is written down: one pair, one permutation after another, all sums in float64."""
    n_rows = sum(len(a) for a, _ in stacks)
    kinds = [[tuple(centred_unit(kind(rows)) for rows in both) for both in stacks] for kind in (np.asarray, ranks)]
    observed = [sum(float(np.sum(a * b)) for a, b in kind) / n_rows for kind in kinds]
    hits, largest, drawn, looks = np.zeros(2, dtype=int), np.zeros(2), 0, list(_looks(most))
    streams = [order_stream(a.shape[1], seed) for a, _ in stacks]
    for until in looks:
        orders = [stream(until - drawn) for stream in streams]
        for place, (kind, value) in enumerate(zip(kinds, observed, strict=True)):
            parts = [permuted_sums(a, b, order) for (a, b), order in zip(kind, orders, strict=True)]
            null = np.sum(parts, axis=0) / n_rows
            hits[place] += np.count_nonzero(null >= value - 1e-12)
            largest[place] = max(largest[place], null.max())
        drawn = until
        low, high = map(max, zip(*(_interval(int(one), drawn, 0.01 / len(looks)) for one in hits), strict=True))
        far = (largest * 2 < observed).all() and 1 / (1 + drawn) <= min(levels)
        if far or not any(low <= level <= high for level in levels):
            break
    p_r, p_ranks = ((1 + hits) / (1 + drawn)).tolist()
    return PairTest(observed[0], observed[1], p_r, p_ranks, low, high, n_rows, drawn, seed, 1 / (1 + most))


def stacks_of(seed: int, share: float, sizes: tuple[int, ...] = (48,), steps: int = 0) -> list[Stack]:
    """Matched rows of two models that share so much of a pattern; of few values where there are steps."""
    found = []
    for size in sizes:
        a, b = np.random.default_rng([seed, size]).normal(1.0, 0.1, (2, 3 + seed % 3, size))
        rows = a, share * a + (1 - share) * b
        found.append(tuple(np.round(one * steps) / steps if steps else one for one in rows))
    return found


@pytest.mark.parametrize("seed", [0, 7])
def test_every_pair_gets_exactly_the_result_that_it_has_alone(seed: int) -> None:
    shares = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.6, 1.0)
    pairs = [stacks_of(place, share) for place, share in enumerate(shares)]
    pairs += [stacks_of(place, share, (48, 32)) for place, share in enumerate(shares[2:])]
    pairs += [stacks_of(place, share, steps=5) for place, share in enumerate(shares)]  # ties, also with the true order
    pairs += [[(-b, a) for a, b in stacks_of(1, 0.9)]]  # below all permutations
    levels = levels_for(len(pairs))
    found = pair_tests(pairs, levels, 9_999, seed)
    assert {one.n_permutations for one in found} >= {200, 9_999}
    assert any(one.n_permutations == 9_999 and 1 < one.p_r * 10_000 < 100 for one in found)
    for one, stacks in zip(found, pairs, strict=True):
        assert astuple(one) == astuple(one_by_one(stacks, levels, 9_999, seed))
        assert astuple(one) == astuple(pair_test(stacks, levels, 9_999, seed))


def test_a_permutation_that_ties_with_the_true_order_is_a_hit_in_float32_too() -> None:
    """Two values alone: of each permutation many others give the very same r, and a half of all reach the smaller."""
    a = np.tile([1.0, 2.0], 8)[np.newaxis]
    for b in (np.repeat([1.0, 2.0], 8), np.roll(a[0], 1), a[0]):
        found = pair_tests([[(a, b[np.newaxis])]], (0.5,), 400)[0]
        assert astuple(found) == astuple(one_by_one([(a, b[np.newaxis])], (0.5,), 400))


def test_identical_comes_first_then_the_largest_r_and_what_cannot_be_compared_comes_last() -> None:
    rows = stack(4)
    others = {
        "wide": drawn(1, size=32), "stranger": made(stack(4, seed=5)), "near": made(noisy(rows)),
        "same": made(rows), "flat": made(rows * 0 + 1),
    }  # fmt: skip
    found = relatives(made(rows), others, 9_999)
    assert [one["b"] for one in found][:3] == ["same", "near", "stranger"]
    assert [one["strength"] for one in found] == ["identical", "strong", "none", "not_comparable", "not_comparable"]
    assert [one["same"] for one in found] == [4, 4, 0, 0, 0]
    assert {one["b"]: one["why_not"] for one in found[3:]}["flat"].startswith("γ has no pattern in layers 0 to 3")
    assert (found[0]["elsewhere"], found[2]["without"], found[3]["r"]) == (0, 4, None)


def test_every_pair_is_there_once_and_p_is_adjusted_over_those_that_were_tested() -> None:
    rows = stack(4)
    models = {"a": made(rows), "b": made(noisy(rows)), "c": made(stack(4, seed=5)), "wide": drawn(1, size=32)}
    table = pd.DataFrame(matrix(models, 9_999))
    assert sorted(map("".join, zip(table.a, table.b, strict=True))) == ["ab", "ac", "awide", "bc", "bwide", "cwide"]
    assert (table.pvalue.notna().sum(), table.why_not.ne("").sum()) == (3, 3)
    first = table.iloc[0]
    assert (first.a, first.b, first.p_adjusted) == ("a", "b", pytest.approx(3 * first.pvalue))
    assert list(table.columns[:7]) == ["a", "b", "r", "pvalue", "p_adjusted", "strength", "sentence"]


def test_a_synthetic_model_is_called_so() -> None:
    one = replace(made(stack(4)), provenance={"replica": "of nothing"})
    assert relatives(one, {"b": made(stack(4, seed=2))}, 200)[0]["sentence"].startswith("REPLICA")


def test_the_strengths_are_those_of_the_verdicts() -> None:
    assert set(STRENGTHS) == set(OF_VERDICTS.values())


@pytest.mark.parametrize(("n_models", "in_parts"), [(14, False), (16, True), (47, True)])
def test_among_however_many_pairs_a_copy_is_called_strong_and_no_stranger(n_models: int, in_parts: bool) -> None:
    models = {str(seed): made(stack(2, seed=seed)) for seed in range(n_models - 1)} | {
        "copy": made(noisy(stack(2, seed=0)))
    }
    first, *others = matrix(models)
    assert (first["a"], first["b"], first["strength"]) == ("0", "copy", "strong")
    assert first["p_adjusted"] == pytest.approx(math.comb(n_models, 2) * first["pvalue"])
    assert (first["n_permutations"] < 99_999) == in_parts
    assert {one["strength"] for one in others} <= {"none", "weak"}

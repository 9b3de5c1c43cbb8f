"""This module lets the metrics and the tests of ``lnsim.measure`` compete on every pair of models of known lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.benchmark.level_rows import Floats, Level, levels_of
from lnsim.measure.benchmark.permuted_pairs import PairTest, matched_tests, partner_test
from lnsim.measure.benchmark.scores import SCORED, likeness
from lnsim.measure.permutation import channel_orders
from lnsim.measure.robust import CORRELATIONS

__all__ = ["BETA", "METHODS", "Contest", "contest"]

_BY = {"pearson": "r", "spearman": "ranks", "winsorised": "winsorised r", "trimmed": "trimmed r"}

BETA = "p, β"
"""The one test that not every architecture can have."""

TESTS: Mapping[str, str] = {
    **{f"p, mean {by}": f"permuted channels, mean {by} over equal layers" for by in _BY.values()},
    "p, largest r": "permuted channels, largest r of equal layers",
    "p, best partners": "permuted channels, mean of each layer's largest r with any layer",
    BETA: "permuted channels, mean r of the biases (GPT-2 only)",
    "p, 1/√n": "normal distribution, every channel of every layer a witness",
}
"""Tests by name: each gives a p-value, and the smaller it is the more alike are the models."""

METHODS: Mapping[str, str] = {**SCORED, **TESTS}
"""Everything that competes, by name, with what it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """What every method said of every pair.

    Args:
        truth: the pairs, as ``truth.pair_truth`` gives them.
        scores: by method, one value a pair in the order of `truth`, larger for what is more alike; NaN where undefined.
        pvalues: by the name of a test, one p a pair; NaN where undefined.
        n_permutations: of the tests.
        biased: which pairs have biases on both sides, one truth value a pair: only they can be tested by β.
    """

    truth: pd.DataFrame
    scores: pd.DataFrame
    pvalues: pd.DataFrame
    n_permutations: int
    biased: npt.NDArray[np.bool_]

    def applicable(self, method: str) -> npt.NDArray[np.bool_]:
        """The pairs that a method is a method for: all of them, but for β."""
        return self.biased if method == BETA else np.ones(len(self.truth), dtype=bool)

    def __post_init__(self) -> None:
        if not len(self.truth) == len(self.scores) == len(self.pvalues):
            raise ComparisonError(
                f"Joining what was measured: {len(self.truth)} pairs, {len(self.scores)} scores, {len(self.pvalues)} p."
            )


def contest(
    models: Mapping[str, NormVectors], truth: pd.DataFrame, roles: Sequence[str], n_permutations: int, seed: int
) -> Contest:
    """Measure and test every pair, all layers and roles of a pair together.

    Args:
        models: vectors by key, of one hidden size, in the order that `truth` counts them in.
        truth: as ``truth.pair_truth`` gives it.
        roles: norms that every model has; equal roles and layer numbers are compared.
        n_permutations: of the channels, one permutation shared by all layers, roles and pairs.
        seed: of the permutations.

    Raises:
        ComparisonError: for different hidden sizes.
    """
    n_models, levels = len(models), levels_of(models, roles)
    pairs = truth["i"].to_numpy(), truth["j"].to_numpy()
    scores = pd.DataFrame({metric: likeness(levels, n_models, metric)[pairs] for metric in SCORED})
    found = _tests(models, levels, roles, n_permutations, seed)
    pvalues = pd.DataFrame({name: test.pvalue[pairs] for name, test in found.items()})
    pvalues["p, 1/√n"] = _naive(scores["pearson"].to_numpy(), _witnesses(levels, n_models)[pairs])
    pvalues = pvalues[list(TESTS)]
    has_bias = np.array([all(vectors[role].bias is not None for role in roles) for vectors in models.values()])
    biased = has_bias[pairs[0]] & has_bias[pairs[1]]
    return Contest(truth, pd.concat([scores, -pvalues], axis=1), pvalues, n_permutations, biased)


def _tests(
    models: Mapping[str, NormVectors], levels: Sequence[Level], roles: Sequence[str], n_permutations: int, seed: int
) -> dict[str, PairTest]:
    n_models, orders = len(models), channel_orders(levels[0].rows.shape[1], n_permutations, seed)
    found: dict[str, PairTest] = {}
    for correlation in CORRELATIONS:
        tests = matched_tests(levels, n_models, orders, correlation)
        found[f"p, mean {_BY[correlation]}"] = tests["mean"]
        if correlation == "pearson":
            found["p, largest r"] = tests["max"]
    found["p, best partners"] = partner_test(levels, n_models, orders)
    found[BETA] = matched_tests(levels_of(models, roles, bias=True), n_models, orders)["mean"]
    return found


def _witnesses(levels: Sequence[Level], n_models: int) -> Floats:
    """Channels times common levels of every pair: what 1/√n takes for the number of independent witnesses."""
    count = np.zeros((n_models, n_models))
    for level in levels:
        count[np.ix_(level.members, level.members)] += level.rows.shape[1]
    return count


def _naive(r: Floats, witnesses: Floats) -> Floats:
    return np.asarray(stats.norm.sf(r * np.sqrt(witnesses)))

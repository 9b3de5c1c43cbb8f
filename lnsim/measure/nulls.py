"""This module makes null distributions: what a measure gives when the thing it looks for is not there.

A null says what it breaks. Shuffling the channels of a vector leaves its mean, its spread and the set of its values;
only which value belongs to which channel is lost. A cosine that stays high under it was never a sign of a common
pattern. ``permutation`` does so for all matched layers of two models at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.tables import card, table

LEVEL = 0.05  # an adjusted p-value below this is counted; the counts stand beside the p-values themselves
Floats = npt.NDArray[np.float64]

_ALTERNATIVES = ("two-sided", "greater")


@dataclass(frozen=True, slots=True, eq=False)
class NullResult:
    """A statistic beside its null distribution."""

    statistic: float  # the value measured
    pvalue: float  # (1 + hits) / (1 + n), so never 0
    null_distribution: Floats  # the statistic of each permutation, shape ``(n_permutations,)``
    alternative: str  # ``two-sided`` (hits by absolute value) or ``greater``
    # Over all permutations that there are, in closed form, beside what is simulated; NaN where none is known.
    exact_mean: float = float("nan")
    exact_std: float = float("nan")

    @property
    def null_mean(self) -> float:
        """Mean of the null distribution."""
        return float(self.null_distribution.mean())

    @property
    def null_std(self) -> float:
        """Standard deviation of the null distribution, ddof 0."""
        return float(self.null_distribution.std())

    def __repr__(self) -> str:
        null = f"null of {self.null_distribution.size} permutations: {self.null_mean:.4g} ± {self.null_std:.4g}"
        return f"NullResult(statistic={self.statistic:.6g}, pvalue={self.pvalue:.6g}, {self.alternative}, {null})"

    def _repr_html_(self) -> str:
        n, decimals = self.null_distribution.size, len(str(self.null_distribution.size))
        rows = [("statistic", f"{self.statistic:.4f}"), ("p", f"{self.pvalue:.{decimals}f}")]
        rows += [("mean of the null", f"{self.null_mean:.4f}"), ("its standard deviation", f"{self.null_std:.4f}")]
        if np.isfinite(self.exact_std):
            rows += [("exact mean", f"{self.exact_mean:.4f}"), ("exact deviation", f"{self.exact_std:.4f}")]
        side = "one-sided, for large values" if self.alternative == "greater" else "two-sided, by absolute value"
        return card("NullResult", "", (f"{n:,} permutations", side), [table(("", ""), rows)])


def pvalue(statistic: float, null_distribution: npt.ArrayLike, alternative: str = "two-sided") -> NullResult:
    """Judge a statistic against its null distribution: p = (1 + hits) / (1 + n).

    A hit is a permutation whose statistic is at least as large, by absolute value where two-sided (Phipson and Smyth
    2010: the true order counts as one of the permutations). ComparisonError when the null is empty or undefined
    somewhere, or the alternative is unknown.
    """
    null = np.asarray(null_distribution, dtype=np.float64)
    if not null.size or not np.isfinite(null).all() or not np.isfinite(statistic):
        raise ComparisonError(
            f"Judging the statistic {statistic:g} against {null.size} permutations: all must be there and defined."
        )
    if alternative not in _ALTERNATIVES:
        raise ComparisonError(f"'{alternative}' is no alternative; known are {' and '.join(_ALTERNATIVES)}.")
    # Sums in another order may differ in the last bits; a permutation that ties with the true order is a hit.
    slack = 1e-12 * max(1.0, abs(statistic))
    hits = np.abs(null) >= abs(statistic) - slack if alternative == "two-sided" else null >= statistic - slack
    return NullResult(float(statistic), float((1 + hits.sum()) / (1 + null.size)), null, alternative)


def shuffled_layers(models: Mapping[str, NormVectors], roles: Sequence[str], seed: int) -> dict[str, NormVectors]:
    """The same models, by key, with the channels of every layer of these roles shuffled, each on its own.

    Means and spreads stay. Every model and role has its own stream of random numbers: leaving one out changes no other.
    """

    def shuffled(key: str, role: str, one: RoleVectors) -> RoleVectors:
        if role not in roles:
            return one
        generator = np.random.default_rng([seed, *key.encode(), *role.encode()])
        return replace(one, scale=generator.permuted(one.scale, axis=1))

    return {
        key: replace(vectors, roles={role: shuffled(key, role, one) for role, one in vectors.roles.items()})
        for key, vectors in models.items()
    }


def holm(pvalues: Sequence[float], n_tests: int | None = None) -> list[float]:
    """p-values adjusted for the number of tests (Holm 1979), in the order given; holds for dependent tests too.

    Where `n_tests` says that there were more than these, the p of the others counts as 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(pvalues, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    n = n_tests or len(values)
    steps = np.maximum.accumulate(values[order] * np.arange(n, n - len(values), -1))
    adjusted: list[float] = np.minimum(1.0, steps)[np.argsort(order)].tolist()
    return adjusted


def centred_unit(rows: Floats) -> Floats:
    """Rows without their mean, of length 1; ComparisonError names a constant row."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    if constant := np.flatnonzero(lengths[:, 0] <= 1e-12 * np.linalg.norm(rows, axis=1)).tolist():
        raise ComparisonError(
            f"Shuffling channels: row {constant[0]} is constant, so no correlation with it is defined."
        )
    return np.asarray(centred / lengths)

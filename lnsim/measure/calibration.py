"""This module asks whether p-values keep their word: drawn over and over between synthetic strangers, are they uniform?

A test at the level t may call t of the strangers related, and no more. The permutation test is held to that beside
three readings that are not tests of it: the correlation against ``1/sqrt(n)`` with every layer as a witness of its own,
the same for one layer, and the "sigma" of a published document, the difference of two means of cosines over the spread
of four values. Everything here is synthetic; only the templates were measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.drawn_models import Template
from lnsim.measure.nulls import Floats, centred_unit
from lnsim.measure.permutation import Orders, channel_orders, matched_null

__all__ = [
    "LEVELS",
    "NAIVE",
    "N_LAYERS",
    "TESTS",
    "calibrate",
    "naive_sigma",
    "rejections",
    "sigma_by_role",
    "smoothed",
]

N_LAYERS = 5
"""Layers of the drawn models: the first and four others, as the published sigma had them."""

LEVELS = (0.05, 0.01)
"""Levels at which rejections are counted."""

TESTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "permutation, mean r": MappingProxyType({}),
        "permutation, ranks": MappingProxyType({"correlation": "spearman"}),
        "permutation, largest r": MappingProxyType({"statistic": "max"}),
    }
)
"""The tests that are held to their word, by name, with the arguments of ``permutation_test``."""

NAIVE = ("1/sqrt(n), all layers", "1/sqrt(n), one layer", "sigma of four layers")
"""The readings that stand beside them."""


def calibrate(
    templates: Sequence[Template], n_channels: int, n_draws: int, n_permutations: int, seed: int
) -> pd.DataFrame:
    """Draw pairs of strangers and judge each by every test and reading, all one-sided.

    Args:
        templates: each pair takes one at random, and a second of the same role, which may be the same one.
        n_channels: of the drawn models.
        n_draws: pairs.
        n_permutations: of each test; every pair has permutations of its own, shared by its tests.
        seed: of the draws and permutations; every pair has a stream of its own.

    Returns:
        One row a pair: ``role``, ``template_a`` and ``template_b``, a p-value for each of TESTS and NAIVE, and
        ``sigma``, the number that the last of them is read from.

    Raises:
        ComparisonError: for no draw, or templates with fewer than 3 layers.
    """
    if n_draws < 1 or not templates or min(len(one.level) for one in templates) < 3:
        raise ComparisonError(
            f"Calibrating with {n_draws} draws from {len(templates)} templates: expected at least one of each, and 3 "
            "layers a template."
        )
    rows = []
    for place in range(n_draws):
        generator = np.random.default_rng([seed, place])
        first, second = _two(templates, generator)
        a, b = first.draw(n_channels, generator), second.draw(n_channels, generator)
        orders = channel_orders(n_channels, n_permutations, int(generator.integers(2**32)))
        names = {"role": first.role, "template_a": first.name, "template_b": second.name}
        rows.append({**names, **_tested(a, b, orders), **_scores(a, b)})
    frame = pd.DataFrame(rows)
    frame["sigma"] = frame[NAIVE[-1]]
    frame[list(NAIVE)] = stats.norm.sf(frame[list(NAIVE)])
    return frame


def naive_sigma(a: Floats, b: Floats) -> float:
    """The "sigma" of document 000: how far the cosines across models lie above those of layer 0 with its own model.

    It is the mean cosine of matched layers, the first layer left out, less the mean cosine of the first layer with the
    others, both models together; divided by the root of the mean of the two variances (ddof 0).
    """
    unit_a, unit_b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b))
    across = (unit_a * unit_b).sum(axis=1)[1:]
    within = np.concatenate([one[1:] @ one[0] for one in (unit_a, unit_b)])
    return float((across.mean() - within.mean()) / np.sqrt((across.var() + within.var()) / 2))


def sigma_by_role(frame: pd.DataFrame) -> pd.DataFrame:
    """The sigma of the drawn pairs: index ``role``; ``n``, ``median``, ``least``, ``most``, share ``above_2_share``."""
    grouped = frame.groupby("role", sort=False)["sigma"]
    found = grouped.agg(n="size", median="median", least="min", most="max")
    return found.assign(above_2_share=grouped.agg(lambda values: float((values > 2).mean())))


def rejections(frame: pd.DataFrame, n_permutations: int, seed: int) -> pd.DataFrame:
    """How often each test and reading calls strangers related, and whether its p-values are uniform.

    Args:
        frame: as ``calibrate`` gives it.
        n_permutations: of the tests.
        seed: of the random part of a step that makes the p-values of permutations continuous.

    Returns:
        Index ``judged_by``. For each of LEVELS: ``at_0.05`` (share rejected), ``low_0.05`` and ``high_0.05`` (where
        95 % of such shares lie if the level is kept), ``kept_0.05``; then ``ks`` and ``p_ks``, Kolmogorov and Smirnov's
        distance from the uniform distribution and its p-value.
    """
    rows = {}
    for name in (*TESTS, *NAIVE):
        values = frame[name].to_numpy()
        row: dict[str, float | bool] = {"n": len(values)}
        for level in LEVELS:
            share = float((values <= level).mean())
            low, high = (float(stats.binom.ppf(edge, len(values), level)) / len(values) for edge in (0.025, 0.975))
            row |= {f"at_{level:g}": share, f"low_{level:g}": low, f"high_{level:g}": high}
            row[f"kept_{level:g}"] = low <= share <= high
        found = stats.kstest(smoothed(values, n_permutations, seed) if name in TESTS else values, "uniform")
        rows[name] = row | {"ks": float(found.statistic), "p_ks": float(found.pvalue)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("judged_by")


def smoothed(pvalues: Floats, n_permutations: int, seed: int) -> Floats:
    """p-values of permutations less a random part of one step: uniform on (0, 1) where they are uniform on their steps.

    They are multiples of ``1 / (1 + n_permutations)``, which a test for a continuous distribution would hold against
    them.
    """
    steps = np.random.default_rng(seed).uniform(size=len(pvalues)) / (1 + n_permutations)
    return np.asarray(pvalues - steps)


def _tested(a: Floats, b: Floats, orders: Orders) -> dict[str, float]:
    return {name: matched_null(a, b, orders, **given).pvalue for name, given in TESTS.items()}


def _two(templates: Sequence[Template], generator: np.random.Generator) -> tuple[Template, Template]:
    first = templates[int(generator.integers(len(templates)))]
    alike = [one for one in templates if one.role == first.role]
    return first, alike[int(generator.integers(len(alike)))]


def _scores(a: Floats, b: Floats) -> dict[str, float]:
    """The readings as what they are taken for: standard normal values."""
    r = (centred_unit(a) * centred_unit(b)).sum(axis=1)
    scores = (r.mean() * np.sqrt(a.size), r[1] * np.sqrt(a.shape[1]), naive_sigma(a, b))
    return dict(zip(NAIVE, scores, strict=True))

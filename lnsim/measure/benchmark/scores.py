"""This module scores every pair of many models by every metric: the mean over the levels that both have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from lnsim.measure.benchmark.level_rows import Floats, Level, pair_means
from lnsim.measure.metrics import ALIKE_IS_HIGH, METRICS, pairwise

__all__ = ["SCORED", "likeness"]

SCORED: Mapping[str, str] = MappingProxyType(
    {name: about for name, about in METRICS.items() if name not in ("rel_l2", "rel_l2_b")}
)
"""Metrics that are scored; the two lengths that divide by one side only are left to the symmetric one."""


def likeness(levels: Sequence[Level], n_models: int, metric: str) -> Floats:
    """How alike every two models are by a metric; larger is more alike, so distances change their sign.

    Args:
        levels: as ``level_rows.levels_of`` gives them.
        n_models: how many models there are.
        metric: a name in SCORED; ``changed_ratio`` compares stored bits, and is undefined for a pair of two dtypes.

    Returns:
        Shape ``(n_models, n_models)``; NaN where undefined on any level.
    """
    measure = _changed if metric == "changed_ratio" else _measured
    means = pair_means(n_models, [(level.members, measure(level, metric)) for level in levels])
    return means if metric in ALIKE_IS_HIGH else -means


def _measured(level: Level, metric: str) -> Floats:
    return pairwise(level.rows, level.rows, metric)


def _changed(level: Level, metric: str) -> Floats:
    """Only models of one dtype have bits to compare."""
    dtypes = [bits.dtype for bits in level.stored]
    found = np.full((len(dtypes), len(dtypes)), np.nan)
    for dtype in set(dtypes):
        here = np.flatnonzero([one == dtype for one in dtypes])
        rows = np.stack([level.stored[place] for place in here])
        found[np.ix_(here, here)] = pairwise(rows, rows, metric)
    return found

"""This module prepares rows so that their Pearson r is a robust correlation: of ranks, winsorised, or trimmed.

Each kind changes every row by itself, without a look at the row it is compared with. So whatever holds for Pearson r
under permuted channels (its null, the exact moments of that null, the fast sums) holds for the changed rows as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.rows import Matrix
from lnsim.measure.similarity import ranks

__all__ = ["CORRELATIONS", "TAIL", "prepared", "trimmed", "winsorised"]

TAIL = 0.05
"""Share of a row's channels that count as extreme, at either end."""


def winsorised(rows: Matrix) -> Matrix:
    """Values beyond the row's 5 % and 95 % quantiles are drawn in to these: they keep their side, not their size."""
    low, high = np.quantile(rows, (TAIL, 1 - TAIL), axis=1, keepdims=True)
    return np.asarray(np.clip(rows, low, high))


def trimmed(rows: Matrix) -> Matrix:
    """Values beyond the row's 5 % and 95 % quantiles bear no witness: they count as the mean of those that are kept.

    A product with such a value is 0. That differs from a trimmed r which drops the channel from both rows: which
    channels are dropped would then depend on how the rows stand to each other, and change with every permutation.
    """
    low, high = np.quantile(rows, (TAIL, 1 - TAIL), axis=1, keepdims=True)
    kept = (rows >= low) & (rows <= high)
    mean = np.where(kept, rows, 0.0).sum(axis=1, keepdims=True) / kept.sum(axis=1, keepdims=True)
    return np.where(kept, rows, mean)


def _unchanged(rows: Matrix) -> Matrix:
    return rows


CORRELATIONS: Mapping[str, Callable[[Matrix], Matrix]] = MappingProxyType(
    {"pearson": _unchanged, "spearman": ranks, "winsorised": winsorised, "trimmed": trimmed}
)
"""By the name of a correlation, what is done to the rows before Pearson r is taken."""


def prepared(rows: npt.ArrayLike, correlation: str) -> Matrix:
    """Rows whose Pearson r is the correlation asked for.

    Args:
        rows: shape ``(n_layers, hidden_size)``, any real dtype.
        correlation: one of CORRELATIONS.

    Raises:
        ComparisonError: for an unknown correlation.

    >>> prepared([[10.0, 500.0, 20.0]], "spearman").tolist()
    [[1.0, 3.0, 2.0]]
    """
    if correlation not in CORRELATIONS:
        raise ComparisonError(f"'{correlation}' is no correlation; known are {', '.join(CORRELATIONS)}.")
    return CORRELATIONS[correlation](np.asarray(rows, dtype=np.float64))

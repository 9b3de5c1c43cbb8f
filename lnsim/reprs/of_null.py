"""This module shows a null result in a notebook: the statistic beside the distribution of its null."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lnsim.reprs.pieces import Picture, bars, card, rounded, table

if TYPE_CHECKING:
    from lnsim.measure.nulls import NullResult

__all__ = ["null_result"]

_BINS = 24
_SIDES = {"greater": "one-sided, for large values", "two-sided": "two-sided, by absolute value"}


def null_result(found: NullResult) -> str:
    """HTML of a null result: the numbers, and the null as bars with the statistic as a line."""
    n = found.null_distribution.size
    rows: list[tuple[str, object]] = [
        ("statistic", rounded(found.statistic, ".4f")),
        ("p", rounded(found.pvalue, f".{len(str(n))}f")),
        ("mean of the null", rounded(found.null_mean, ".4f")),
        ("its standard deviation", rounded(found.null_std, ".4f")),
    ]
    if np.isfinite(found.exact_std):
        rows += [("exact mean", rounded(found.exact_mean, ".4f")), ("exact deviation", rounded(found.exact_std, ".4f"))]
    rows.append(("null, and statistic as a line", _picture(found)))
    return card("NullResult", "", [f"{n:,} permutations", _SIDES[found.alternative]], [table(("", ""), rows)])


def _picture(found: NullResult) -> Picture:
    null = found.null_distribution
    low, high = min(float(null.min()), found.statistic), max(float(null.max()), found.statistic)
    width = high - low or 1.0
    counts = np.histogram(null, bins=_BINS, range=(low, low + width))[0]
    ends = f"{rounded(float(null.min()))} to {rounded(float(null.max()))}"
    what = f"null from {ends}, statistic at {rounded(found.statistic)}"
    return bars(counts.tolist(), (found.statistic - low) / width, what)

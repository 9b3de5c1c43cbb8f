"""This module draws what few pages show: heaps of values one above the other, and strips in the cells of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lnsim.errors import NotebookError
from lnsim.plots import LABEL, QUIET, styled
from lnsim.plots.panels import new_axes
from lnsim.report.markup import filled
from lnsim.report.table import GROUP_CLASSES

__all__ = ["Strip", "heaps"]

_BINS = 90
_BULK_WIDTH = 0.6  # share of a heap's width that all but stray values may take, so that its note has room
_SCALE = (-0.2, 1.0)  # ends of the scale of a strip


@styled
def heaps(
    values: pd.DataFrame,
    *,
    colours: Mapping[Any, str] | None = None,
    notes: Mapping[Any, str] | None = None,
    bins: int = _BINS,
    ax: Axes | None = None,
) -> Axes:
    """How values lie: one heap a column, one above the other, on one scale that holds every value.

    Args:
        values: one row a channel, one column a heap; undefined values are left out.
        colours: by column; grey where not named.
        notes: by column, a line or two at the right of the heap.
        bins: over the whole scale.
        ax: where to draw; a new Axes where None.
    """
    ax = new_axes(ax, 0.6 * values.shape[1] + 1.0)
    every = values.to_numpy(dtype=float)
    low, high = min(0.0, float(np.nanmin(every))), max(0.0, float(np.nanmax(every)))
    if notes:
        high = max(high, low + (float(np.nanpercentile(every, 99.5)) - low) / _BULK_WIDTH)
    edges = np.linspace(low, high, bins)
    for place, name in enumerate(values.columns):
        base = values.shape[1] - 1 - place
        counts = np.histogram(values[name].dropna(), bins=edges)[0]
        colour = (colours or {}).get(name, QUIET)
        ax.stairs(base + 0.9 * counts / counts.max(), edges, baseline=base, fill=True, color=colour)
        ax.text(1.0, base + 0.86, (notes or {}).get(name, ""), ha="right", va="top", fontsize=9, color=LABEL,
                transform=ax.get_yaxis_transform())  # fmt: skip
    ax.axvline(0, color=LABEL, linewidth=0.9, linestyle=(0, (2, 2)))
    ax.set_yticks(range(values.shape[1]), labels=[str(name) for name in values.columns[::-1]])
    ax.set_ylim(-0.05, values.shape[1])
    return ax


@dataclass(frozen=True, slots=True)
class Strip:
    """One strip: r, the ends of the range that its null gives, and what the pair is, a key of GROUP_CLASSES."""

    r: float
    low: float
    high: float
    group: str

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.r, self.low, self.high))) or self.low > self.high:
            raise NotebookError(
                f"Drawing a strip: expected r and an ascending range, found {self.r}, {self.low} and {self.high}."
            )
        if self.group not in GROUP_CLASSES:
            raise NotebookError(f"Drawing a strip: '{self.group}' is none of {', '.join(GROUP_CLASSES)}.")

    @property
    def number(self) -> float:
        """The number by which a table sorts it."""
        return self.r

    @property
    def html(self) -> str:
        """The strip as an inline SVG, whose colours are those of the page."""
        places = {name: _place(value) for name, value in (("low", self.low), ("high", self.high), ("r", self.r))}
        return filled("strip.svg.j2", zero=_place(0.0), kind=GROUP_CLASSES[self.group], **places)


def _place(value: float) -> float:
    """Where a value lies in the picture; what is beyond the scale is drawn at its end."""
    low, high = _SCALE
    return 8 + 120 * (min(max(value, low), high) - low) / (high - low)

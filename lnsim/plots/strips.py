"""This module draws numbers in rows: a strip of marks for each category, and heaps of values one above the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from lnsim.plots.panels import new_axes
from lnsim.plots.style import INK, LABEL, NULL, QUIET, palette, readable, styled
from lnsim.words import header_text

_BINS = 90
_BULK_WIDTH = 0.6  # share of a heap's width that all but stray values may take, so that its note has room


@styled
def strips(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    hue: str = "group",
    style: str | None = None,
    markers: Mapping[Any, str] | str = "|",
    colours: Mapping[str, str] | None = None,
    band: tuple[str, str] | None = None,
    mean: bool = False,
    dodge: bool = False,
    zero: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """One row a category, one mark a value.

    Args:
        frame: long data.
        x: column of the values; undefined ones are left out.
        y: column of the categories, from above in order of appearance.
        hue: column that colours the marks; where each category has one value of it, the category's name too.
        style: column whose values have a marker each.
        markers: by value of `style`, or one for all: ``|`` for strokes, which overlap least.
        colours: by value of `hue`, where they are not those of groups and roles.
        band: columns of the lower and upper end of what chance gives, drawn behind.
        mean: True for a bar at each category's mean.
        dodge: True where the values of `style`, or of `hue` without one, stand one above the other in a category.
        zero: True for a line at zero.
        ax: where to draw; a new Axes where None.
    """
    order = list(dict.fromkeys(frame[y]))
    ax = new_axes(ax, 0.9 + 0.27 * len(order))
    found = palette(frame[hue], colours)
    if band is not None:
        _band(ax, frame, y, order, band)
    if zero:
        ax.axvline(0, color=LABEL, linewidth=0.8, label="_zero")
    kinds = list(frame.groupby(style, sort=False, observed=True)) if style else [(None, frame)]
    for place, (kind, part) in enumerate(kinds):
        marker, before = markers if isinstance(markers, str) else markers[kind], len(ax.collections)
        sns.stripplot(
            part.dropna(subset=[x]), x=x, y=y, hue=hue, order=order, hue_order=list(found), palette=found, jitter=False,
            dodge=dodge and not style, marker=marker, size=9 if marker == "|" else 5.5,
            linewidth=1.5 if marker == "|" else 0, alpha=0.85, legend=False, ax=ax, orient="h",
        )  # fmt: skip
        for drawn in ax.collections[before:] if dodge and style else ():
            up = 0.36 * (place + 0.5 - len(kinds) / 2) / max(1, len(kinds) - 1)
            drawn.set_offsets(np.add(drawn.get_offsets(), (0, up)))
    if mean:
        for place, name in enumerate(order):
            ax.vlines(frame.loc[frame[y] == name, x].mean(), place - 0.4, place + 0.4, color=INK, linewidth=2.2)
    ax.set(ylabel="", xlabel="", ylim=(len(order) - 0.4, -0.6))
    ax.grid(axis="x")
    ax.grid(visible=False, axis="y")
    _named(ax, frame, y, hue, order, found)
    return ax


def _band(ax: Axes, frame: pd.DataFrame, y: str, order: list[Any], band: tuple[str, str]) -> None:
    ends = frame.groupby(y, observed=True).agg(low=(band[0], "min"), high=(band[1], "max")).reindex(order)
    ax.barh(range(len(order)), ends.high - ends.low, left=ends.low, height=0.7, color=NULL, linewidth=0, zorder=0)


def _named(ax: Axes, frame: pd.DataFrame, y: str, hue: str, order: list[Any], found: Mapping[Any, str]) -> None:
    """The categories' names, in the colour of their only hue where they have one."""
    names = [header_text(name) for name in order]
    ax.set_yticks(range(len(order)), labels=names)
    size = 9.5 if max(map(len, names)) <= 40 else 8.5
    hues = frame.groupby(y, observed=True)[hue].unique()
    for label, name in zip(ax.get_yticklabels(), order, strict=False):
        label.set(fontsize=size, color=readable(found[hues[name][0]]) if len(hues[name]) == 1 else LABEL)
    ax.tick_params(axis="x", labelsize=10)


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

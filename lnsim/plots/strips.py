"""This module draws numbers in rows: a strip of marks for each category."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from lnsim.plots.panels import new_axes
from lnsim.plots.style import INK, LABEL, NULL, palette, readable, styled
from lnsim.words import header_text


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
    """One row a category of `y`, in order of appearance, and one mark a value of `x`; undefined ones are left out.

    `hue` colours the marks, and the category's name where that has one value of it. `markers` are by value of `style`,
    or one for all: ``|`` for strokes, which overlap least. `band` are columns of the ends of what chance gives, drawn
    behind; `mean` draws a bar at each category's mean. With `dodge` the values of `style`, or of `hue` without one,
    stand one above the other in a category.
    """
    order = list(dict.fromkeys(frame[y]))
    ax = new_axes(ax, 0.9 + 0.27 * len(order))
    found = palette(frame[hue], colours)
    if band is not None:
        ends = frame.groupby(y, observed=True).agg(low=(band[0], "min"), high=(band[1], "max")).reindex(order)
        ax.barh(range(len(order)), ends.high - ends.low, left=ends.low, height=0.7, color=NULL, linewidth=0, zorder=0)
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


def _named(ax: Axes, frame: pd.DataFrame, y: str, hue: str, order: list[Any], found: Mapping[Any, str]) -> None:
    """The categories' names, in the colour of their only hue where they have one."""
    names = [header_text(name) for name in order]
    ax.set_yticks(range(len(order)), labels=names)
    size = 9.5 if max(map(len, names)) <= 40 else 8.5
    hues = frame.groupby(y, observed=True)[hue].unique()
    for label, name in zip(ax.get_yticklabels(), order, strict=False):
        label.set(fontsize=size, color=readable(found[hues[name][0]]) if len(hues[name]) == 1 else LABEL)
    ax.tick_params(axis="x", labelsize=10)

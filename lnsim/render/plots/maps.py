"""This module draws maps of every layer of one model against every layer of another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from lnsim.errors import NotebookError
from lnsim.render.plots.style import INK, LABEL, WIDTH, broken, panels, styled
from lnsim.render.words import header_text, rounded

__all__ = ["DIVERGING", "SEQUENTIAL", "correlation_maps"]

DIVERGING = LinearSegmentedColormap.from_list(
    "lnsim_r", ["#8f3700", "#d8783b", "#f3dbc9", "#ffffff", "#cbdff0", "#4a8dc7", "#0a4a82"]
)
"""For correlations: always symmetric about 0."""

SEQUENTIAL = LinearSegmentedColormap.from_list("lnsim_cosine", ["#ffffff", "#cbdff0", "#4a8dc7", "#0a4a82"])
"""For cosines, with the limits printed."""

_MOST_NUMBERS = 12
"""Maps with at most this many rows and columns have their numbers written in."""


@styled
def correlation_maps(maps: Mapping[str, pd.DataFrame], limit: float = 1.0) -> Figure:
    """Correlations of all layers of one model (rows) with all layers of another (columns), one map a panel.

    Args:
        maps: by title; index and columns are layer numbers, named by the models.
        limit: the scale runs from minus to plus this value; it is printed.

    Raises:
        NotebookError: when a value lies outside the limits, which a map would hide.
    """
    largest = max(float(np.nanmax(np.abs(frame.to_numpy()))) for frame in maps.values())
    if largest > limit + 1e-9:
        raise NotebookError(
            f"Drawing a map of r: the largest value is {largest:.3f}, outside its limits of ±{limit:g}."
        )
    # Columns as wide as their maps have layers: a cell has the same size in both.
    wide = [frame.shape[1] for frame in maps.values()]
    row = len(maps) if len(maps) <= 2 else 1
    figure, axes = panels(len(maps), columns=row, height=_height(maps, row), width_ratios=wide if row > 1 else [1])
    for ax, (title, frame) in zip(axes, maps.items(), strict=True):
        image = ax.imshow(frame.to_numpy(), cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
        ax.set_title(broken(header_text(title), longest=20), fontsize=11.5)
        _label(ax, frame)
        if max(frame.shape) <= _MOST_NUMBERS:
            _numbers(ax, frame.to_numpy(), limit)
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", shrink=0.5, aspect=30, pad=0.03)
    bar.set_ticks([-limit, 0, limit], labels=[f"−{limit:g}", "0", f"{limit:g}"])
    bar.set_label("Pearson r", color=LABEL, fontsize=11)
    bar.outline.set_visible(False)
    return figure


def _height(maps: Mapping[str, pd.DataFrame], columns: int) -> float:
    """Inches of a row of maps, so that square cells fill the page's width, within bounds."""
    cells = sum(frame.shape[1] for frame in maps.values()) / (len(maps) / columns)
    tallest = max(frame.shape[0] for frame in maps.values())
    return float(np.clip(tallest * (WIDTH - 1.4) / cells + 1.8, 2.6, 6.4))


def _label(ax: Axes, frame: pd.DataFrame) -> None:
    ax.grid(False)
    for axis, labels in ((ax.xaxis, frame.columns), (ax.yaxis, frame.index)):
        step = max(1, round(len(labels) / 8))
        axis.set_ticks(range(0, len(labels), step), labels=[str(label) for label in labels[::step]])
    ax.set_xlabel(f"layer of {frame.columns.name}")
    ax.set_ylabel(f"layer of {frame.index.name}")
    ax.spines["bottom"].set_visible(False)


def _numbers(ax: Axes, values: np.ndarray, limit: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        colour = "white" if abs(value) > 0.55 * limit else INK
        # Two decimals without the leading zero: a cell is small.
        text = rounded(float(value), ".2f").replace("0.", ".", 1)
        size = 8.5 if max(values.shape) <= 6 else 7
        ax.text(column, row, text, ha="center", va="center", fontsize=size, color=colour)

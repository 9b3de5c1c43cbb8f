"""This module draws the map of every model against every other: cosine below the diagonal, r above it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from lnsim.errors import NotebookError
from lnsim.render.plots.maps import DIVERGING, SEQUENTIAL
from lnsim.render.plots.style import INK, LABEL, WIDTH, styled
from lnsim.render.words import rounded

__all__ = ["model_matrix"]


@styled
def model_matrix(cosine: pd.DataFrame, r: pd.DataFrame, related: Collection[tuple[str, str]]) -> Figure:
    """Every model against every other on one map: cosine below the diagonal, r above it; limits are printed.

    Args:
        cosine: index and columns are labels, the same in both; NaN where two models cannot be compared.
        r: the same for r; the scale runs from -1 to 1.
        related: pairs of labels that are framed.
    """
    labels = [str(label) for label in cosine.index]
    n = len(labels)
    if list(r.index) != list(cosine.index):
        raise NotebookError(f"Drawing a map of models: cosine has {labels}, r has {list(r.index)}.")
    figure, ax = plt.subplots(figsize=(WIDTH, 0.36 * n + 1.5))
    below, above = np.tril(np.ones((n, n), dtype=bool), -1), np.triu(np.ones((n, n), dtype=bool), 1)
    low = float(np.floor(20 * np.nanmin(np.where(below, cosine, np.nan))) / 20)
    first = _half(ax, cosine.to_numpy(), below, SEQUENTIAL, (low, 1.0))
    second = _half(ax, r.to_numpy(), above, DIVERGING, (-1.0, 1.0))
    for a, b in related:
        place = sorted((labels.index(a), labels.index(b)))
        for x, y in (place, place[::-1]):
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=1.6))
    _name(ax, labels)
    for image, name, ticks in ((first, "cosine", (low, 1.0)), (second, "r", (-1.0, 0.0, 1.0))):
        bar = figure.colorbar(image, ax=ax, shrink=0.7, aspect=22, pad=0.04)
        bar.set_ticks(list(ticks), labels=[rounded(tick, "g") for tick in ticks])
        bar.ax.set_title(name, fontsize=9.5, weight="normal", color=LABEL, loc="center", pad=6)
        bar.outline.set_visible(False)
    return figure


def _name(ax: Axes, labels: Sequence[str]) -> None:
    """Names at the rows with their numbers, the numbers alone at the columns, where names would not fit."""
    ax.set_xticks(range(len(labels)), labels=[str(number + 1) for number in range(len(labels))])
    ax.set_yticks(range(len(labels)), labels=[f"{label}  {number + 1}" for number, label in enumerate(labels)])
    ax.grid(False)
    ax.spines["bottom"].set_visible(False)
    ax.set_title("Cosine below the diagonal, r above it", fontsize=11.5)


def _half(ax: Axes, values: np.ndarray, where: np.ndarray, colours: Colormap, limits: tuple[float, float]) -> AxesImage:
    """One triangle of the map with its numbers; NotebookError where a value lies outside the limits."""
    inside = np.where(where, values, np.nan)
    if np.nanmin(inside) < limits[0] - 1e-9 or np.nanmax(inside) > limits[1] + 1e-9:
        raise NotebookError(
            f"Drawing a map of models: a value lies outside its limits, {limits[0]:g} to {limits[1]:g}."
        )
    image = ax.imshow(inside, cmap=colours, vmin=limits[0], vmax=limits[1], interpolation="nearest", aspect="auto")
    middle, reach = (limits[0] + limits[1]) / 2, (limits[1] - limits[0]) / 2
    for (row, column), value in np.ndenumerate(values):
        if where[row, column]:
            strength = abs(value) if limits[0] < 0 else 0.5 + 0.5 * (value - middle) / reach
            colour = "white" if strength > 0.6 else INK
            # Two decimals without the leading zero: a cell is small.
            text = "none" if np.isnan(value) else rounded(float(value), ".2f").replace("0.", ".", 1)
            ax.text(
                column, row, text, ha="center", va="center", fontsize=8.5, color=LABEL if text == "none" else colour
            )
    return image

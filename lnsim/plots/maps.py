"""This module draws maps: every layer against every layer, every model against every model, limits printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.errors import NotebookError
from lnsim.plots.panels import broken, panels
from lnsim.plots.style import DIVERGING, INK, LABEL, SEQUENTIAL, styled
from lnsim.words import header_text, rounded

_MOST_NUMBERS = 12  # maps with at most this many rows and columns have their numbers written in


@styled
def maps(
    frames: Mapping[str, pd.DataFrame],
    measure: str = "r",
    *,
    columns: int = 3,
    colours: Mapping[str, str] | None = None,
    numbers: bool = False,
    limit: float = 1.0,
) -> Figure:
    """One map a panel, by title, all on one scale, its ends printed; NotebookError for a value that it would hide.

    Index and columns are layers, and their names say of what. The scale of the measure ``r`` goes from minus to plus
    `limit`, any other from the least value to the limit. `colours` are those of the titles. With `numbers`, maps of no
    more than 12 rows and columns have them written in.
    """
    every = np.concatenate([frame.to_numpy(dtype=float).ravel() for frame in frames.values()])
    low = -limit if measure == "r" else float(np.floor(np.nanmin(every) * 20) / 20)
    least, most = float(np.nanmin(every)), float(np.nanmax(every))
    if least < low - 1e-9 or most > limit + 1e-9:
        raise NotebookError(
            f"Drawing a map of {measure}: {least:.3f} to {most:.3f} leave its limits, {low:g} to {limit:g}."
        )
    rows = max(len(frame) for frame in frames.values())
    height = 2.4 if rows > _MOST_NUMBERS or not numbers else 0.28 * rows + 1.2
    figure, axes = panels(len(frames), columns, height)
    for ax, (title, frame) in zip(axes, frames.items(), strict=True):
        _map(ax, frame, measure, (low, limit), numbers and max(frame.shape) <= _MOST_NUMBERS)
        ax.set_title(broken(header_text(title), 18), fontsize=10, color=(colours or {}).get(title, INK), pad=5)
    bar = figure.colorbar(axes[-1].collections[0], ax=axes, orientation="horizontal", shrink=0.5, aspect=32, pad=0.02)
    ticks = [low, 0.0, limit] if measure == "r" else [low, limit]
    bar.set_ticks(ticks, labels=[rounded(tick, ".2g") for tick in ticks])
    bar.set_label("Pearson r" if measure == "r" else header_text(measure), color=LABEL, fontsize=10)
    bar.outline.set_visible(False)
    return figure


def _map(ax: Axes, frame: pd.DataFrame, measure: str, limits: tuple[float, float], numbers: bool) -> None:
    values = frame.to_numpy(dtype=float)
    annot: Any = np.vectorize(_number)(values) if numbers else False
    sns.heatmap(
        values, vmin=limits[0], vmax=limits[1], cmap=DIVERGING if measure == "r" else SEQUENTIAL, cbar=False, ax=ax,
        mask=np.isnan(values), rasterized=True, linewidths=0,
        annot=annot, fmt="", annot_kws={"fontsize": 8.5 if max(frame.shape) <= 8 else 7},
    )  # fmt: skip
    ax.grid(visible=False)
    for axis, names in ((ax.xaxis, frame.columns), (ax.yaxis, frame.index)):
        places = _ticks([str(name) for name in names])
        axis.set_ticks([place + 0.5 for place in places], labels=[str(names[place]) for place in places], rotation=0)
    ax.tick_params(labelsize=9)
    if frame.columns.name:
        ax.set_xlabel(f"layer of {frame.columns.name}", fontsize=9)
        ax.set_ylabel(f"layer of {frame.index.name}", fontsize=9)


def _ticks(names: Sequence[str]) -> list[int]:
    """Which of the rows are named: layers at even steps, and every block of another name."""
    layers = [place for place, name in enumerate(names) if name.isdigit()]
    blocks = [place for place, name in enumerate(names) if name and not name.isdigit()]
    step = max(1, -(-len(layers) // 4))
    return [place for place in layers[::step] if not blocks or place <= layers[-1] - step / 2] + blocks


def _number(value: float) -> str:
    """Two decimals without the leading zero: a cell is small."""
    return "" if np.isnan(value) else rounded(value, ".2f").replace("0.", ".", 1)

"""This module lays figures out: panels of one width, the same kind of picture for each part of a frame, labels."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.optimize import isotonic_regression

from lnsim.plots.style import INK, WIDTH, palette, readable, styled
from lnsim.words import group_name, header_text

_TEXT = 9.5  # points of the names in a figure


class _Shown(Figure):
    """A figure of no open window: a notebook draws it where it is the last line of a cell, and nowhere else."""

    def _repr_png_(self) -> bytes:
        """Return the picture as IPython asks for it, on any backend."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=144, bbox_inches="tight")
        return file.getvalue()


def new_axes(ax: Axes | None, height: float = 3.4) -> Axes:
    """The Axes given, or a new one of the page's width, of a figure that a notebook does not show by itself."""
    return ax if ax is not None else _Shown(figsize=(WIDTH, height)).subplots()


@styled
def panels(n: int, columns: int = 2, height: float = 2.6, **share: Any) -> tuple[Figure, list[Axes]]:
    """A figure of `n` panels, `columns` in a row, each row `height` inches high; unused places stay empty."""
    columns = min(columns, n)
    rows = -(-n // columns)
    figure = _Shown(figsize=(WIDTH, height * rows + 0.5))
    every = list(figure.subplots(rows, columns, squeeze=False, **share).flat)
    for unused in every[n:]:
        unused.set_axis_off()
    for ax in every[max(0, n - columns) : n]:  # the lowest of each column keeps its numbers
        ax.tick_params(labelbottom=True)
    return figure, every[:n]


@styled
def facets(
    kind: Callable[..., Axes],
    frame: pd.DataFrame,
    by: str | Sequence[str],
    *,
    columns: int = 2,
    height: float = 2.4,
    sharex: Any = False,
    sharey: Any = True,
    title: str = "",
    titles: Mapping[Any, str] | None = None,
    title_colours: Mapping[Any, str] | None = None,
    **words: Any,
) -> Figure:
    """One panel for each value of a column, or several, in order of appearance, all of one kind of picture.

    That is a function of this package which takes a frame and an Axes, ``curves``, ``strips`` or ``scatter``, and is
    called with `words` besides. Each row of panels is so many inches high; `sharex` and `sharey` are matplotlib's.
    `titles` and their colours are by value, where the name as tables write it will not do.
    """
    key = [by] if isinstance(by, str) else list(by)
    parts = list(frame.groupby(key, sort=False, observed=True))
    figure, axes = panels(len(parts), columns, height, sharex=sharex, sharey=sharey)
    for ax, (names, part) in zip(axes, parts, strict=True):
        name = names[0] if isinstance(by, str) else names
        kind(part, ax=ax, **words)
        text = (titles or {}).get(name, ", ".join(map(header_text, names)))
        colour = readable((title_colours or {}).get(name, INK))
        ax.set_title(broken(text, 60 // columns), fontsize=10.5 if columns < 3 else 9.5, color=colour)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, weight="bold")
    named: dict[frozenset[str], Axes] = {}
    for place, ax in enumerate(axes):
        if place < len(axes) - columns:
            ax.set_xlabel("")
        if place % columns:
            ax.set_ylabel("")
        named[frozenset(str(line.get_label()) for line in ax.lines if not str(line.get_label()).startswith("_"))] = ax
    for ax in named.values():  # the last panel with these names has them for all
        name_ends(ax)
    return figure


def name_ends(ax: Axes) -> None:
    """Write the names of an Axes' lines at their right ends, moved apart where they would overlap.

    Lines of one name share a label, at the mean of their ends. It is called when the limits of the Axes are settled.
    """
    ends: dict[str, list[tuple[float, str]]] = {}
    right = 0.0
    for line in ax.lines:
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        known = np.flatnonzero(np.isfinite(y))
        if not str(line.get_label()).startswith("_") and len(known):
            ends.setdefault(str(line.get_label()), []).append((float(y[known[-1]]), str(line.get_color())))
            right = max(right, float(x[known[-1]]))
    log = ax.get_yscale() == "log"
    scaled = np.log10 if log else float
    low, high = map(scaled, ax.get_ylim())
    gap = 1.3 * _TEXT / 72 / _axes_inches(ax) * (high - low)
    labels = sorted((scaled(np.mean([y for y, _ in found])), name, found[0][1]) for name, found in ends.items())
    places = _moved_apart(np.array([y for y, _, _ in labels]), gap)
    for place, (_, name, colour) in zip(places, labels, strict=True):
        ax.annotate(
            broken(name, 30), (right, 10**place if log else place), xytext=(6, 0), textcoords="offset points",
            va="center", color=readable(colour), fontsize=_TEXT, weight="bold", annotation_clip=False,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # over a longer line of another name
        )  # fmt: skip


def key(
    ax: Axes,
    names: Sequence[Any],
    colours: Mapping[str, str] | None = None,
    at: tuple[float, float] = (0.98, 0.96),
    texts: Mapping[Any, str] | None = None,
) -> None:
    """Names in their own colours, one under the other: a legend without a box; `at` is the upper corner's place."""
    found = palette(names, colours)
    step = 1.35 * _TEXT / 72 / _axes_inches(ax)
    for place, name in enumerate(found):
        text = (texts or {}).get(name) or group_name(header_text(name))
        ax.text(at[0], at[1] - step * place, text, transform=ax.transAxes, va="top", color=readable(found[name]),
                ha="right" if at[0] > 0.5 else "left", fontsize=_TEXT, weight="bold")  # fmt: skip


def broken(text: str, longest: int = 34) -> str:
    """A text on two lines where it has more than `longest` characters, as a title needs it; a pair breaks at its ×."""
    if len(text) <= longest:
        return text
    return text.replace(" × ", " ×\n") if " × " in text else textwrap.fill(text, longest)


def whole_numbers(ax: Axes, axis: str = "x") -> None:
    """Ticks of an axis at whole numbers only."""
    (ax.xaxis if axis == "x" else ax.yaxis).set_major_locator(MaxNLocator(7, integer=True))


def _axes_inches(ax: Axes) -> float:
    """About the height of an Axes before it is laid out: its row's share, less title, ticks and label."""
    figure, place = ax.get_figure(root=True), ax.get_subplotspec()
    rows = place.get_gridspec().nrows if place is not None else 1
    height = figure.get_size_inches()[1] if figure is not None else 3.4
    return max(0.6, float(height) / rows - 0.85)


def _moved_apart(values: np.ndarray, gap: float) -> np.ndarray:
    """Ascending values at least `gap` apart, as near as possible to where they were."""
    # Values minus their steps must not fall.
    steps = gap * np.arange(len(values))
    return np.asarray(isotonic_regression(values - steps).x + steps)

"""This module fixes how figures look: colours by meaning, type, sizes, and labels beside what they name.

Figures are drawn once, on white; the pages' style sheet turns them for the dark theme. So no word in a figure may name
a colour or its lightness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine

from lnsim.plots.style import Moving
from lnsim.render.words import header_text

__all__ = [
    "GROUP_COLOURS",
    "INDEPENDENT",
    "INK",
    "LABEL",
    "NULL",
    "QUIET",
    "RELATED",
    "RELATION_COLOURS",
    "ROLE_COLOURS",
    "THUMBNAIL",
    "WIDTH",
    "Moving",
    "broken",
    "end_labels",
    "line_of",
    "marker_of",
    "names_above",
    "new_axes",
    "panels",
    "placed",
    "readable",
    "role_colour",
    "style",
    "thumbnail_axes",
    "title_of",
    "unlaid",
]  # fmt: skip

WIDTH = 6.8
"""Inches of a figure on a page."""

THUMBNAIL = (2.5, 1.6)
"""Inches of the picture of an index entry."""

INK, LABEL, QUIET, NULL = "#16191d", "#4c545c", "#9aa1a8", "#dfe3e6"
RELATED, INDEPENDENT = "#0b5fa5", "#bf4a00"

ROLE_COLOURS: Mapping[str, str] = {"pre_attention": "#00756b", "pre_mlp": "#8a6400"}
"""By role; every role not named here has the third colour."""
_OTHER_ROLES = "#93357e"

RELATION_COLOURS: Mapping[bool, str] = {True: RELATED, False: INDEPENDENT}
"""By whether a pair is related; relation and role colours do not meet in one figure."""

GROUP_COLOURS: Mapping[str, str] = {
    "related": RELATED,
    "disputed": INK,
    "independent": INDEPENDENT,
    "within": LABEL,
}
"""By what a pair counts as; a disputed pair is no control, and layers of one model are no pair of models."""

style: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 12, "text.color": INK,
    "axes.titlesize": 12.5, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 10,
    "axes.titlecolor": INK, "axes.labelcolor": LABEL, "axes.labelsize": 12, "axes.edgecolor": QUIET,
    "axes.linewidth": 0.9, "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
    "axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True, "axes.unicode_minus": True,
    "grid.color": "#e4e7e9", "grid.linewidth": 0.9,
    "xtick.color": QUIET, "ytick.color": QUIET, "xtick.labelcolor": LABEL, "ytick.labelcolor": LABEL,
    "xtick.labelsize": 11, "ytick.labelsize": 11, "xtick.major.size": 3.5, "ytick.major.size": 0,
    "lines.linewidth": 1.9, "lines.markersize": 5.5, "lines.markeredgewidth": 0, "legend.frameon": False,
    "figure.facecolor": "white", "savefig.facecolor": "white", "figure.constrained_layout.use": True,
    "svg.hashsalt": "lnsim",
}  # fmt: skip
"""rcParams of every figure; they hold while a figure is drawn and change nothing else."""

_CONTRAST = 4.5
_LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)))

Parameters = ParamSpec("Parameters")
Drawn = TypeVar("Drawn")


def styled(function: Callable[Parameters, Drawn]) -> Callable[Parameters, Drawn]:
    """Draw with the project's rcParams, and give the reader's own back afterwards."""

    @wraps(function)
    def inside(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Drawn:
        with mpl.rc_context(style):
            return function(*args, **kwargs)

    return inside


def new_axes(ax: Axes | None, height: float = 3.4) -> Axes:
    """The Axes given, or a new one of the page's width."""
    return ax if ax is not None else plt.subplots(figsize=(WIDTH, height))[1]


def thumbnail_axes() -> Axes:
    """A new Axes of an index entry's size, with the least of frame."""
    ax = plt.subplots(figsize=THUMBNAIL)[1]
    ax.tick_params(labelsize=10.5)
    ax.grid(False)
    return ax


def panels(n: int, columns: int = 2, height: float = 3.2, **share: Any) -> tuple[Figure, list[Axes]]:
    """A figure of `n` panels, `columns` in a row, each row `height` inches high; unused places stay empty."""
    columns = min(columns, n)
    rows = -(-n // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(WIDTH, height * rows), squeeze=False, **share)
    every = list(grid.flat)
    for unused in every[n:]:
        unused.set_axis_off()
    return figure, every[:n]


def placed(
    figure: Figure, right: float = 0.15, above: float = 0.0, between: float = 0.55, apart: float = 0.62
) -> Figure:
    """Panels set by fixed margins, which costs a third of laying out by the size of every text.

    Args:
        figure: panels as ``panels`` gives them.
        right: inches kept free at the right, for labels at the ends of lines.
        above: inches kept free above the titles of the top row.
        between: inches between two columns.
        apart: inches between two rows.
    """
    width, height = (float(size) for size in figure.get_size_inches())
    rows, columns = figure.axes[0].get_subplotspec().get_gridspec().get_geometry()  # type: ignore[union-attr]
    inner = (height - 1.0 - above) / rows, (width - 0.65 - right) / columns
    unlaid(figure)
    figure.subplots_adjust(
        left=0.65 / width,
        right=1 - right / width,
        bottom=0.6 / height,
        top=1 - (0.4 + above) / height,
        hspace=_gap(inner[0], rows, apart),
        wspace=_gap(inner[1], columns, between),
    )
    return figure


def unlaid(figure: Figure) -> Figure:
    """The figure with its places fixed: nothing moves them when it is saved."""
    figure.set_layout_engine(PlaceHolderLayoutEngine(adjust_compatible=True, colorbar_gridspec=True))
    return figure


def _gap(share: float, n: int, inches: float) -> float:
    """A gap of these inches between `n` panels, as a part of a panel's own size, which is how matplotlib wants it."""
    panel = (share * n - inches * (n - 1)) / n
    return inches / max(0.1, panel)


def role_colour(role: str) -> str:
    """Colour of a role, by its place in the block; towers share it."""
    return ROLE_COLOURS.get(role.rpartition("/")[2], _OTHER_ROLES)


def readable(colour: str) -> str:
    """A colour, darkened where needed, in which text has a contrast of at least 4.5 with white."""
    shade = np.array(to_rgb(colour))
    while 1.05 / (_luminance(shade) + 0.05) < _CONTRAST:
        shade = shade * 0.96
    red, green, blue = shade.tolist()
    return to_hex((red, green, blue))


def names_above(figure: Figure, models: Sequence[str], colours: Mapping[str, str]) -> None:
    """The models' names in a row above the panels; the right end is kept free for a replica's mark."""
    for place, model in enumerate(models):
        at = 0.86 * (place + 0.5) / len(models)
        figure.text(at, 0.98, model, ha="center", va="top", fontsize=10.5, weight="bold",
                    color=readable(colours[model]))  # fmt: skip


def line_of(place: int) -> Any:
    """Line style of the model at this place, so that a line shows through another that lies on it."""
    return _LINES[place % len(_LINES)]


def _luminance(shade: np.ndarray) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    linear = np.where(shade <= 0.04045, shade / 12.92, ((shade + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def marker_of(role: str) -> str:
    """Marker of a role: circles at the attention, squares at the MLP, so that colour is not alone."""
    return "o" if "attention" in role else "s"


def title_of(model: str, role: str, models: Sequence[str]) -> str:
    """A panel's title: the role, and the model where there is more than one."""
    return header_text(role) if len(set(models)) == 1 else f"{model}, {header_text(role)}"


def broken(pair: str, longest: int = 32) -> str:
    """A pair of names on two lines where it has more than `longest` characters, as a title needs it."""
    return pair.replace(" × ", " ×\n") if len(pair) > longest else pair


def end_labels(
    ax: Axes, labels: Sequence[tuple[float, str, str]], x: float, size: float = 11, bold: bool = True
) -> None:
    """Write labels (y, text, colour) of `size` points to the right of `x`, moved apart where they would overlap."""
    low, high = (_scaled(ax, limit) for limit in ax.get_ylim())
    gap = 1.3 * size / 72 / _axes_inches(ax) * (high - low)
    ordered = sorted(labels, key=lambda label: label[0])
    places = _moved_apart(np.array([_scaled(ax, label[0]) for label in ordered]), gap)
    for place, (_, text, colour) in zip(places, ordered, strict=True):
        y = 10**place if ax.get_yscale() == "log" else place
        ax.annotate(
            text, (x, y), xytext=(6, 0), textcoords="offset points", va="center", color=colour, fontsize=size,
            weight="bold" if bold else "normal", annotation_clip=False,
        )  # fmt: skip


def _axes_inches(ax: Axes) -> float:
    """About the height of an Axes before it is laid out: its row's share, less title, ticks and label."""
    figure, place = ax.get_figure(root=True), ax.get_subplotspec()
    rows = place.get_gridspec().nrows if place is not None else 1
    height = figure.get_size_inches()[1] if figure is not None else 3.4
    return max(0.6, float(height) / rows - 0.85)


def _scaled(ax: Axes, value: float) -> float:
    return float(np.log10(value)) if ax.get_yscale() == "log" else float(value)


def _moved_apart(values: np.ndarray, gap: float) -> np.ndarray:
    """Ascending values at least `gap` apart, as near as possible to where they were."""
    steps = gap * np.arange(len(values))
    # Values minus their steps must not fall; the nearest such sequence is the isotonic regression, by pooling.
    blocks: list[list[float]] = []
    for value in values - steps:
        blocks.append([float(value)])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    pooled = [float(np.mean(block)) for block in blocks for _ in block]
    return np.asarray(np.array(pooled) + steps)

"""This module draws listed pairs of models, one row a pair: cosine at the left, r over its null at the right."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lnsim.render.plots.style import GROUP_COLOURS, LABEL, NULL, QUIET, panels, styled
from lnsim.render.words import group_name

__all__ = ["cosines_beside_r"]

_MARKERS: Mapping[str, tuple[str, str]] = {"attention": ("D", "attention norms"), "MLP": ("o", "MLP norms")}
_BETWEEN_GROUPS = 0.9
_APART = 0.19


@styled
def cosines_beside_r(frame: pd.DataFrame) -> Figure:
    """Two panels over the same rows, one a pair (and tower): related pairs above, strangers below.

    Args:
        frame: rows of ``measure.listed_pairs``: columns ``pair``, ``norms``, ``group``, ``cosine``, ``r``,
            ``null_low`` and ``null_high``. The scales are from the least value, or 0, to 1.
    """
    placed, names = _placed(frame)
    figure, (left, right) = panels(2, height=0.3 * len(names) + 1.5, sharey=True, width_ratios=(1, 1.3))
    for low, high, place in zip(placed["null_low"], placed["null_high"], placed["place"], strict=True):
        right.barh(place, high - low, left=low, height=2 * _APART, color=NULL, linewidth=0)
    for ax, value, title in ((left, "cosine", "Cosine: all alike"), (right, "r", "Centred correlation: apart")):
        _marks(ax, placed, value)
        ax.set_title(title, fontsize=11.5)
        ax.set(
            xlim=(min(0.0, float(placed[value].min())) - 0.08, 1.05), xticks=[0, 0.5, 1], xticklabels=["0", "0.5", "1"]
        )
        ax.grid(axis="x")
        ax.grid(axis="y", visible=False)
    left.set_yticks(list(names.values()), labels=list(names))
    left.tick_params(axis="y", labelsize=10.5)
    left.set_ylim(max(names.values()) + 0.6, -0.6)
    for group, rows in placed.groupby("group", sort=False):
        above, colour = rows["place"].min() + _APART, GROUP_COLOURS[str(group)]
        left.text(0.0, above, group_name(group), color=colour, weight="bold", va="center")
    _key(figure, placed)
    return figure


def _placed(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    """The frame with the height of each mark, and the height of each row's name."""
    towers = frame["norms"].str.rpartition(" ")[0]
    named = [f"{pair}, {tower}" if tower else pair for pair, tower in zip(frame["pair"], towers, strict=True)]
    order = list(dict.fromkeys(frame["group"]))
    first = {name: order.index(group) for name, group in zip(named, frame["group"], strict=True)}
    names = {name: row + _BETWEEN_GROUPS * first[name] for row, name in enumerate(first)}
    kinds = frame["norms"].map(_kind)
    lowered = [names[name] + (_APART if kind == "MLP" else -_APART) for name, kind in zip(named, kinds, strict=True)]
    return frame.assign(place=lowered, kind=kinds), names


def _kind(norms: str) -> str:
    return "MLP" if norms.endswith("MLP") else "attention"


def _marks(ax: Axes, placed: pd.DataFrame, value: str) -> None:
    for (group, kind), rows in placed.groupby(["group", "kind"], sort=False):
        colour, (marker, _) = GROUP_COLOURS[str(group)], _MARKERS[str(kind)]
        ax.plot(rows[value], rows["place"], marker, color=colour, markersize=5, zorder=3)


def _key(figure: Figure, placed: pd.DataFrame) -> None:
    """What the marks and the grey mean, in one line below both panels."""
    kinds = [kind for kind in _MARKERS if kind in set(placed["kind"])]
    handles: list[Artist] = [
        Line2D([], [], linestyle="none", marker=_MARKERS[kind][0], color=QUIET, markersize=5, label=_MARKERS[kind][1])
        for kind in kinds
    ]
    handles.append(Patch(color=NULL, label="what shuffled channels give (95 %)"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=10, labelcolor=LABEL,
                  handletextpad=0.3, columnspacing=1.4)  # fmt: skip

"""This module draws layers by how far apart they are: within each model, and between two models at the same offset."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lnsim.render.plots.groups import GROUP_STYLES
from lnsim.render.plots.style import GROUP_COLOURS, INK, LABEL, NULL, end_labels, panels, styled, thumbnail_axes
from lnsim.render.words import count

__all__ = ["by_distance", "distance_thumbnail"]

_Ends = list[tuple[float, str, str]]
_NULL_WIDTH = 1.96
"""Standard deviations of the null to either side: 95 % where it is normal."""


@styled
def by_distance(frame: pd.DataFrame, colours: Mapping[str, str]) -> Figure:
    """Mean cosine and mean r by distance: models at the left, pairs of models at the right, one scale a row.

    Args:
        frame: columns ``name``, ``group`` (``within`` or that of the pair), ``distance``, ``cosine_mean``, ``r_mean``
            and ``null_std``; the widest null of the pairs is the band in the lower right panel.
        colours: of the models, by the names in ``name``; pairs have the colour of their group. The lower panels name
            the lines of the upper ones too.
    """
    inside, between = frame[frame["group"] == "within"], frame[frame["group"] != "within"]
    figure, axes = panels(4, height=2.7, sharey="row", sharex="col")
    _null_band(axes[3], between)
    for left, right, value in ((axes[0], axes[1], "cosine_mean"), (axes[2], axes[3], "r_mean")):
        ends = _model_lines(left, inside, value, colours), _pair_lines(right, between, value)
        if left is axes[2]:
            _labelled(left, inside, ends[0])
            _labelled(right, between, ends[1])
    for ax, title in zip(axes, ("Cosine, within a model", "between models", "r, within a model", "between models"),
                         strict=True):  # fmt: skip
        ax.set_title(title, fontsize=11.5)
    for ax in axes[2:]:
        ax.axhline(0, color=LABEL, linewidth=0.8)
        ax.set_xlabel("distance in layers")
    for ax, whole in ((axes[2], inside), (axes[3], between)):
        _distance_axis(ax, whole)
    return figure


@styled
def distance_thumbnail(frame: pd.DataFrame) -> Axes:
    """Mean r by distance, small: columns ``group``, ``distance`` and ``r``; within a model against strangers."""
    ax = thumbnail_axes()
    for group, words in (("within", "one model"), ("independent", "strangers")):
        line = frame[frame["group"] == group].groupby("distance")["r"].mean()
        if len(line):
            colour = INK if group == "within" else GROUP_COLOURS[group]
            ax.plot(line.index, line, color=colour)
            place = len(line) // 3
            ax.text(float(line.index[place]), float(line.iloc[place]) + 0.06, words, fontsize=10.5, color=colour)
    ax.set_ylim(min(-0.12, float(ax.get_ylim()[0])), 1.1)
    ax.set_yticks([0, 1])
    ax.set_xticks([1, int(frame["distance"].max())])
    ax.set_title("r by distance", fontsize=10.5, weight="normal", pad=4)
    return ax


def _model_lines(ax: Axes, frame: pd.DataFrame, value: str, colours: Mapping[str, str]) -> _Ends:
    ends = []
    for name, line in frame.groupby("name", sort=False):
        colour = colours[str(name)]
        ax.plot(line["distance"], line[value], color=colour, marker="o", markersize=3 if len(line) < 15 else 0)
        ends.append((float(line[value].iloc[-1]), str(name), colour))
    return ends


def _pair_lines(ax: Axes, frame: pd.DataFrame, value: str) -> _Ends:
    ends = []
    for group, lines in frame.groupby("group", sort=False):
        colour = GROUP_COLOURS[str(group)]
        last = []
        for _, line in lines.groupby("name", sort=False):
            ax.plot(line["distance"], line[value], GROUP_STYLES[str(group)], color=colour, linewidth=1.4)
            last.append(float(line[value].iloc[-1]))
        ends.append((float(np.mean(last)), f"{group}, {count(len(last), 'pair')}", colour))
    return ends


def _labelled(ax: Axes, frame: pd.DataFrame, ends: _Ends) -> None:
    """Labels at the right of the longest line; the panel's limits must hold every line before they are placed."""
    if not ends:
        ax.text(0.5, 0.5, "none to compare", transform=ax.transAxes, ha="center", color=LABEL)
        return
    ax.margins(y=0.06)
    ax.autoscale_view()
    end_labels(ax, ends, float(frame["distance"].max()), size=9.5)


def _null_band(ax: Axes, frame: pd.DataFrame) -> None:
    if len(frame):
        widest = frame.groupby("distance")["null_std"].max() * _NULL_WIDTH
        ax.fill_between(widest.index, -widest, widest, color=NULL, linewidth=0)


def _distance_axis(ax: Axes, frame: pd.DataFrame) -> None:
    last = int(frame["distance"].max()) if len(frame) else 1
    ax.set_xlim(-0.5, 1.02 * last)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))

"""This module draws what the verdicts rest on: p of r against p by ranks, one mark a test."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from lnsim.measure.nulls import LEVEL
from lnsim.render.plots.style import GROUP_COLOURS, LABEL, NULL, QUIET, new_axes, styled, thumbnail_axes
from lnsim.render.words import group_name

__all__ = ["p_against_ranks", "p_thumbnail"]

_MARKERS = {"related": "o", "disputed": "D", "independent": "^"}


@styled
def p_against_ranks(tests: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Raw p of the mean r across and by ranks upwards, on logarithmic scales; solid where both hold after adjustment.

    Args:
        tests: columns ``group``, ``pvalue``, ``p_ranks``, ``p_holm`` and ``p_ranks_holm``; rows without a p are left
            out.
        ax: where to draw; a new one where it is None.
    """
    ax, shown = new_axes(ax, 3.6), tests.dropna(subset=["pvalue"])
    low = _draw(ax, shown, 7.0)
    ax.set(xlabel="p of mean r", ylabel="p by ranks")
    ax.text(low * 1.2, LEVEL * 0.75, "both below the level", color=LABEL, fontsize=10.5, va="top")
    ax.text(1.4, LEVEL * 0.75, "ranks alone", color=LABEL, fontsize=10.5, va="top", ha="right")
    ax.text(low * 1.2, 0.5, "Pearson alone", color=LABEL, fontsize=10.5, va="center")
    kinds = [kind for kind in _MARKERS if kind in set(shown["group"])]
    handles = [
        Line2D([], [], linestyle="none", marker=_MARKERS[kind], color=GROUP_COLOURS[kind], markersize=7,
               label=group_name(kind))
        for kind in kinds
    ]  # fmt: skip
    ax.figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=10.5, labelcolor=LABEL)
    return ax


@styled
def p_thumbnail(tests: pd.DataFrame) -> Axes:
    """The same, small."""
    ax, shown = thumbnail_axes(), tests.dropna(subset=["pvalue"])
    _draw(ax, shown, 4.5)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title("p, and by ranks", fontsize=10.5, weight="normal", pad=4)
    return ax


def _draw(ax: Axes, shown: pd.DataFrame, size: float) -> float:
    """The marks, the level and the corner below it on both scales; returns where the scales begin."""
    low = 0.5 * float(shown[["pvalue", "p_ranks"]].min().min())
    ax.set(xscale="log", yscale="log", xlim=(low, 1.6), ylim=(low, 1.6))
    ax.minorticks_off()
    ax.fill_between([low, LEVEL], low, LEVEL, color=NULL, linewidth=0)
    for line in (ax.axhline, ax.axvline):
        line(LEVEL, color=QUIET, linewidth=0.9)
    holds = shown[["p_holm", "p_ranks_holm"]].max(axis=1) < LEVEL
    for (group, both), rows in shown.groupby(["group", holds], sort=False):
        colour = GROUP_COLOURS[str(group)]
        face = colour if both else "none"
        ax.plot(
            rows["pvalue"], rows["p_ranks"], linestyle="none", marker=_MARKERS[str(group)], markersize=size,
            color=colour, markerfacecolor=face, markeredgecolor=colour, markeredgewidth=1.2, clip_on=False,
        )  # fmt: skip
    return low

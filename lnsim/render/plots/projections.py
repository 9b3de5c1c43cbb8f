"""This module draws projection matrices of several models against each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import INK, LABEL, NULL, QUIET, new_axes, panels, styled, thumbnail_axes

__all__ = ["difference_against_ratio", "projection_thumbnail", "scores_by_group"]

_MARKS = {"k_proj": "o", "v_proj": "s"}


@styled
def difference_against_ratio(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Relative difference of two matrices against the ratio of their lengths, with what no correlation predicts.

    Args:
        frame: columns ``kind``, ``norm_ratio`` and ``rel_l2``.
        ax: where to draw; a new Axes where None.
    """
    ax = new_axes(ax, 3.6)
    ratio = np.linspace(0, 1.08 * float(frame["norm_ratio"].max()), 200)
    ax.plot(ratio, np.sqrt(1 + ratio**2), color=QUIET, linewidth=1.4)
    for kind, points in frame.groupby("kind", sort=False):
        mark = _MARKS.get(str(kind), "^")
        ax.plot(points["norm_ratio"], points["rel_l2"], mark, color=INK, markersize=6, markerfacecolor="none",
                markeredgewidth=1.3, label=f"{kind}, {len(points)} pairs")  # fmt: skip
    ax.plot([], [], color=QUIET, label="√(1 + ratio²): no correlation at all")
    ax.legend(loc="upper left", fontsize=10.5)
    ax.set_xlim(0, ratio[-1])
    ax.set_xlabel("ratio of lengths, second matrix over first")
    ax.set_title("Length of the difference over that of the first matrix")
    return ax


@styled
def scores_by_group(frame: pd.DataFrame) -> Figure:
    """Cosines in units of 1 / sqrt(n), one dot a pair of matrices: one panel a kind, one row a group of pairs.

    Args:
        frame: columns ``kind``, ``group`` and ``z``.
    """
    kinds, groups = list(dict.fromkeys(frame["kind"])), list(dict.fromkeys(frame["group"]))
    figure, axes = panels(len(kinds), height=0.55 * len(groups) + 1.5, sharey=True, sharex=True)
    for ax, kind in zip(axes, kinds, strict=True):
        ax.axvspan(-1.96, 1.96, color=NULL, linewidth=0)
        for place, group in enumerate(reversed(groups)):
            z = frame[(frame["kind"] == kind) & (frame["group"] == group)]["z"]
            ax.plot(z, np.full(len(z), place), "|", color=INK, markersize=13, markeredgewidth=1.3)
        ax.set_title(str(kind), fontsize=11.5)
        ax.grid(False)
        ax.set_xlabel("cosine in units of 1/√n")
    axes[0].set_yticks(range(len(groups)), labels=list(reversed(groups)))
    axes[0].set_ylim(-0.6, len(groups) - 0.4)
    reach = max(3.0, 1.1 * float(frame["z"].abs().max()))
    axes[0].set_xlim(-reach, reach)
    return figure


@styled
def projection_thumbnail(frame: pd.DataFrame) -> Axes:
    """Relative difference against the ratio of lengths, small: columns ``norm_ratio`` and ``rel_l2``."""
    ax = thumbnail_axes()
    ratio = np.linspace(0, 1.1 * float(frame["norm_ratio"].max()), 100)
    ax.plot(ratio, np.sqrt(1 + ratio**2), color=QUIET, linewidth=1.4)
    ax.plot(frame["norm_ratio"], frame["rel_l2"], "o", color=INK, markersize=3.5)
    ax.set_ylim(bottom=0)
    ax.set_xticks([0, 1])
    ax.set_yticks([0, 1, 2])
    ax.set_title("difference, by ratio", fontsize=10.5, weight="normal", pad=4, color=LABEL)
    return ax

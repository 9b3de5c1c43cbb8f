"""This module draws pairs of models by what they are: related, disputed, independent, and of which kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    GROUP_COLOURS,
    INK,
    LABEL,
    NULL,
    QUIET,
    end_labels,
    panels,
    styled,
    thumbnail_axes,
)
from lnsim.render.words import count, group_name

__all__ = [
    "GROUP_STYLES",
    "groups_thumbnail",
    "kind_strips",
    "pair_curves",
    "pairs_against_null",
]

GROUP_STYLES: Mapping[str, str] = {"related": "-", "disputed": "--", "independent": ":"}
"""Line style by group of a pair, so that colour is not alone; marks differ as well."""

_GROUP_MARKERS: Mapping[str, str] = {"related": "o", "disputed": "D", "independent": "v"}
_NULL_WIDTH = 1.96


@styled
def kind_strips(frame: pd.DataFrame) -> Figure:
    """Every pair as a mark, one row of marks for each combination of kinds: cosine at the left, r at the right.

    Args:
        frame: columns ``kinds``, ``group``, ``cosine`` and ``r``; a bar marks the mean of all pairs of a row, a thin
            one the mean without the related pairs.
    """
    rows = list(dict.fromkeys(frame["kinds"]))
    figure, axes = panels(2, height=0.75 * len(rows) + 1.5, sharey=True)
    for ax, value in zip(axes, ("cosine", "r"), strict=True):
        for place, kinds in enumerate(reversed(rows)):
            _strip(ax, frame[frame["kinds"] == kinds], value, place)
        ax.set_title("Cosine" if value == "cosine" else "Pearson r")
        ax.grid(axis="x")
        ax.grid(axis="y", visible=False)
    numbers = frame.groupby("kinds").size()
    words = [f"{kinds}\n{count(int(numbers[kinds]), 'pair')}" for kinds in reversed(rows)]
    axes[0].set_yticks(range(len(rows)), labels=words)
    axes[0].set_ylim(-0.5, len(rows) - 0.3)
    _key(axes[1], list(dict.fromkeys(frame["group"])))
    return figure


@styled
def pair_curves(frame: pd.DataFrame, named: Sequence[str]) -> Figure:
    """Every pair by layer: cosine in the upper panel, r in the lower, a line a pair in the colour of its group.

    Args:
        frame: columns ``pair``, ``group``, ``layer``, ``cosine`` and ``r``, of one role.
        named: pairs that are drawn stronger; the lower panel names them for both. One that is not in the frame is left
            out.
    """
    figure, axes = panels(2, columns=1, height=2.6, sharex=True)
    last = int(frame["layer"].max())
    for ax, value in zip(axes, ("cosine", "r"), strict=True):
        ends = []
        for pair, line in frame.groupby("pair", sort=False):
            group, strong = str(line["group"].iloc[0]), pair in named
            width, alpha = (2.2, 1.0) if strong else (0.9, 0.6)
            ax.plot(line["layer"], line[value], GROUP_STYLES[group], color=GROUP_COLOURS[group], linewidth=width,
                    alpha=alpha, zorder=2 + strong)  # fmt: skip
            if strong:
                ends.append((float(line[value].iloc[-1]), str(pair), GROUP_COLOURS[group]))
        ax.set_title("Cosine" if value == "cosine" else "Pearson r")
        ax.set_xlim(-0.3, last + 0.2)
    end_labels(axes[1], ends, last, size=9.5)
    axes[1].set_xlabel("layer")
    axes[1].set_xticks(range(0, last + 1, max(1, round(last / 8))))
    _key(axes[0], list(dict.fromkeys(frame["group"])), lines=True)
    return figure


@styled
def pairs_against_null(frame: pd.DataFrame) -> Figure:
    """What permuted channels give beside what was measured, one mark a pair: cosine at the left, r at the right.

    Args:
        frame: columns ``group``, ``cosine_mean``, ``mean_term`` (the mean cosine of permuted channels), ``r_mean`` and
            ``null_std``. At the right, pairs are ordered by r over the band of +-1.96 ``null_std``.
    """
    figure, (left, right) = panels(2, height=3.6)
    limits = (float(frame[["cosine_mean", "mean_term"]].min().min()) - 0.01, 1.005)
    left.plot(limits, limits, color=QUIET, linewidth=1)
    ordered = frame.sort_values("r_mean", kind="stable").reset_index(drop=True)
    band = _NULL_WIDTH * ordered["null_std"]
    right.bar(ordered.index, 2 * band, bottom=-band, width=1.0, color=NULL, linewidth=0)
    right.axhline(0, color=LABEL, linewidth=0.8)
    for group in dict.fromkeys(frame["group"]):
        look: dict[str, Any] = {
            "linestyle": "none",
            "marker": _GROUP_MARKERS[group],
            "color": GROUP_COLOURS[group],
            "markersize": 5,
        }
        some = ordered[ordered["group"] == group]
        left.plot(some["mean_term"], some["cosine_mean"], **look)
        right.plot(some.index, some["r_mean"], **look)
    left.set(xlim=limits, ylim=limits, xlabel="channels permuted", title="Mean cosine")
    right.set(xlabel="pairs, ordered by r", title="Mean r", xticks=[])
    _key(right, list(dict.fromkeys(frame["group"])), at=(0.04, 0.95))
    return figure


@styled
def groups_thumbnail(frame: pd.DataFrame) -> Axes:
    """Mean r of every pair in order, small: columns ``group`` and ``r_mean``."""
    ax = thumbnail_axes()
    ordered = frame.sort_values("r_mean", kind="stable").reset_index(drop=True)
    for group, some in ordered.groupby("group", sort=False):
        colour, marker = GROUP_COLOURS[str(group)], _GROUP_MARKERS[str(group)]
        ax.plot(some.index, some["r_mean"], linestyle="none", marker=marker, markersize=4, color=colour)
    ax.set_ylim(-0.12, 1.1)
    ax.set_yticks([0, 1])
    ax.set_xticks([])
    ax.set_title("r of pairs", fontsize=10.5, weight="normal", pad=4)
    return ax


def _strip(ax: Axes, frame: pd.DataFrame, value: str, place: int) -> None:
    for shift, (group, some) in enumerate(frame.groupby("group", sort=False)):
        # Marks of one group share a line; a fixed zigzag keeps equal values apart.
        zigzag = 0.05 * (np.arange(len(some)) % 5 - 2)
        y = place + 0.16 * (shift - 1) + zigzag
        ax.plot(some[value], y, linestyle="none", marker=_GROUP_MARKERS[str(group)], markersize=5, alpha=0.8,
                color=GROUP_COLOURS[str(group)])  # fmt: skip
    ax.vlines(frame[value].mean(), place - 0.36, place + 0.36, color=INK, linewidth=2.4)
    rest = frame.loc[frame["group"] != "related", value]
    if len(rest):
        ax.vlines(rest.mean(), place - 0.36, place + 0.36, color=INK, linewidth=0.9)


def _key(ax: Axes, groups: Sequence[str], lines: bool = False, at: tuple[float, float] | None = None) -> None:
    """The groups by name, each with its own mark, in their own colours."""
    signs = {"related": "solid", "disputed": "dashed", "independent": "dotted"}
    marks = {"related": "circle", "disputed": "diamond", "independent": "triangle"}
    x, y = at or ((0.98, 0.08) if lines else (0.5, 0.97))
    side = "right" if lines else "left" if at else "center"
    ordered = [group for group in GROUP_COLOURS if group in groups]
    step = 0.11 if lines else 0.085
    for place, group in enumerate(reversed(ordered) if lines else ordered):
        words = f"{(signs if lines else marks)[group]}: {group_name(group)}"
        ax.text(x, y + step * place * (1 if lines else -1), words, transform=ax.transAxes, ha=side, fontsize=9.5,
                va="bottom" if lines else "top", color=GROUP_COLOURS[group], weight="bold")  # fmt: skip

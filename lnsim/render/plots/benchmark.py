"""This module draws how methods compete on pairs of known lineage: ROC curves, areas by kind, values by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    INDEPENDENT,
    INK,
    LABEL,
    NULL,
    QUIET,
    RELATED,
    line_of,
    new_axes,
    panels,
    styled,
    thumbnail_axes,
)

__all__ = ["NEAREST", "area_dots", "benchmark_thumbnail", "method_colours", "roc_panels", "values_by_kind"]

_COLOURS = (INDEPENDENT, RELATED, INK, "#00756b")
_MARKERS = ("o", "s", "D", "^")

NEAREST = 1e-7
"""The least distance from one that a cosine is drawn at; that of equal vectors is zero, up to rounding."""

_MANY = 40
"""From so many strokes in a row on, each is thin, and the row is a picture: thousands of paths are a megabyte."""

_GROUPS: Mapping[str, str] = {"derived": RELATED, "siblings": INK, "independent": INDEPENDENT}


def method_colours(methods: Sequence[str]) -> dict[str, str]:
    """A colour for each of up to four methods."""
    return dict(zip(methods, _COLOURS, strict=False))


@styled
def roc_panels(curves: Mapping[str, Mapping[str, pd.DataFrame]]) -> Figure:
    """ROC curves: one panel a set of strangers, one line a method.

    Args:
        curves: by the title of a panel and by method, as ``roc.curve`` gives them; methods are at most four.
    """
    figure, axes = panels(len(curves), height=3.9, sharex=True, sharey=True)
    for ax, (title, lines) in zip(axes, curves.items(), strict=True):
        ax.plot([0, 1], [0, 1], linestyle=(0, (1, 2)), color=LABEL, linewidth=1.2)
        for place, (method, curve) in enumerate(lines.items()):
            ax.plot(curve["false"], curve["true"], color=_COLOURS[place], linestyle=line_of(place), label=method)
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.04)
        ax.set_xlabel("strangers called related")
        ax.set_title(title, fontsize=11.5)
    axes[0].set_ylabel("derived pairs found")
    axes[0].legend(loc="lower right", fontsize=9.5, handlelength=2.6)
    return figure


@styled
def area_dots(frame: pd.DataFrame, names: Mapping[str, str], ax: Axes | None = None) -> Axes:
    """The area of each method for each kind of related pair: one row a kind, one mark a method, with its interval.

    Args:
        frame: columns ``kind``, ``blind``, ``n``, ``method``, ``area``, ``low`` and ``high``; kinds in their order.
        names: by method, what readers see; at most four.
        ax: where to draw; a new Axes where None.
    """
    kinds = list(dict.fromkeys(frame["kind"]))
    ax = new_axes(ax, 1.7 + 0.34 * len(kinds))
    ax.axvline(0.5, color=QUIET, linewidth=1.2, linestyle=(0, (1, 2)))
    blind = frame.groupby("kind")["blind"].first()
    for row, kind in enumerate(kinds):
        if blind[kind]:
            ax.axhspan(row - 0.5, row + 0.5, color=NULL, alpha=0.55, linewidth=0)
    shift = np.linspace(-0.22, 0.22, len(names))
    for place, (method, name) in enumerate(names.items()):
        one = frame[frame["method"] == method].set_index("kind").loc[kinds]
        rows = np.arange(len(kinds)) + shift[place]
        ax.hlines(rows, one["low"], one["high"], color=_COLOURS[place], linewidth=1.1, alpha=0.7)
        ax.plot(one["area"], rows, _MARKERS[place], color=_COLOURS[place], markersize=5, label=name, clip_on=False)
    ns = frame.groupby("kind", sort=False)["n"].first()
    ax.set_yticks(range(len(kinds)), labels=[f"{kind} ({ns[kind]})" for kind in kinds], fontsize=10)
    ax.set_ylim(len(kinds) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.grid(False)
    ax.set_xlabel("area under the ROC curve")
    ax.legend(loc="lower right", bbox_to_anchor=(1.02, 1.0), ncols=2, fontsize=9.5, handletextpad=0.2,
              columnspacing=1.2, borderaxespad=0.1)  # fmt: skip
    return ax


@styled
def values_by_kind(truth: pd.DataFrame, scores: pd.DataFrame) -> Figure:
    """Every pair's cosine and r by kind, one row of strokes a kind; the more alike, the further to the right.

    Args:
        truth: columns ``kind`` and ``group``.
        scores: columns ``cosine`` and ``pearson``, rows as in `truth`; undefined values are not drawn. The cosine is
            drawn by its distance from one on a logarithmic scale; below NEAREST it stands at NEAREST.
    """
    order = {"derived": 0, "siblings": 1, "independent": 2}
    groups = (
        truth.groupby("kind", sort=False)["group"].first().sort_values(key=lambda one: one.map(order), kind="stable")
    )
    figure, axes = panels(2, height=1.4 + 0.3 * len(groups), sharey=True)
    drawn = {"1 − cosine": (1 - scores["cosine"]).clip(lower=NEAREST), "Pearson’s r": scores["pearson"]}
    for ax, (title, values) in zip(axes, drawn.items(), strict=True):
        for row, (kind, group) in enumerate(groups.items()):
            some = values[truth["kind"] == kind].dropna()
            few = len(some) < _MANY
            ax.plot(some, np.full(len(some), row), "|", color=_GROUPS[str(group)], markersize=11,
                    markeredgewidth=1.4 if few else 0.7, alpha=0.9 if few else 0.25, rasterized=not few)  # fmt: skip
        ax.set_title(title, fontsize=11.5)
        ax.grid(False)
    axes[0].set_xscale("log")
    axes[0].set_xlim(3, NEAREST / 2)
    axes[0].set_yticks(range(len(groups)), labels=[str(kind) for kind in groups.index], fontsize=10)
    axes[0].set_ylim(len(groups) - 0.4, -0.6)
    return figure


@styled
def benchmark_thumbnail(curves: Mapping[str, pd.DataFrame]) -> Axes:
    """Two ROC curves, small: one method a line, its name beside it."""
    ax = thumbnail_axes()
    ax.plot([0, 1], [0, 1], linestyle=(0, (1, 2)), color=LABEL, linewidth=1)
    for place, (name, curve) in enumerate(curves.items()):
        ax.plot(curve["false"], curve["true"], color=_COLOURS[place], linestyle=line_of(place))
        ax.text(0.98, 0.12 + 0.2 * place, name, ha="right", va="center", fontsize=10.5, color=_COLOURS[place])
    ax.set_xticks([0, 1])
    ax.set_yticks([0, 1])
    return ax

"""This module draws how fair one layer is as a baseline: cosines, their two terms, other choices, shuffled channels.

Every function takes long frames: one row a model, role and layer, as ``lnsim.cells`` gives them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    INK,
    LABEL,
    NULL,
    marker_of,
    new_axes,
    panels,
    role_colour,
    styled,
    thumbnail_axes,
    title_of,
)
from lnsim.render.words import header_text, rounded, span

__all__ = ["baseline_curves", "baseline_thumbnail", "cosine_terms", "each_layer_as_baseline", "null_band"]

_SMALL = 0.2
"""A panel whose cosines all stay below this gets a second, enlarged view inside."""


@styled
def baseline_curves(frame: pd.DataFrame, baseline_layer: int, ax: Axes | None = None) -> Axes:
    """Cosine of the baseline layer with each other layer, one line a model and role.

    Args:
        frame: columns ``model``, ``role``, ``layer``, ``cosine`` and ``cosine_elsewhere``, the mean cosine of that
            layer with all but the baseline; the latter is drawn dashed for the role with the lowest cosines.
        baseline_layer: for the labels.
        ax: where to draw; a new Axes where None.
    """
    ax = new_axes(ax, 3.6)
    groups = dict(list(frame.groupby(["model", "role"], sort=False)))
    lowest = min(groups, key=lambda key: float(groups[key]["cosine"].mean()))
    models = list(frame["model"])
    for (model, role), line in groups.items():
        colour = role_colour(role)
        ax.plot(line["layer"], line["cosine"], marker=marker_of(role), markersize=4, color=colour)
        words = f"{title_of(model, role, models)}, layer {baseline_layer} as the baseline: {span(line['cosine'])}"
        _beside(ax, line, words, colour)
    low = groups[lowest]
    ax.plot(low["layer"], low["cosine_elsewhere"], "--", color=role_colour(lowest[1]), linewidth=1.5)
    words = f"dashed: {title_of(lowest[0], lowest[1], models)}, other layers as the baseline"
    ax.text(float(low["layer"].min()), 1.03, words, color=role_colour(lowest[1]), va="bottom", fontsize=11)
    ax.set_ylim(min(0.0, float(frame["cosine"].min())) - 0.02, 1.14)
    ax.set_yticks(np.arange(0, 1.01, 0.2))
    _layer_axis(ax, frame, "layer compared")
    ax.set_title("Cosine")
    return ax


@styled
def baseline_thumbnail(frame: pd.DataFrame) -> Axes:
    """The same curves, small: columns ``role``, ``layer`` and ``cosine`` of one model."""
    ax = thumbnail_axes()
    for role, line in frame.groupby("role", sort=False):
        colour = role_colour(str(role))
        ax.plot(line["layer"], line["cosine"], color=colour)
        middle = float(line["cosine"].mean())
        above = middle < 0.5
        ax.text(float(line["layer"].max()), middle + (0.08 if above else -0.08), header_text(str(role)), fontsize=10.5,
                color=colour, ha="right", va="bottom" if above else "top")  # fmt: skip
    ax.set_ylim(-0.08, 1.05)
    ax.set_yticks([0, 1])
    ax.set_xticks([int(frame["layer"].min()), int(frame["layer"].max())])
    ax.set_title("cosine", fontsize=10.5, weight="normal", pad=4)
    return ax


@styled
def cosine_terms(frame: pd.DataFrame, baseline_layer: int) -> Figure:
    """The cosine as mean term plus pattern term, one panel a model and role, on the same scale.

    Args:
        frame: columns ``model``, ``role``, ``layer``, ``cosine``, ``mean_term`` and ``pattern_term``.
        baseline_layer: for the labels.
    """
    groups = list(frame.groupby(["model", "role"], sort=False))
    figure, axes = panels(len(groups), height=3.4, sharey=True)
    for ax, ((model, role), bars) in zip(axes, groups, strict=True):
        _bars(ax, bars, role_colour(role), 3.0)
        ax.set_title(title_of(model, role, list(frame["model"])), color=role_colour(role))
        _layer_axis(ax, bars, f"layer compared with layer {baseline_layer}")
        if bars["cosine"].abs().max() < _SMALL:
            _enlarged(ax, bars, role_colour(role))
    axes[0].set_ylim(min(-0.04, float(frame["pattern_term"].min()) - 0.02), 1.05)
    key = max(zip(axes, groups, strict=True), key=lambda pair: float(pair[1][1]["mean_term"].mean()))[0]
    key.text(0.5, 0.45, "faint: mean term\nsolid: pattern term\ndots: cosine", transform=key.transAxes, ha="center",
             va="center", fontsize=11, bbox={"facecolor": "white", "edgecolor": "none", "pad": 6})  # fmt: skip
    return figure


@styled
def each_layer_as_baseline(frame: pd.DataFrame, baseline_layer: int, ax: Axes | None = None) -> Axes:
    """Mean cosine with all other layers, for each layer in turn as the baseline.

    Args:
        frame: columns ``model``, ``role``, ``layer`` and ``cosine_mean``.
        baseline_layer: the choice that is labelled.
        ax: where to draw; a new Axes where None.
    """
    ax = new_axes(ax, 3.4)
    labels = []
    for (model, role), dots in frame.groupby(["model", "role"], sort=False):
        colour = role_colour(role)
        ax.plot(dots["layer"], dots["cosine_mean"], linestyle="none", marker=marker_of(role), color=colour)
        others = dots.loc[dots["layer"] != baseline_layer, "cosine_mean"]
        own = float(dots.loc[dots["layer"] == baseline_layer, "cosine_mean"].iloc[0])
        name = title_of(model, role, list(frame["model"]))
        labels.append((name, colour, own, span(others, ".2f")))
    low = min(0.0, float(frame["cosine_mean"].min()))
    ax.set_ylim(low - 0.06, 1.04)
    for place, (name, colour, own, others) in enumerate(labels):
        words = f"{name}: layer {baseline_layer} gives {rounded(own)}, the others {others}"
        ax.text(0.97, 0.5 - 0.11 * place, words, transform=ax.transAxes, ha="right", va="center", color=colour,
                fontsize=11, weight="bold")  # fmt: skip
    _layer_axis(ax, frame, "layer used as the baseline")
    ax.set_title("Mean cosine with the other layers")
    return ax


@styled
def null_band(frame: pd.DataFrame, baseline_layer: int) -> Figure:
    """Measured cosines over the band that shuffled channels give, one panel a model and role, each on its own scale.

    Args:
        frame: columns ``model``, ``role``, ``layer``, ``cosine``, ``null_low`` and ``null_high``, the band's ends.
        baseline_layer: for the labels.
    """
    groups = list(frame.groupby(["model", "role"], sort=False))
    figure, axes = panels(len(groups), height=3.4)
    for ax, ((model, role), dots) in zip(axes, groups, strict=True):
        height = dots["null_high"] - dots["null_low"]
        ax.bar(dots["layer"], height, bottom=dots["null_low"], width=1.0, color=NULL, linewidth=0)
        ax.plot(dots["layer"], dots["cosine"], linestyle="none", marker=marker_of(role), color=role_colour(role))
        inside = int(dots["cosine"].between(dots["null_low"], dots["null_high"]).sum())
        name = title_of(model, role, list(frame["model"]))
        ax.set_title(f"{name}: {inside} of {len(dots)} inside", color=role_colour(role))
        _layer_axis(ax, dots, f"layer compared with layer {baseline_layer}")
        ax.margins(y=0.12)
    axes[0].set_ylabel("cosine")
    return figure


def _beside(ax: Axes, line: pd.DataFrame, words: str, colour: str) -> None:
    """A label over a line that runs low, under one that runs high."""
    middle = float(line["cosine"].mean())
    under = 0.5 < middle < 1.0
    y = float(line["cosine"].min()) - 0.05 if under else float(line["cosine"].max()) + 0.04
    ax.text(
        float(line["layer"].min()), y, words, color=colour, va="top" if under else "bottom", fontsize=11, weight="bold"
    )


def _bars(ax: Axes, bars: pd.DataFrame, colour: str, dot: float) -> None:
    mean, pattern = bars["mean_term"].to_numpy(), bars["pattern_term"].to_numpy()
    ax.bar(bars["layer"], mean, width=0.8, color=colour, alpha=0.28, linewidth=0)
    # A positive pattern term stands on the mean term, a negative one hangs from the axis: neither hides the other.
    ax.bar(bars["layer"], pattern, width=0.8, bottom=np.where(pattern > 0, mean, 0.0), color=colour, linewidth=0)
    ax.plot(bars["layer"], bars["cosine"], linestyle="none", marker="o", markersize=dot, color=INK)


def _enlarged(ax: Axes, bars: pd.DataFrame, colour: str) -> None:
    inner = ax.inset_axes((0.14, 0.34, 0.84, 0.52))
    _bars(inner, bars, colour, 2.6)
    inner.axhline(0, color=LABEL, linewidth=0.7)
    low, high = inner.get_ylim()
    outer_low, outer_high = -0.04, 1.05
    times = (outer_high - outer_low) * 0.52 / (high - low)
    inner.set_title(f"the same, enlarged {times:.0f} times", fontsize=10.5, weight="normal", color=LABEL, pad=4)
    inner.set_xticks([])
    inner.tick_params(labelsize=9.5)


def _layer_axis(ax: Axes, frame: pd.DataFrame, label: str) -> None:
    first, last = int(frame["layer"].min()), int(frame["layer"].max())
    step = max(1, round((last - first) / 6))
    ax.set_xticks(range(first, last + 1, step))
    ax.set_xlim(first - 0.7, last + 0.7)
    ax.set_xlabel(label)

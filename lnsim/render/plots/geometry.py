"""This module draws what the mean does to a cosine: example vectors in space, channels one by one, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from lnsim.render.plots.style import (
    INK,
    LABEL,
    NULL,
    QUIET,
    WIDTH,
    Moving,
    broken,
    end_labels,
    line_of,
    panels,
    placed,
    readable,
    style,
    styled,
    thumbnail_axes,
    unlaid,
)
from lnsim.render.words import rounded

__all__ = ["channel_bars", "cosine_and_r", "geometry_thumbnail", "mean_removal_moving", "mean_removal_panels"]

_LOOK = {"elev": 20, "azim": 18}
_REACH = 1.1
_ENLARGED = 3.0
_HOLD = 1
"""Frames for which the first and the last picture of the animation stand still."""


@styled
def mean_removal_panels(frame: pd.DataFrame) -> Figure:
    """Two vectors of three channels as they are and without their means, in space.

    Args:
        frame: columns ``step``, ``vector``, ``x``, ``y``, ``z``, ``cosine`` and ``angle``; its first and last step are
            drawn.
    """
    figure = unlaid(plt.figure(figsize=(WIDTH, 3.6)))
    steps = [frame["step"].min(), frame["step"].max()]
    names = ["as they are: cosine", "less their means: r"]
    for place, (step, name) in enumerate(zip(steps, names, strict=True)):
        ax = figure.add_axes((0.5 * place, 0.0, 0.5, 0.9), projection="3d")
        now = frame[frame["step"] == step]
        times = 1.0 if place == 0 else _ENLARGED
        _draw_space(ax)
        _draw_vectors(ax, now.assign(**{axis: times * now[axis] for axis in "xyz"}))
        first = now.iloc[0]
        words = f"{name} {rounded(first['cosine'])}, {first['angle']:.1f}°"
        figure.text(0.48 * place + 0.02, 0.97, words, fontsize=11.5, weight="bold", va="top")
        if times > 1:
            figure.text(0.98, 0.03, f"vectors enlarged {times:g} times", ha="right", fontsize=10.5, color=LABEL)
    return figure


@styled
def mean_removal_moving(frame: pd.DataFrame) -> Moving:
    """The same vectors while their means are taken away; one frame a step, the ends held.

    Args:
        frame: as ``mean_removal_panels`` takes it, with as many steps as there shall be frames in between.
    """
    figure = unlaid(plt.figure(figsize=(4.4, 4.0)))
    ax = figure.add_axes((0.0, 0.0, 1.0, 0.86), projection="3d")
    title = figure.text(0.03, 0.97, "", fontsize=12, weight="bold", va="top")
    steps = sorted(frame["step"].unique())
    order = [steps[0]] * _HOLD + steps + [steps[-1]] * _HOLD

    _draw_space(ax)
    vectors: list[Artist] = []

    def draw(number: int) -> None:
        now = frame[frame["step"] == order[number]]
        for drawn in vectors:
            drawn.remove()
        with mpl.rc_context(style):
            vectors[:] = _draw_vectors(ax, now)
        words = f"cosine {rounded(now['cosine'].iloc[0], '.2f')}, {now['angle'].iloc[0]:.0f}°"
        title.set_text(f"{100 * order[number]:.0f} % of the mean taken away\n{words}")

    return Moving(figure, draw, len(order))


@styled
def channel_bars(frame: pd.DataFrame, colours: Mapping[str, str], titles: Mapping[str, str]) -> Figure:
    """γ of sampled channels of two models: as it is at the left, less each model's mean at the right; one row a pair.

    Args:
        frame: columns ``pair``, ``model``, ``place``, ``gamma`` and ``centred``.
        colours: by model.
        titles: by pair, what stands above its row, for example the layer with cosine and r.
    """
    pairs = list(dict.fromkeys(frame["pair"]))
    figure, axes = panels(2 * len(pairs), columns=2, height=1.85)
    for row, pair in enumerate(pairs):
        left, right = axes[2 * row : 2 * row + 2]
        one = frame[frame["pair"] == pair]
        _draw_bars(left, one, "gamma", colours)
        _draw_bars(right, one, "centred", colours)
        left.set_title(titles[pair], fontsize=10.5, pad=4)
        _name_models(right, list(dict.fromkeys(one["model"])), colours)
    axes[-2].set_xlabel("channels, sorted by the mean of both", fontsize=10.5)
    axes[-1].set_xlabel("the same, less each model's own mean", fontsize=10.5)
    return placed(figure, above=0.15, apart=0.42)


@styled
def cosine_and_r(curves: pd.DataFrame, best: pd.DataFrame) -> Figure:
    """Cosine and r of each pair by layer, with the range that shuffled channels give for r; one panel a pair.

    Args:
        curves: columns ``pair``, ``layer``, ``cosine``, ``r``, ``expected`` and ``null_std``, of one role.
        best: columns ``pair`` and ``layer``: the layer marked by a line.
    """
    pairs = list(dict.fromkeys(curves["pair"]))
    figure, axes = panels(len(pairs), height=2.5, sharey=True)
    marked = best.set_index("pair")["layer"]
    apart = curves["cosine"].sub(curves["r"]).groupby(curves["pair"], sort=False).mean().idxmax()
    for ax, pair in zip(axes, pairs, strict=True):
        _draw_curves(ax, curves[curves["pair"] == pair], int(marked[pair]), named=pair == apart)
        ax.set_title(broken(pair, 30), fontsize=11, pad=5)
    lowest = min(0.0, float((curves["r"] - 2 * curves["null_std"]).min()), float(curves["cosine"].min()))
    axes[0].set_ylim(lowest - 0.05, 1.08)
    for ax in axes[-2:]:
        ax.set_xlabel("layer")
    return placed(figure, right=0.75)


@styled
def geometry_thumbnail(curves: pd.DataFrame) -> Axes:
    """Cosine and r of one pair by layer, small: columns ``layer``, ``cosine`` and ``r``."""
    ax = thumbnail_axes()
    ax.plot(curves["layer"], curves["cosine"], color=LABEL)
    ax.plot(curves["layer"], curves["r"], color=INK)
    ax.set_ylim(min(-0.12, float(curves["r"].min()) - 0.05), 1.12)
    ax.set_yticks([0, 1])
    ax.set_xticks([int(curves["layer"].min()), int(curves["layer"].max())])
    middle = float(curves["layer"].median())
    high, low = float(curves["cosine"].median()), float(curves["r"].median())
    ax.text(middle, high - 0.08, "cosine", color=LABEL, ha="center", va="top", fontsize=10.5)
    if high - low > 0.4:
        ax.text(middle, low + 0.08, "r", color=INK, ha="center", va="bottom", fontsize=10.5, weight="bold")
    return ax


def _draw_space(ax: Axes3D) -> None:
    """Axes, the diagonal, and the plane on which channels sum to 0."""
    ax.set_axis_off()
    ax.view_init(**_LOOK)
    ax.set_box_aspect((1, 1, 1), zoom=1.35)
    for corner in np.eye(3):
        ax.plot(*np.outer(corner, [-0.25, _REACH]), color=QUIET, linewidth=0.9)
    ax.plot(*np.outer(np.ones(3), [0, 0.95]), color=LABEL, linewidth=1.2, linestyle=(0, (1, 2)))
    ax.text(1.0, 1.0, 1.02, "(1, 1, 1)", color=LABEL, fontsize=10)
    ring = 0.45 * np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1], [-1, 1, 0], [-1, 0, 1], [0, -1, 1]])
    ax.add_collection3d(Poly3DCollection([ring], facecolor=NULL, edgecolor=QUIET, alpha=0.55, linewidth=0.7))
    ax.set(xlim=(-0.35, _REACH), ylim=(-0.35, _REACH), zlim=(-0.35, _REACH))


def _draw_vectors(ax: Axes3D, now: pd.DataFrame) -> list[Artist]:
    """The vectors of one step, each a line with a point and its name; what was drawn."""
    drawn: list[Artist] = []
    for place, (_, vector) in enumerate(now.iterrows()):
        tip = vector[["x", "y", "z"]].to_numpy(dtype=float)
        drawn += ax.plot(*np.outer(tip, [0, 1]), color=INK, linewidth=2.2, linestyle=line_of(place))
        drawn += ax.plot(*tip[:, None], marker="o", color=INK, markersize=5)
        drawn.append(ax.text(*(1.08 * tip + [0, 0, 0.04]), str(vector["vector"]), fontsize=13, weight="bold"))
    return drawn


def _draw_bars(ax: Axes, one: pd.DataFrame, column: str, colours: Mapping[str, str]) -> None:
    """A line from 0 to each value, the two models side by side."""
    for place, (model, bars) in enumerate(one.groupby("model", sort=False)):
        at = bars["place"] + (place - 0.5) * 0.42
        ax.vlines(at, 0, bars[column], color=colours[str(model)], linewidth=1.7)
    ax.axhline(0, color=LABEL, linewidth=0.7)
    ax.set_xticks([])
    ax.margins(x=0.01)
    ax.tick_params(labelsize=9.5)
    ax.locator_params(axis="y", nbins=4)


def _name_models(ax: Axes, models: list[str], colours: Mapping[str, str]) -> None:
    for place, model in enumerate(models):
        ax.text(place, 1.04, model, transform=ax.transAxes, ha="right" if place else "left", va="bottom", fontsize=10.5,
                weight="bold", color=readable(colours[model]))  # fmt: skip


def _draw_curves(ax: Axes, one: pd.DataFrame, best: int, named: bool) -> None:
    layers = one["layer"].to_numpy()
    ax.fill_between(layers, -1.96 * one["null_std"], 1.96 * one["null_std"], color=NULL, linewidth=0)
    ax.axvline(best, color=QUIET, linewidth=1.0, linestyle=(0, (2, 2)))
    ax.plot(layers, one["cosine"], color=LABEL, linewidth=1.6, linestyle=line_of(1))
    ax.plot(layers, one["r"], color=INK, linewidth=1.6)
    ax.set_xticks(range(int(layers[0]), int(layers[-1]) + 1, max(1, round(len(layers) / 6))))
    if named:
        ends = [(float(one["cosine"].iloc[-1]), "cosine", LABEL), (float(one["r"].iloc[-1]), "r", INK)]
        end_labels(ax, ends, float(layers[-1]), size=10)

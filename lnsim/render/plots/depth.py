"""This module draws γ with depth: values over layer and channel, statistics by layer, and heaps of values.

Lines are in the models' own colours, and in line styles that tell two of them apart where they lie on each other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from lnsim.render.plots.maps import SEQUENTIAL
from lnsim.render.plots.style import LABEL, NULL, end_labels, line_of, names_above, panels, placed, readable, styled
from lnsim.render.words import header_text, rounded

__all__ = [
    "block_norms_by_layer",
    "gamma_maps",
    "ridges",
    "rounding_by_layer",
    "statistics_panels",
]

Colours = Mapping[str, str]

_STATISTICS: Mapping[tuple[str, ...], str] = {
    ("mean",): "mean",
    ("std",): "standard deviation",
    ("norm",): "L2 norm",
    ("min", "max"): "least, largest",
}
_MANY_TIMES = 5.0
"""Ratios that span more than this are drawn on a logarithmic axis."""


@styled
def gamma_maps(maps: Mapping[str, pd.DataFrame]) -> Figure:
    """γ over layer (rows) and channel (columns, sorted), one map a model, each on its own scale, named in its title.

    Args:
        maps: by model, one row a layer and one column a group of channels.
    """
    figure, axes = panels(len(maps), height=2.8)
    for ax, (model, frame) in zip(axes, maps.items(), strict=True):
        values, layers = frame.to_numpy(), frame.index.to_numpy()
        extent = (0.0, 1.0, layers[-1] + 0.5, layers[0] - 0.5)
        image = ax.imshow(values, cmap=SEQUENTIAL, aspect="auto", interpolation="nearest", extent=extent)
        ax.grid(False)
        low, high = image.get_clim()
        ax.set_title(f"{model}: {rounded(low, '.2f')} to {rounded(high, '.2f')}", fontsize=11.5, pad=5)
        ax.set_xticks([0, 1], labels=["least", "largest"], fontsize=10)
        ax.set_ylabel("layer", fontsize=10.5)
        ax.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    _colour_bar(axes[min(1, len(axes) - 1)], image)
    figure.supxlabel("channels, sorted by their mean over the layers", fontsize=11, color=LABEL)
    return placed(figure, right=0.75, between=0.75)


@styled
def statistics_panels(frame: pd.DataFrame, colours: Colours) -> Figure:
    """Mean, spread, norm, least and largest value of γ by layer: one row a statistic, one column a role.

    Args:
        frame: columns ``model``, ``role``, ``layer``, ``mean``, ``std``, ``norm``, ``min`` and ``max``.
        colours: by model.
    """
    roles = list(dict.fromkeys(frame["role"]))
    figure, axes = panels(len(_STATISTICS) * len(roles), columns=len(roles), height=1.7, sharex=True)
    for place, ax in enumerate(axes):
        names, role = list(_STATISTICS)[place // len(roles)], roles[place % len(roles)]
        for name in names:
            _lines(ax, frame[frame["role"] == role], name, colours, named=place == len(roles) - 1)
        ax.set_title(f"{_STATISTICS[names]}, {header_text(role)}", fontsize=10.5, pad=4)
        ax.tick_params(labelsize=9.5)
        ax.locator_params(nbins=4)
    for ax in axes[-len(roles) :]:
        ax.set_xlabel("layer")
    return placed(figure, right=1.1, apart=0.4)


@styled
def ridges(frame: pd.DataFrame, colours: Colours) -> Figure:
    """Heaps of the values of γ, one above the other by layer, models over each other; one panel a role.

    Args:
        frame: columns ``model``, ``role``, ``layer``, ``left``, ``right`` and ``share``; the bins hold every value.
        colours: by model.
    """
    roles, models = list(dict.fromkeys(frame["role"])), list(dict.fromkeys(frame["model"]))
    layers = sorted(set(frame["layer"]))
    figure, axes = panels(len(roles), columns=len(roles), height=0.42 * len(layers) + 1.3, sharey=True)
    for ax, role in zip(axes, roles, strict=True):
        for (model, layer), heap in frame[frame["role"] == role].groupby(["model", "layer"], sort=False):
            _heap(ax, heap, len(layers) - 1 - layers.index(layer), colours[str(model)])
        ax.set_title(header_text(role), pad=6)
        ax.set_xlabel("γ of one channel")
    axes[0].set_yticks(range(len(layers)), labels=[f"layer {layer}" for layer in reversed(layers)])
    axes[0].set_ylim(-0.05, len(layers) + 0.55)
    names_above(figure, models, colours)
    return placed(figure, above=0.3)


@styled
def block_norms_by_layer(frame: pd.DataFrame, colours: Colours) -> Figure:
    """Two norms of one block against each other by layer: r, and the ratio of their lengths.

    Args:
        frame: columns ``model``, ``layer``, ``r``, ``norm_ratio`` and ``null_std``.
        colours: by model.
    """
    figure, axes = panels(2, height=2.9)
    band = 1.96 * float(frame["null_std"].max())
    axes[0].axhspan(-band, band, color=NULL, linewidth=0)
    _lines(axes[0], frame, "r", colours, named=False)
    axes[0].set_title("r of the two norms", fontsize=11.5)
    low, high = min(-2 * band, float(frame["r"].min()) - 0.02), max(2 * band, float(frame["r"].max()) + 0.02)
    axes[0].set_ylim(low, high)
    logarithmic = frame["norm_ratio"].max() > _MANY_TIMES * frame["norm_ratio"].min()
    axes[1].set_yscale("log" if logarithmic else "linear")
    _lines(axes[1], frame, "norm_ratio", colours, named=True)
    axes[1].axhline(1, color=LABEL, linewidth=0.8, linestyle=(0, (2, 2)))
    axes[1].set_title("norm, second over first", fontsize=11.5)
    if logarithmic:
        _plain_log_ticks(axes[1])
    for ax in axes:
        ax.set_xlabel("layer")
    return placed(figure, right=1.1)


@styled
def rounding_by_layer(frame: pd.DataFrame, colours: Colours) -> Figure:
    """How many times the rounding error of BF16 the pattern of γ is, by layer, logarithmic; one panel a role.

    Args:
        frame: columns ``model``, ``role``, ``layer`` and ``ratio``.
        colours: by model.
    """
    roles = list(dict.fromkeys(frame["role"]))
    figure, axes = panels(len(roles), height=3.1, sharey=True)
    for place, (ax, role) in enumerate(zip(axes, roles, strict=True)):
        ax.set_yscale("log")
        _lines(ax, frame[frame["role"] == role], "ratio", colours, named=place == len(roles) - 1)
        ax.axhline(1, color=LABEL, linewidth=1.0, linestyle=(0, (2, 2)))
        ax.text(0.02, 1.08, "1: rounding as large as the pattern", color=LABEL, fontsize=10, va="bottom",
                transform=ax.get_yaxis_transform())  # fmt: skip
        ax.set_title(header_text(role), fontsize=11.5)
        ax.set_xlabel("layer")
    axes[0].set_ylim(0.7, 1.6 * float(frame["ratio"].max()))
    _plain_log_ticks(axes[0])
    figure.text(0.01, 0.98, "Pattern of γ over rounding error of BF16", fontsize=12.5, weight="bold", va="top")
    return placed(figure, right=1.1, above=0.3)


def _colour_bar(ax: Axes, image: AxesImage) -> None:
    """A bar at the right of a map, for all maps: each one's own least and largest value, which its title gives."""
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.04, 0.0, 0.04, 1.0)))
    bar.set_ticks(image.get_clim(), labels=["least", "largest"], fontsize=10)
    bar.outline.set_visible(False)


def _lines(ax: Axes, frame: pd.DataFrame, value: str, colours: Colours, named: bool) -> None:
    """One line a model; `named` panels label them at the end of the longest."""
    ends = []
    for place, (model, line) in enumerate(frame.groupby("model", sort=False)):
        colour = colours[str(model)]
        ax.plot(line["layer"], line[value], color=colour, linestyle=line_of(place), linewidth=1.6)
        ends.append((float(line[value].iloc[-1]), str(model), readable(colour)))
    if named:
        end_labels(ax, ends, float(frame["layer"].max()), size=9.5)


def _plain_log_ticks(ax: Axes) -> None:
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_formatter(lambda value, _: "")


def _heap(ax: Axes, heap: pd.DataFrame, base: int, colour: str) -> None:
    """One model's values in one layer, highest bin 1.4 high, standing on `base`."""
    edges = np.append(heap["left"].to_numpy(), heap["right"].iloc[-1])
    heights = base + 1.4 * heap["share"].to_numpy() / heap["share"].max()
    solid = to_rgba(colour)
    ax.stairs(heights, edges, baseline=base, fill=True, facecolor=(*solid[:3], 0.45), edgecolor=solid, linewidth=0.9)

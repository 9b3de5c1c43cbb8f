"""This module draws how the layers of two stacks align: maps, means by offset, best matches, and what chance gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure

from lnsim.errors import NotebookError
from lnsim.render.plots.maps import DIVERGING, SEQUENTIAL
from lnsim.render.plots.style import (
    GROUP_COLOURS,
    INK,
    LABEL,
    NULL,
    broken,
    marker_of,
    panels,
    styled,
    thumbnail_axes,
)
from lnsim.render.words import header_text, rounded

__all__ = ["alignment_thumbnail", "mean_by_offset", "nearest_layers", "null_of_mean_r", "stack_maps"]

_SURE = 0.5
"""Best matches with at least this r are drawn solid."""


@styled
def stack_maps(maps: Sequence[tuple[str, str, pd.DataFrame]], measure: str) -> Figure:
    """Every layer against every layer, one map a pair, all on one scale, whose ends are printed.

    Args:
        maps: for each pair its label, its group and a frame with layers as texts; empty (NaN) lines stay blank.
        measure: ``r`` for a scale symmetric about 0, ``cosine`` for one from the least value to 1.

    Raises:
        NotebookError: when a value lies outside the scale, which a map would hide.
    """
    low, high, colours = _scale([frame for _, _, frame in maps], measure)
    figure, axes = panels(len(maps), columns=3, height=2.55)
    for ax, (label, group, frame) in zip(axes, maps, strict=True):
        image = ax.imshow(frame.to_numpy(dtype=float), cmap=colours, vmin=low, vmax=high, interpolation="nearest",
                          aspect="auto")  # fmt: skip
        ax.set_title(broken(label, longest=18), fontsize=10.5, color=GROUP_COLOURS[group], pad=5)
        _frame_of_map(ax, frame)
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", shrink=0.5, aspect=32, pad=0.02)
    ticks = [low, 0, high] if measure == "r" else [low, high]
    bar.set_ticks(ticks, labels=[rounded(tick, ".2g") for tick in ticks])
    bar.set_label("Pearson r" if measure == "r" else "cosine", color=LABEL, fontsize=11)
    bar.outline.set_visible(False)
    return figure


@styled
def mean_by_offset(frame: pd.DataFrame, role: str) -> Figure:
    """Mean cosine (dashed) and mean r (solid) over the cells of each offset, one panel a pair, on one scale.

    Args:
        frame: columns ``pair``, ``group``, ``role``, ``offset``, ``cosine`` and ``r``.
        role: the role drawn.
    """
    lines = frame[frame["role"] == role]
    pairs = list(dict.fromkeys(lines["pair"]))
    figure, axes = panels(len(pairs), columns=2, height=1.75, sharey=True)
    low = min(0.0, float(lines["r"].min()))
    for ax, pair in zip(axes, pairs, strict=True):
        line = lines[lines["pair"] == pair]
        colour = GROUP_COLOURS[line["group"].iloc[0]]
        ax.axvline(0, color=NULL, linewidth=4, zorder=0)
        ax.plot(line["offset"], line["cosine"], linestyle=(0, (3, 1.5)), color=colour, linewidth=1.3, alpha=0.7)
        ax.plot(line["offset"], line["r"], color=colour)
        ax.set_title(pair, color=colour, fontsize=11, pad=4)
        ax.set_ylim(low - 0.08, 1.08)
        ax.set_yticks([0, 0.5, 1])
        _whole_ticks(ax, line["offset"])
    for ax in axes[-2:]:
        ax.set_xlabel("layer of the second − layer of the first")
        ax.xaxis.label.set_fontsize(10)
    return figure


@styled
def nearest_layers(frame: pd.DataFrame, role: str) -> Figure:
    """For each layer of the second model, the layer of the first with the largest r; one panel a pair.

    Args:
        frame: columns ``pair``, ``group``, ``role``, ``layer_a``, ``layer_b`` and ``value``.
        role: the role drawn.

    Solid where r is at least 0.5, open where it is less; the dotted line is equal layer numbers.
    """
    dots = frame[frame["role"] == role]
    pairs = list(dict.fromkeys(dots["pair"]))
    figure, axes = panels(len(pairs), columns=3, height=2.35)
    for ax, pair in zip(axes, pairs, strict=True):
        here = dots[dots["pair"] == pair]
        colour = GROUP_COLOURS[here["group"].iloc[0]]
        end = max(int(here["layer_a"].max()), int(here["layer_b"].max()))
        ax.plot([0, end], [0, end], linestyle=(0, (1, 2)), color=LABEL, linewidth=1)
        sure = here["value"] >= _SURE
        for chosen, fill in ((sure, colour), (~sure, "none")):
            ax.plot(here.loc[chosen, "layer_b"], here.loc[chosen, "layer_a"], linestyle="none", markersize=4,
                    marker=marker_of(role), markerfacecolor=fill, markeredgecolor=colour,
                    markeredgewidth=0.9)  # fmt: skip
        ax.set_title(broken(pair, longest=18), fontsize=10.5, color=colour, pad=5)
        ax.set_xlabel(f"layer of {pair.split(' × ')[1]}", fontsize=10)
        _whole_ticks(ax, here["layer_b"])
        ax.set_yticks(range(0, end + 1, max(1, round(end / 3))))
    axes[0].set_ylabel("best layer of the first", fontsize=10)
    return figure


@styled
def null_of_mean_r(frame: pd.DataFrame) -> Figure:
    """Mean r of matched layers over the range of shuffled channels: the whole scale, and enlarged about 0.

    Args:
        frame: columns ``pair``, ``group``, ``role``, ``r_mean`` and ``null_std``.

    The band is 1.96 standard deviations of the null to either side. Values beyond the enlarged panel point outwards.
    """
    rows = frame.reset_index(drop=True)
    figure, axes = panels(2, height=1.0 + 0.27 * len(rows), sharey=True)
    strangers = rows.loc[rows["group"] != "related", "r_mean"].abs()
    reach = 1.25 * max(3 * float(rows["null_std"].max()), float(strangers.max()) if len(strangers) else 0.0)
    for ax, limit in zip(axes, (None, reach), strict=True):
        for place, row in rows.iterrows():
            colour, size = GROUP_COLOURS[row["group"]], 1.96 * row["null_std"]
            ax.barh(-place, 2 * size, left=-size, height=0.72, color=NULL, linewidth=0)
            outside = limit is not None and abs(row["r_mean"]) > limit
            x, marker = (0.97 * reach, ">") if outside else (row["r_mean"], marker_of(row["role"]))
            ax.plot(x, -place, marker=marker, color=colour, markersize=5.5)
        ax.axvline(0, color=LABEL, linewidth=0.7)
        ax.set_xlim((-0.06 - reach / 4, 1.04) if limit is None else (-reach, reach))
        ax.set_xticks([0, 0.5, 1] if limit is None else [-_round_down(reach / 2), 0, _round_down(reach / 2)])
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="x", labelsize=9.5)
    axes[0].set_title("Mean r", fontsize=11.5)
    axes[1].set_title("the same, enlarged", fontsize=11.5, weight="normal")
    words = [f"{pair}, {header_text(role)}" for pair, role in zip(rows["pair"], rows["role"], strict=True)]
    axes[0].set_yticks([-place for place in range(len(words))], labels=words)
    for label, group in zip(axes[0].get_yticklabels(), rows["group"], strict=True):
        label.set(color=GROUP_COLOURS[group], fontsize=9.5)
    return figure


@styled
def alignment_thumbnail(frame: pd.DataFrame, role: str) -> Axes:
    """Mean r by offset, small, the pairs in their groups' colours: columns as ``mean_by_offset`` takes them."""
    ax = thumbnail_axes()
    for (_, group), line in frame[frame["role"] == role].groupby(["pair", "group"], sort=False):
        ax.plot(line["offset"], line["r"], color=GROUP_COLOURS[str(group)], linewidth=1.3)
    reach = int(frame["offset"].abs().max())
    ax.set_xticks([-reach, 0, reach])
    ax.set_yticks([0, 1])
    ax.set_title("r by offset", fontsize=10.5, weight="normal", pad=4)
    return ax


def _round_down(value: float) -> float:
    """One digit, towards zero: 0.0234 gives 0.02."""
    unit = 10.0 ** np.floor(np.log10(value))
    return float(np.floor(value / unit) * unit)


def _scale(frames: Sequence[pd.DataFrame], measure: str) -> tuple[float, float, Colormap]:
    least = min(float(np.nanmin(frame.to_numpy(dtype=float))) for frame in frames)
    most = max(float(np.nanmax(frame.to_numpy(dtype=float))) for frame in frames)
    low = -1.0 if measure == "r" else np.floor(least * 20) / 20
    if least < low - 1e-9 or most > 1 + 1e-9:
        raise NotebookError(f"Drawing maps of {measure}: values from {least:.3f} to {most:.3f} leave {low:g} to 1.")
    return float(low), 1.0, DIVERGING if measure == "r" else SEQUENTIAL


def _frame_of_map(ax: Axes, frame: pd.DataFrame) -> None:
    ax.grid(visible=False)
    ax.spines["bottom"].set_visible(False)
    for axis, names in ((ax.xaxis, list(frame.columns)), (ax.yaxis, list(frame.index))):
        layers = [place for place, name in enumerate(names) if name.isdigit()]
        blocks = [place for place, name in enumerate(names) if name and not name.isdigit()]
        step = max(1, -(-len(layers) // 3))
        shown = [place for place in layers[::step] if not blocks or place <= layers[-1] - step / 2] + blocks
        axis.set_ticks(shown, labels=[names[place] for place in shown])
    ax.tick_params(labelsize=9)
    ax.set_xlabel(f"layer of {frame.columns.name}", fontsize=9.5)
    ax.set_ylabel(f"layer of {frame.index.name}", fontsize=9.5)
    same = [
        (c, r) for r, name in enumerate(frame.index) for c, other in enumerate(frame.columns) if name == other != ""
    ]
    ax.plot(*zip(*same, strict=True), linestyle="none", marker="o", markersize=1.3, color=INK, alpha=0.6)


def _whole_ticks(ax: Axes, values: pd.Series) -> None:
    """Ticks at whole numbers, 0 among them."""
    first, last = int(values.min()), int(values.max())
    step = max(1, round((last - first) / 4))
    ax.set_xticks([*range(0, first - 1, -step), *range(step, last + 1, step)])
    ax.tick_params(labelsize=9.5)

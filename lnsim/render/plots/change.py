"""This module draws what changed between two checkpoints, layer by layer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    LABEL,
    RELATION_COLOURS,
    broken,
    end_labels,
    marker_of,
    panels,
    styled,
    thumbnail_axes,
)
from lnsim.render.words import header_text

__all__ = ["change_by_layer", "change_thumbnail"]


@styled
def change_by_layer(
    frame: pd.DataFrame, value: str, title: str, log: bool = False, reference: str | None = None
) -> Figure:
    """One quantity of change by layer: one panel a pair, one line a role, all panels on one scale.

    Args:
        frame: columns ``pair``, ``related`` (True or False), ``role``, ``layer`` and `value`.
        value: the column drawn, for example ``changed_ratio`` or ``mean_abs_diff``.
        title: name of the quantity with its unit.
        log: True for a logarithmic axis; zeros, which it cannot show, are left out, and a pair of nothing else says so.
        reference: a column that is drawn as a dotted line, for example the size of one unit in the last place.
    """
    pairs = list(dict.fromkeys(frame["pair"]))
    figure, axes = panels(len(pairs), height=2.35, sharey=True)
    limits = _limits(frame[[value, *([reference] if reference else [])]].to_numpy(dtype=float), log)
    for ax, pair in zip(axes, pairs, strict=True):
        lines = frame[frame["pair"] == pair]
        ax.set_yscale("log" if log else "linear")
        ax.set_ylim(*limits)
        _draw_pair(ax, lines, value, reference, named=ax is axes[0])
        colour = RELATION_COLOURS[bool(lines["related"].iloc[0])]
        ax.set_title(broken(pair), color=colour, fontsize=11, pad=5)
    for ax in axes[-2:]:
        ax.set_xlabel("layer")
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, weight="bold")
    return figure


@styled
def change_thumbnail(frame: pd.DataFrame, value: str, title: str) -> Axes:
    """One pair's change by layer, small: columns ``role``, ``layer``, ``related`` and `value`."""
    ax = thumbnail_axes()
    for role, line in frame.groupby("role", sort=False):
        colour = RELATION_COLOURS[bool(line["related"].iloc[0])]
        ax.plot(line["layer"], line[value], marker=marker_of(str(role)), markersize=3.5, color=colour)
    ax.set_ylim(bottom=0)
    top = float(frame[value].max())
    ax.set_yticks([0, top], labels=["0", f"{top:.2g}"])
    ax.set_xticks([int(frame["layer"].min()), int(frame["layer"].max())])
    ax.set_title(title, fontsize=10.5, weight="normal", pad=4)
    return ax


def _draw_pair(ax: Axes, lines: pd.DataFrame, value: str, reference: str | None, named: bool) -> None:
    """The lines of one pair; `named` panels label them, the others repeat their markers."""
    last = int(lines["layer"].max())
    log = ax.get_yscale() == "log"
    ax.set_xticks(range(0, last + 1, max(1, round(last / 6))))
    ax.set_xlim(-0.02 * last - 0.2, last * 1.02 + 0.2)
    colour = RELATION_COLOURS[bool(lines["related"].iloc[0])]
    ends: list[tuple[float, str, str]] = []
    if log and (lines[value] == 0).all():
        ax.text(0.5, 0.6, "no change at all", transform=ax.transAxes, ha="center", color=colour, weight="bold")
    for role, line in lines.groupby("role", sort=False):
        seen = line[(line[value] > 0) | (not log)]
        if len(seen):
            marker = marker_of(str(role))
            ax.plot(seen["layer"], seen[value], marker=marker, markersize=4.5, linewidth=1.5, color=colour)
            ends.append((float(seen[value].iloc[-1]), header_text(str(role)), colour))
        if reference is not None:
            ax.plot(line["layer"], line[reference], linestyle=(0, (1, 2)), color=LABEL, linewidth=1.4)
    if reference is not None:
        ends.append((float(lines[reference].iloc[-1]), header_text(reference), LABEL))
    if named:
        end_labels(ax, ends, last, size=9.5, bold=False)


def _limits(values: npt.NDArray[np.float64], log: bool) -> tuple[float, float]:
    """Ends of an axis that holds every value, with some room."""
    if log:
        positive = values[values > 0]
        return (float(positive.min()) / 3, float(positive.max()) * 3) if positive.size else (0.1, 10.0)
    low, high = min(0.0, float(values.min())), max(float(values.max()), 1e-12)
    return low - 0.06 * (high - low), high + 0.08 * (high - low)

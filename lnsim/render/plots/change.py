"""This module draws what changed between two checkpoints, layer by layer."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    LABEL,
    RELATION_COLOURS,
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
    """One quantity of change by layer, one panel a role, one line a pair, labelled at its end.

    Args:
        frame: columns ``pair``, ``related`` (True or False), ``role``, ``layer`` and `value`.
        value: the column drawn, for example ``changed_ratio`` or ``mean_abs_diff``.
        title: name of the quantity with its unit.
        log: True for a logarithmic axis; zeros, which it cannot show, are named in the panel.
        reference: a column that is drawn as a dotted line, for example the size of one unit in the last place.
    """
    roles = list(dict.fromkeys(frame["role"]))
    figure, axes = panels(len(roles), columns=1, height=2.9 if log else 2.4, sharey=True)
    for ax, role in zip(axes, roles, strict=True):
        lines = frame[frame["role"] == role]
        if log:
            ax.set_yscale("log")
        _draw_lines(ax, lines, value, log, reference)
        ax.set_title(f"{title}, {header_text(role)}")
    axes[-1].set_xlabel("layer")
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


def _draw_lines(ax: Axes, lines: pd.DataFrame, value: str, log: bool, reference: str | None) -> None:
    ends: list[tuple[float, str, str]] = []
    zeros = []
    for place, (pair, line) in enumerate(lines.groupby("pair", sort=False)):
        if log and (line[value] == 0).all():
            zeros.append(str(pair))
            continue
        colour = RELATION_COLOURS[bool(line["related"].iloc[0])]
        # Later lines are thinner, so that one which lies on an earlier one does not hide it.
        width = max(1.2, 3.2 - 0.8 * place)
        ax.plot(line["layer"], line[value], marker=marker_of(str(line["role"].iloc[0])), color=colour, linewidth=width)
        ends.append((float(line[value].iloc[-1]), str(pair), colour))
    if reference is not None:
        one = lines.groupby("layer")[reference].mean()
        ax.plot(one.index, one, linestyle=(0, (1, 2)), color=LABEL, linewidth=1.4)
        ends.append((float(one.iloc[-1]), header_text(reference), LABEL))
    _frame(ax, lines, [value, *([reference] if reference else [])], log)
    end_labels(ax, ends, float(lines["layer"].max()))
    if zeros:
        ax.text(0.01, 0.03, f"no change at all: {', '.join(zeros)}", transform=ax.transAxes, fontsize=11, va="bottom",
                color=RELATION_COLOURS[True])  # fmt: skip


def _frame(ax: Axes, lines: pd.DataFrame, columns: list[str], log: bool) -> None:
    last = int(lines["layer"].max())
    ax.set_xticks(range(0, last + 1, max(1, round(last / 6))))
    values = lines[columns].to_numpy(dtype=float)
    if log:
        positive = values[values > 0]
        if positive.size:
            ax.set_ylim(float(positive.min()) / 8, float(positive.max()) * 2)
    else:
        top = max(float(values.max()), 1e-12)
        ax.set_ylim(-0.04 * top, 1.1 * top)

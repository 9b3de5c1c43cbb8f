"""This module draws two models layer by layer: r of each role beside the range that permuted channels give."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import LABEL, NULL, QUIET, marker_of, panels, readable, role_colour, styled
from lnsim.render.words import header_text

__all__ = ["r_beside_null"]

_HEADROOM = 0.08


@styled
def r_beside_null(frame: pd.DataFrame, pair: str = "") -> Figure:
    """One panel a role, one mark a layer, the null's range of each layer as a bar behind it.

    Args:
        frame: columns ``role``, ``layer``, ``r``, ``null_low`` and ``null_high``, as ``measure.layer_bands`` gives
            them. Norms outside the blocks (layer -1) are left out where there are others.
        pair: names of the two, above all panels.
    """
    inside = frame[frame["layer"] >= 0]
    shown = inside if len(inside) else frame
    roles = list(dict.fromkeys(shown["role"]))
    figure, axes = panels(len(roles), height=2.5, sharey=True)
    for ax, role in zip(axes, roles, strict=True):
        _panel(ax, shown[shown["role"] == role], str(role))
    low = min(0.0, float(shown[["r", "null_low"]].min().min()))
    axes[0].set_ylim(low - _HEADROOM, max(1.0, float(shown["null_high"].max())) + _HEADROOM)
    figure.supylabel("Pearson r", fontsize=12, color=LABEL)
    if pair:
        figure.suptitle(pair, fontsize=11.5, color=LABEL, x=0.02, ha="left")
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, role: str) -> None:
    colour = role_colour(role)
    ax.bar(rows["layer"], rows["null_high"] - rows["null_low"], bottom=rows["null_low"], width=0.9, color=NULL,
           linewidth=0)  # fmt: skip
    ax.axhline(0, color=QUIET, linewidth=0.8)
    ax.plot(rows["layer"], rows["r"], linestyle="none", marker=marker_of(role), color=colour, clip_on=False)
    ax.set_title(header_text(role), color=readable(colour))
    first, last = int(rows["layer"].min()), int(rows["layer"].max())
    ax.set_xlim(first - 0.7, last + 0.7)
    ax.set_xticks(range(first, last + 1, max(1, round((last - first) / 6))))
    outside = int(((rows["r"] > rows["null_high"]) | (rows["r"] < rows["null_low"])).sum())
    ax.set_xlabel(f"layer ({outside} of {len(rows)} outside the bar)", fontsize=10.5)

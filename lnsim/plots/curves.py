"""This module draws one quantity over another: lines by layer or distance, dots over a band, scatter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from lnsim.plots.panels import name_ends, new_axes, whole_numbers
from lnsim.plots.style import DASHES, INK, LABEL, MARKERS, NULL, QUIET, palette, styled
from lnsim.words import group_name, header_text

_MANY = 15  # lines of more points than this have no markers


@styled
def curves(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    hue: str | None = None,
    units: str | None = None,
    group: str | None = None,
    colours: Mapping[str, str] | None = None,
    band: tuple[str, str] | None = None,
    reference: str | None = None,
    lines: bool = True,
    strong: list[str] | None = None,
    log: bool = False,
    zero: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Lines of one quantity over another, named at their right ends; rows of one line stand in the order of `x`.

    Each value of `hue` has a colour and a name, each of `units` a line within it, for example the pairs of a group;
    `group` gives colour and dashes in place of `hue`, which then only names. `band` are the columns of the ends of what
    chance gives, drawn behind, and the column `reference` is dotted. Where some values of `hue` are `strong`, others
    are thin and unnamed. A logarithmic axis leaves out zeros, which it cannot show. Who gives an Axes calls
    ``name_ends``.
    """
    given, ax = ax, new_axes(ax)
    if band is not None:
        _band(ax, frame, x, band, bars=not lines)
    if zero:
        ax.axhline(0, color=LABEL, linewidth=0.8, label="_zero")
    if log:
        ax.set_yscale("log")
    shown = frame[frame[y] > 0] if log else frame
    parts = shown.groupby(hue, sort=False, observed=True) if hue else [(header_text(y), shown)]
    found = palette(shown[hue], colours) if hue else {header_text(y): LABEL}
    for name, part in parts:
        kind = str(part[group].iloc[0]) if group else str(name)
        colour = palette([kind], colours)[kind] if group else found[name]
        drawn = strong is None or name in strong
        marker = "" if (lines and len(part) > _MANY) else _marker(kind if group else str(name))
        sns.lineplot(
            part, x=x, y=y, units=units, estimator=None, color=colour, marker=marker or None, legend=False, ax=ax,
            linestyle=(DASHES.get(kind, "-") if lines else "none"), markersize=4 if lines else 5.5, markeredgewidth=0,
            linewidth=1.9 if strong is None else (2.2 if drawn else 0.9), alpha=1.0 if drawn else 0.55,
            label=group_name(header_text(name)) if hue and drawn and lines else f"_{name}", zorder=2 + drawn,
        )  # fmt: skip
    if log and not len(shown):
        ax.text(0.5, 0.6, "no change at all", transform=ax.transAxes, ha="center", color=LABEL, weight="bold")
    if reference is not None:
        sns.lineplot(frame.drop_duplicates(x), x=x, y=reference, color=LABEL, linestyle=(0, (1, 2)), linewidth=1.4,
                     estimator=None, legend=False, label=header_text(reference), ax=ax)  # fmt: skip
    ax.set(xlabel=header_text(x), ylabel="")
    if pd.api.types.is_integer_dtype(frame[x]):
        whole_numbers(ax)
    if given is None:
        ax.set_title(header_text(y))
        name_ends(ax)
    return ax


@styled
def scatter(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    hue: str | None = "group",
    style: str | None = None,
    markers: Mapping[Any, str] | None = None,
    colours: Mapping[str, str] | None = None,
    diagonal: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """One quantity against another, a mark a row, coloured by `hue`.

    `diagonal` draws where both are equal; `markers` are by value of `style`.
    """
    ax = new_axes(ax, 4.2)
    if diagonal:
        ends = [frame[[x, y]].min().min(), frame[[x, y]].max().max()]
        ax.plot(ends, ends, linestyle=(0, (1, 2)), color=LABEL, linewidth=1.2, label="_equal")
    kinds = style or hue
    marks: Any = markers or {name: _marker(str(name)) for name in dict.fromkeys(frame[kinds])} if kinds else True
    sns.scatterplot(
        frame, x=x, y=y, hue=hue, style=kinds, markers=marks, s=28 if hue else 12, linewidth=0, alpha=0.8, legend=False,
        palette=palette(frame[hue], colours) if hue else None, color=None if hue else INK, ax=ax,
    )  # fmt: skip
    ax.set(xlabel=header_text(x), ylabel=header_text(y))
    for axis, column in (("x", x), ("y", y)):
        if pd.api.types.is_integer_dtype(frame[column]):
            whole_numbers(ax, axis)
    return ax


def _band(ax: Axes, frame: pd.DataFrame, x: str, band: tuple[str, str], bars: bool) -> None:
    """What chance gives: the widest range of each place, as bars under marks and as an area under lines."""
    low, high = (frame.groupby(x)[column].agg(how) for column, how in zip(band, ("min", "max"), strict=True))
    if bars:
        ax.bar(low.index, high - low, bottom=low, width=0.9, color=NULL, linewidth=0, zorder=0)
        ax.axhline(0, color=QUIET, linewidth=0.8, label="_zero") if (low.min() <= 0 <= high.max()) else None
    else:
        ax.fill_between(low.index, low, high, color=NULL, linewidth=0, zorder=0)


def _marker(name: str) -> str:
    """Marker of a group, or of a role by its place in the block."""
    return MARKERS.get(name) or MARKERS["attention" if "attention" in name or "mlp" not in name else "mlp"]

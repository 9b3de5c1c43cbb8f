"""This module draws metrics side by side: what each tells apart, and what the cosine takes from the means alone.

Every function takes frames of ``lnsim.measure.comparison``: one row a comparison of two vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    GROUP_COLOURS,
    INK,
    LABEL,
    QUIET,
    end_labels,
    new_axes,
    panels,
    styled,
    thumbnail_axes,
)
from lnsim.render.words import group_name, header_text, rounded

__all__ = ["comparison_thumbnail", "cosine_against_means", "kinds_of_comparison", "length_directions", "metric_strips"]

_ORDER = ("within", "related", "disputed", "independent")


@styled
def metric_strips(frame: pd.DataFrame, in_order: pd.Series, alike_is_high: Sequence[str]) -> Figure:
    """One strip a measure, one line of strokes a kind of relation; to the right is always the more alike.

    Args:
        frame: columns ``group``, ``relation`` and one for each measure in the index of `in_order`.
        in_order: by measure, the share of (related, independent) pairs in the right order; it stands in the title.
        alike_is_high: measures that grow with likeness; the axes of the others run from right to left.
    """
    kinds = frame[["group", "relation"]].drop_duplicates()
    kinds = kinds.sort_values("group", key=lambda column: column.map(_ORDER.index), kind="stable")
    figure, axes = panels(len(in_order), columns=2, height=0.62 + 0.2 * len(kinds), sharey=True)
    for ax, (measure, share) in zip(axes, in_order.items(), strict=True):
        for place, (group, relation) in enumerate(kinds.itertuples(index=False)):
            _strokes(ax, frame.loc[frame["relation"] == relation, str(measure)], -place, group)
        known = "" if np.isnan(share) else f": {rounded(100 * share, '.0f')} %"
        ax.set_title(f"{header_text(str(measure))}{known}", fontsize=11, pad=4)
        _lines(ax, [header_text(relation) for relation in kinds["relation"]], list(kinds["group"]))
        if measure not in alike_is_high:
            ax.invert_xaxis()
    return figure


@styled
def cosine_against_means(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Each cosine over the cosine that the two means alone would give; on the dotted line the pattern adds nothing.

    Args:
        frame: columns ``group``, ``mean_term`` and ``cosine``.
        ax: where to draw; a new Axes where None.
    """
    ax = new_axes(ax, 4.2)
    low = float(frame[["mean_term", "cosine"]].to_numpy().min())
    low -= 0.06 * (1 - low)
    ax.plot([low, 1], [low, 1], linestyle=(0, (1, 2)), color=LABEL, linewidth=1.2)
    labels = []
    for group in [name for name in reversed(_ORDER) if name in set(frame["group"])]:
        dots = frame[frame["group"] == group]
        ax.plot(dots["mean_term"], dots["cosine"], linestyle="none", marker="o", markersize=4.2, alpha=0.75,
                color=GROUP_COLOURS[group])  # fmt: skip
        above = float((dots["cosine"] - dots["mean_term"]).abs().max())
        labels.append((group, f"{group_name(group)}: at most {rounded(above, '.4f')} off the line"))
    for place, (group, words) in enumerate(reversed(labels)):
        ax.text(0.97, 0.05 + 0.075 * place, words, transform=ax.transAxes, ha="right", va="bottom", fontsize=11,
                weight="bold", color=GROUP_COLOURS[group])  # fmt: skip
    ax.set_xlim(low, 1 + 0.03 * (1 - low))
    ax.set_ylim(low, 1 + 0.03 * (1 - low))
    ax.set_xlabel("cosine that the two means alone give")
    ax.set_title("Cosine")
    return ax


@styled
def kinds_of_comparison(frame: pd.DataFrame) -> Figure:
    """Cosine and r for layers within one model, same layers and mixed layers, by group.

    Args:
        frame: columns ``kind``, ``group``, ``cosine`` and ``pearson``.
    """
    kinds = ["within one model", "same layer", "mixed layers"]
    rows = [
        (group, kind)
        for group in _ORDER
        for kind in kinds
        if ((frame["group"] == group) & (frame["kind"] == kind)).any()
    ]
    figure, axes = panels(2, height=0.9 + 0.32 * len(rows), sharey=True)
    for ax, (measure, title) in zip(axes, (("cosine", "Cosine"), ("pearson", "Pearson r")), strict=True):
        for place, (group, kind) in enumerate(rows):
            values = frame.loc[(frame["group"] == group) & (frame["kind"] == kind), measure]
            _strokes(ax, values, -place, group)
        words = [kind if group == "within" else f"{group_name(group)}, {kind}" for group, kind in rows]
        _lines(ax, words, [group for group, _ in rows])
        ax.set_title(title)
    return figure


@styled
def length_directions(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The relative length of a difference, divided by either vector and by the mean of both.

    Args:
        frame: columns ``group``, ``pair``, ``layer_a``, ``rel_l2``, ``rel_l2_b`` and ``rel_l2_symmetric``.
        ax: where to draw; a new Axes where None.
    """
    ax = new_axes(ax, 0.9 + 0.25 * len(frame))
    lines = frame.reset_index(drop=True)
    for place, row in lines.iterrows():
        colour = GROUP_COLOURS[row["group"]]
        ends = sorted((row["rel_l2"], row["rel_l2_b"]))
        ax.plot(ends, [-place, -place], color=colour, linewidth=1.2)
        ax.plot(row["rel_l2"], -place, marker="o", color=colour)
        ax.plot(row["rel_l2_b"], -place, marker="s", color=colour)
        ax.plot(row["rel_l2_symmetric"], -place, marker="|", markersize=9, markeredgewidth=1.6, color=colour)
    _lines(ax, list(lines["pair"] + ", layer " + lines["layer_a"].astype(str)), list(lines["group"]))
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]))
    ax.set_title("Relative length of a − b")
    return ax


@styled
def comparison_thumbnail(frame: pd.DataFrame) -> Axes:
    """Cosine and r as two pairs of lines of strokes: columns ``group``, ``cosine`` and ``pearson``."""
    ax = thumbnail_axes()
    for place, (measure, word) in enumerate((("cosine", "cosine"), ("pearson", "r"))):
        for shift, group in ((0.22, "related"), (-0.22, "independent")):
            _strokes(ax, frame.loc[frame["group"] == group, measure], -place + shift, group)
        end_labels(ax, [(-place, word, INK)], 1.02, size=10.5, bold=False)
    ax.set_ylim(-1.6, 0.6)
    ax.set_yticks([])
    low = min(0.0, float(frame["pearson"].min()))
    ax.set_xlim(low - 0.05, 1.02)
    ax.set_xticks([0, 1])
    return ax


def _strokes(ax: Axes, values: pd.Series, place: float, group: str) -> None:
    """One stroke a value, on the line at `place`."""
    shown = values.dropna()
    ax.plot(shown, np.full(len(shown), place), linestyle="none", marker="|", markersize=10, markeredgewidth=1.5,
            alpha=0.8, color=GROUP_COLOURS[group])  # fmt: skip


def _lines(ax: Axes, words: Sequence[str], groups: Sequence[str]) -> None:
    """Name the lines at 0, -1, -2, ..., each in its group's colour."""
    ax.set_yticks([-place for place in range(len(words))], labels=list(words))
    # An inner panel that shares its axis has no labels to colour.
    for label, group in zip(ax.get_yticklabels(), groups, strict=False):
        label.set_color(GROUP_COLOURS[group])
        label.set_fontsize(10)
    ax.set_ylim(-len(words) + 0.4, 0.6)
    ax.grid(axis="x")
    ax.grid(visible=False, axis="y")
    ax.spines["bottom"].set_color(QUIET)
    ax.tick_params(axis="x", labelsize=9.5)

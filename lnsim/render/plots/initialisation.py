"""This module draws pairs of trained strangers by how their γ began: cosine beside r, and r layer by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lnsim.render.plots.style import (
    INDEPENDENT,
    INK,
    LABEL,
    NULL,
    panels,
    styled,
    thumbnail_axes,
)
from lnsim.render.words import header_text

__all__ = ["cosine_and_r_by_start", "r_by_layer", "start_thumbnail"]

_MARKERS = ("o", "s", "^", "D")
_APART = 0.17
"""Half the height that the architectures of one row lie apart."""


@styled
def cosine_and_r_by_start(pairs: pd.DataFrame, channels: int) -> Figure:
    """Every pair as a mark in the row of its first γ: cosine at the left, over what γ began with; r at the right.

    Args:
        pairs: columns ``architecture``, ``first_gamma``, ``predicted``, ``cosine`` and ``r``, in the order of the rows.
        channels: of a norm; the band is that of one layer, ``2 / sqrt(channels)`` to both sides of 0.
    """
    starts, looks = list(dict.fromkeys(pairs["first_gamma"])), _looks(pairs)
    figure, (left, right) = panels(2, height=0.55 * len(starts) + 1.6, sharey=True)
    width = 2 / np.sqrt(channels)
    right.axvspan(-width, width, color=NULL, linewidth=0)
    right.axvline(0, color=LABEL, linewidth=0.8)
    _predictions(left, pairs, starts, 0.34)
    for column, ax in (("cosine", left), ("r", right)):
        _marks(ax, pairs, column, starts, looks, 5.5)
        ax.grid(axis="x")
        ax.grid(axis="y", visible=False)
    left.set(title="Cosine", xlim=(min(-0.1, float(pairs["cosine"].min()) - 0.05), 1.06))
    most = max(1.6 * width, 1.15 * float(pairs["r"].abs().max()))
    right.set(title="Pearson r", xlim=(-most, most))
    left.set_yticks(range(len(starts)), labels=starts)
    left.set_ylabel("γ began as")
    left.set_ylim(len(starts) - 0.5, -0.5)
    _key(figure, looks)
    return figure


@styled
def r_by_layer(layers: pd.DataFrame, channels: int) -> Figure:
    """r of every pair at every layer, one panel a role, over the band of one layer.

    Args:
        layers: columns ``architecture``, ``role``, ``layer`` and ``r``.
        channels: of a norm; see ``cosine_and_r_by_start``.
    """
    roles, looks = list(dict.fromkeys(layers["role"])), _looks(layers)
    figure, axes = panels(len(roles), height=3.3, sharey=True, sharex=True)
    width = 2 / np.sqrt(channels)
    for ax, role in zip(axes, roles, strict=True):
        ax.axhspan(-width, width, color=NULL, linewidth=0)
        ax.axhline(0, color=LABEL, linewidth=0.8)
        for architecture, look in looks.items():
            some = layers[(layers["role"] == role) & (layers["architecture"] == architecture)]
            beside = some["layer"] + look["apart"] + _spread_out(some.groupby("layer").cumcount(), 0.22)
            ax.plot(beside, some["r"], alpha=0.7, markersize=3.2, **look["mark"])
        ax.set_title(f"r, {header_text(role)}")
        ax.set_xlabel("layer")
        ax.set_xticks(sorted(set(layers["layer"])))
    _key(figure, looks)
    return figure


@styled
def start_thumbnail(pairs: pd.DataFrame) -> Axes:
    """The left half of ``cosine_and_r_by_start``, small."""
    starts, looks = list(dict.fromkeys(pairs["first_gamma"])), _looks(pairs)
    ax = thumbnail_axes()
    _predictions(ax, pairs, starts, 0.38)
    _marks(ax, pairs, "cosine", starts, looks, 3.6)
    ax.set_yticks([])
    ax.set_ylim(len(starts) - 0.4, -0.6)
    ax.set_xticks([0, 1])
    ax.set_title("cosine of strangers", fontsize=10.5, weight="normal", pad=4)
    return ax


def _looks(frame: pd.DataFrame) -> Mapping[str, dict[str, Any]]:
    """By architecture, its mark and how far it lies from the middle of a row."""
    names = list(dict.fromkeys(frame["architecture"]))
    aparts = np.linspace(-_APART, _APART, len(names)) if len(names) > 1 else np.zeros(1)
    return {
        name: {"apart": apart, "mark": {"linestyle": "none", "marker": marker, "color": INDEPENDENT}}
        for name, apart, marker in zip(names, aparts.tolist(), _MARKERS, strict=False)
    }


def _marks(
    ax: Axes,
    pairs: pd.DataFrame,
    column: str,
    starts: Sequence[str],
    looks: Mapping[str, dict[str, Any]],
    size: float,
) -> None:
    for name, look in looks.items():
        some = pairs[pairs["architecture"] == name]
        rows = some["first_gamma"].map(starts.index) + look["apart"]
        ax.plot(some[column], rows, alpha=0.75, markersize=size, clip_on=False, zorder=3, **look["mark"])


def _predictions(ax: Axes, pairs: pd.DataFrame, starts: Sequence[str], half: float) -> None:
    """A stroke in every row, where the cosine was before any training."""
    for place, start in enumerate(starts):
        value = float(pairs.loc[pairs["first_gamma"] == start, "predicted"].iloc[0])
        ax.plot([value, value], [place - half, place + half], color=INK, linewidth=1.6, zorder=2)


def _spread_out(places: pd.Series, width: float) -> pd.Series:
    """Numbers of the marks of a layer as small shifts, so that they do not lie on each other."""
    return width * (places / max(1, int(places.max())) - 0.5)


def _key(figure: Figure, looks: Mapping[str, dict[str, Any]]) -> None:
    handles = [Line2D([], [], markersize=6, label=name, **look["mark"]) for name, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=10.5, labelcolor=LABEL)

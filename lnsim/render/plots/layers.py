"""This module draws vectors by layer: values of γ as histograms, and the norm of γ with depth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    LABEL,
    QUIET,
    end_labels,
    marker_of,
    panels,
    role_colour,
    styled,
    thumbnail_axes,
)
from lnsim.render.words import header_text, rounded

__all__ = ["layer_histograms", "norm_by_layer", "norm_thumbnail"]

_BINS = 90
_BULK_WIDTH = 0.6
"""Share of a histogram's width that all but stray values may take."""


@styled
def layer_histograms(values: pd.DataFrame, baseline_layer: int) -> Figure:
    """Values of γ over channels: one panel a role, one heap a layer, all on one scale.

    Args:
        values: one row a channel; columns of two levels, (role, layer).
        baseline_layer: the layer drawn in its role's colour; the others are grey.
    """
    roles = list(dict.fromkeys(values.columns.get_level_values(0)))
    layers = list(dict.fromkeys(int(layer) for layer in values.columns.get_level_values(1)))
    figure, axes = panels(len(roles), height=0.6 * len(layers) + 1.1, sharey=True, sharex=True)
    edges = _edges(values.to_numpy())
    for ax, role in zip(axes, roles, strict=True):
        for place, layer in enumerate(layers):
            colour = role_colour(role) if layer == baseline_layer else QUIET
            _heap(ax, values[role][layer].to_numpy(), edges, len(layers) - 1 - place, colour)
        ax.axvline(0, color=LABEL, linewidth=0.9, linestyle=(0, (2, 2)))
        ax.set_title(header_text(role), color=role_colour(role))
        ax.set_xlabel("γ of one channel")
    axes[0].set_yticks(range(len(layers)), labels=[f"layer {layer}" for layer in reversed(layers)])
    axes[0].set_ylim(-0.05, len(layers))
    return figure


@styled
def norm_by_layer(frame: pd.DataFrame) -> Figure:
    """L2 norm of γ by layer, one panel a model, one line a role.

    Args:
        frame: columns ``model`` (label), ``role``, ``layer`` and ``norm``; layers of -1 are left out.
    """
    inside = frame[frame["layer"] >= 0]
    models = list(dict.fromkeys(inside["model"]))
    figure, axes = panels(len(models), columns=2, height=2.0)
    for ax, model in zip(axes, models, strict=True):
        _norm_lines(ax, inside[inside["model"] == model])
        ax.set_title(f"{model}", fontsize=11.5, pad=5)
    for ax in axes[-2:]:
        ax.set_xlabel("layer")
    figure.supylabel("L2 norm of γ", fontsize=12, color=LABEL)
    return figure


@styled
def norm_thumbnail(frame: pd.DataFrame) -> Axes:
    """The norm of γ with depth, small: columns ``role``, ``layer`` and ``norm`` of one model."""
    ax = thumbnail_axes()
    for role, line in frame[frame["layer"] >= 0].groupby("role", sort=False):
        ax.plot(line["layer"], line["norm"], color=role_colour(str(role)))
    ax.set_ylim(bottom=0)
    ax.set_xticks([0, int(frame["layer"].max())])
    ax.set_title("norm by layer", fontsize=10.5, weight="normal", pad=4)
    return ax


def _edges(values: np.ndarray) -> np.ndarray:
    """Edges of the bins: all values, and room for the two numbers at the right, where only stray values may lie."""
    low, high = min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values)))
    bulk = float(np.nanpercentile(values, 99.5))
    return np.linspace(low, max(high, low + (bulk - low) / _BULK_WIDTH), _BINS)


def _heap(ax: Axes, values: np.ndarray, edges: np.ndarray, base: int, colour: str) -> None:
    """One layer's values, highest bin 0.9 high, standing on `base`, with its two numbers at the right."""
    counts = np.histogram(values, bins=edges)[0]
    ax.stairs(base + 0.9 * counts / counts.max(), edges, baseline=base, fill=True, color=colour)
    mean, rms = float(values.mean()), float(np.sqrt(np.mean(np.square(values))))
    words = f"mean {rounded(mean)}\nmean/rms {rounded(mean / rms)}"
    ax.text(edges[-1], base + 0.86, words, ha="right", va="top", fontsize=9.5, color=LABEL, linespacing=1.2)


def _norm_lines(ax: Axes, lines: pd.DataFrame) -> None:
    last = int(lines["layer"].max())
    labels = []
    for role, line in lines.groupby("role", sort=False):
        name, colour = str(role), role_colour(str(role))
        style = "--" if "/" in name or "cross" in name else "-"
        ax.plot(line["layer"], line["norm"], style, marker=marker_of(name), markersize=3.5, linewidth=1.4, color=colour)
        labels.append((float(line["norm"].iloc[-1]), header_text(name), colour))
    ax.set_ylim(bottom=0)
    ax.set_xlim(-0.3, last + 0.3)
    ax.set_xticks(_ticks(range(last + 1)))
    end_labels(ax, labels, last, size=9.5, bold=False)


def _ticks(layers: Sequence[int]) -> list[int]:
    step = max(1, round((len(layers) - 1) / 5))
    return list(layers[::step])

"""This module draws how often tests call synthetic strangers related, and how often they find synthetic relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.render.plots.style import (
    INDEPENDENT,
    INK,
    LABEL,
    NULL,
    QUIET,
    line_of,
    new_axes,
    panels,
    role_colour,
    styled,
    thumbnail_axes,
)
from lnsim.render.words import header_text

__all__ = ["calibration_thumbnail", "power_panels", "rejection_curves", "sigma_strokes"]

_LEVELS = np.unique(np.round(np.geomspace(1, 200, 50))) / 200
"""Levels at which shares are drawn: whole numbers of the steps of 199 permutations."""

_COLOURS = (INK, "#00756b", "#93357e")
_CHANGE_LABELS: Mapping[str, str] = {
    "share of update": "share of the pattern replaced",
    "added noise": "noise, in units of spread",
    "share of layers": "share of layers kept",
}


@styled
def rejection_curves(frame: pd.DataFrame, groups: Mapping[str, Sequence[str]]) -> Figure:
    """Share of strangers with p up to a level, against the level: on the dotted line a test keeps its word.

    Args:
        frame: one row a pair, one column of p-values for each name in `groups`.
        groups: by the title of a panel, the columns drawn in it; at most three.
    """
    # Every notebook imports this module, and one draws from it: scipy.stats takes longer to import than lnsim.
    from scipy import stats

    figure, axes = panels(len(groups), height=4.0, sharey=True, sharex=True)
    low, high = (stats.binom.ppf(edge, len(frame), _LEVELS) / len(frame) for edge in (0.025, 0.975))
    for ax, (title, names) in zip(axes, groups.items(), strict=True):
        ax.fill_between(_LEVELS, np.maximum(low, 1e-4), high, color=NULL, linewidth=0)
        ax.plot(_LEVELS, _LEVELS, linestyle=(0, (1, 2)), color=LABEL, linewidth=1.2)
        for place, name in enumerate(names):
            ax.plot(_LEVELS, _shares(frame[name]), color=_COLOURS[place], linestyle=line_of(place), label=name)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(_LEVELS[0], 1)
        ax.set_ylim(0.002, 1.2)
        _plain(ax, [0.01, 0.05, 0.2, 1])
        ax.set_xlabel("level")
        ax.set_title(title, fontsize=11.5)
        ax.legend(loc="upper left", fontsize=9.5, handlelength=2.6, borderaxespad=0.2)
    return figure


@styled
def sigma_strokes(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """The "sigma" of every synthetic pair of strangers, one row of strokes a role.

    Args:
        frame: columns ``role`` and ``sigma``.
        ax: where to draw; a new Axes where None.
    """
    roles = list(dict.fromkeys(frame["role"]))
    ax = new_axes(ax, 1.1 + 0.42 * len(roles))
    ax.axvline(1.96, color=QUIET, linewidth=1.2)
    ax.axvline(0, color=QUIET, linewidth=0.8, linestyle=(0, (1, 2)))
    for place, role in enumerate(reversed(roles)):
        values = frame.loc[frame["role"] == role, "sigma"]
        ax.plot(values, np.full(len(values), place), "|", color=role_colour(role), markersize=14, markeredgewidth=0.7,
                alpha=0.35)  # fmt: skip
    ax.set_yticks(range(len(roles)), labels=[header_text(role) for role in reversed(roles)])
    ax.set_ylim(-0.6, len(roles) - 0.4)
    ax.grid(False)
    ax.set_xlabel("“sigma”")
    ax.set_title("Synthetic strangers")
    return ax


@styled
def power_panels(curves: pd.DataFrame, level: float) -> Figure:
    """Share of synthetic relatives found, by how much one was changed: one panel a change, one line a search.

    Args:
        curves: columns ``change``, ``amount``, ``search``, ``found``, ``low`` and ``high``.
        level: at which a pair counts as found; it is drawn as a line, since strangers are found as often.
    """
    changes = list(dict.fromkeys(curves["change"]))
    figure, axes = panels(len(changes), columns=3, height=3.6, sharey=True)
    for ax, change in zip(axes, changes, strict=True):
        ax.axhline(level, color=QUIET, linewidth=1.2, linestyle=(0, (1, 2)))
        for place, (search, curve) in enumerate(curves[curves["change"] == change].groupby("search", sort=False)):
            ax.fill_between(
                curve["amount"], curve["low"], curve["high"], color=_COLOURS[place], alpha=0.13, linewidth=0
            )
            ax.plot(curve["amount"], curve["found"], color=_COLOURS[place], linestyle=line_of(place), marker="o",
                    markersize=3.5, label=str(search))  # fmt: skip
        ax.set_xlabel(_CHANGE_LABELS.get(change, change), fontsize=10.5)
        ax.set_title(change, fontsize=11.5)
        if change == "added noise":
            _noise_axis(ax, sorted(set(curves.loc[curves["change"] == change, "amount"])))
    axes[0].set_ylim(-0.03, 1.03)
    axes[0].legend(loc="lower left", fontsize=9.5, handlelength=2.4)
    return figure


@styled
def calibration_thumbnail(frame: pd.DataFrame, kept: str, broken: str) -> Axes:
    """Two lines of ``rejection_curves``, small: a column that keeps its word and one that does not."""
    ax = thumbnail_axes()
    ax.plot(_LEVELS, _LEVELS, linestyle=(0, (1, 2)), color=LABEL, linewidth=1)
    for name, colour, word in ((kept, INK, "permutation"), (broken, INDEPENDENT, "1/√n")):
        shares = _shares(frame[name])
        ax.plot(_LEVELS, shares, color=colour)
        at = len(_LEVELS) // (2 if name == kept else 4)
        offset, side = ((4, -12), "left") if name == kept else ((-2, 6), "right")
        ax.annotate(word, (_LEVELS[at], shares[at]), xytext=offset, textcoords="offset points", ha=side, fontsize=10.5,
                    color=colour)  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(_LEVELS[0], 1)
    ax.set_ylim(0.003, 1.2)
    _plain(ax, [0.01, 0.1, 1])
    return ax


def _shares(values: pd.Series) -> np.ndarray:
    """Share of values up to each level; not drawn where it is 0, which a logarithmic axis has no place for."""
    shares = (values.to_numpy()[:, None] <= _LEVELS + 1e-12).mean(axis=0)
    return np.where(shares > 0, shares, np.nan)


def _plain(ax: Axes, ticks: Sequence[float]) -> None:
    """Ticks of both axes as plain numbers."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)


def _noise_axis(ax: Axes, amounts: Sequence[float]) -> None:
    """Amounts that double from step to step, every second one named."""
    ax.set_xscale("log")
    ax.xaxis.set_ticks(amounts[::2], labels=[f"{amount:g}" for amount in amounts[::2]])
    ax.xaxis.set_ticks([], minor=True)

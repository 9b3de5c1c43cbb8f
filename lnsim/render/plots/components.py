"""This module draws where layers lie along their principal components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from lnsim.render.plots.style import line_of, names_above, panels, placed, styled

__all__ = ["component_panels"]

_MARKS = "os^Dv"


@styled
def component_panels(
    found: Mapping[str, pd.DataFrame], explained: Mapping[str, Sequence[float]], colours: Mapping[str, str]
) -> Figure:
    """Every layer along the first two principal components, one panel a set of components.

    Args:
        found: by title, columns ``model``, ``pc1`` and ``pc2``.
        explained: by title, the shares of the variance.
        colours: by model.
    """
    figure, axes = panels(len(found), height=3.5)
    for ax, (title, one) in zip(axes, found.items(), strict=True):
        for place, (model, line) in enumerate(one.groupby("model", sort=False)):
            colour, mark = colours[str(model)], _MARKS[place % len(_MARKS)]
            ax.plot(line["pc1"], line["pc2"], color=colour, linewidth=0.8, linestyle=line_of(place))
            ax.plot(line["pc1"], line["pc2"], mark, color=colour, markersize=4.5 - 0.5 * place, alpha=0.85)
            first = line.iloc[0]
            ax.plot(first["pc1"], first["pc2"], "o", markersize=10, markeredgewidth=1.2, markerfacecolor="none",
                    markeredgecolor=colour)  # fmt: skip
        ax.set_title(title, fontsize=11.5, pad=5)
        ax.locator_params(nbins=5)
        ax.set_xlabel(f"component 1, {100 * explained[title][0]:.1f} % of the variance", fontsize=10.5)
        ax.set_ylabel(f"component 2, {100 * explained[title][1]:.1f} %", fontsize=10.5)
    models = list(dict.fromkeys(next(iter(found.values()))["model"]))
    names_above(figure, models, colours)
    return placed(figure, above=0.3, between=0.75)

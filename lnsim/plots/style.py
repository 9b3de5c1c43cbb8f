"""This module fixes how figures look: colours by meaning, type, sizes.

Figures are drawn once, on white; the pages' style sheet turns them for the dark theme. So no word in a figure may name
a colour or its lightness.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context, rc_params_from_file
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

WIDTH = 6.8  # inches of a figure on a page
# rcParams of every figure; they hold while a figure is drawn and change nothing else.
style: dict[Any, Any] = dict(
    rc_params_from_file(Path(__file__).with_name("lnsim.mplstyle"), use_default_template=False)
)
INK, LABEL, QUIET, NULL = style["text.color"], style["axes.labelcolor"], style["xtick.color"], "#dfe3e6"
RELATED, INDEPENDENT = "#0b5fa5", "#bf4a00"

# By what a pair counts as; a disputed pair is no control, and layers of one model are no pair of models.
GROUP_COLOURS: Mapping[str, str] = {"related": RELATED, "disputed": INK, "independent": INDEPENDENT, "within": LABEL}

# Line style by group where it is not solid, so that colour is not alone.
DASHES: Mapping[str, Any] = {"disputed": (0, (4, 1.5)), "independent": (0, (1, 1.2))}

# Marker by group, or by the place of a role in its block.
MARKERS: Mapping[str, str] = {"related": "o", "disputed": "D", "independent": "v", "attention": "o", "mlp": "s"}

_ROLE_COLOURS: Mapping[str, str] = {"pre_attention": "#00756b", "pre_mlp": "#8a6400"}
_OTHER_ROLES = "#93357e"
_ROLE_WORDS = ("attention", "mlp", "mixer", "norm", "final", "embedding")
_ROW = ("#332288", "#117733", "#0b5fa5", "#b3445a", "#7a3a8c", "#7d6b00", "#00756b", "#661100")

DIVERGING = LinearSegmentedColormap.from_list(
    "lnsim_r", ["#8f3700", "#d8783b", "#f3dbc9", "#ffffff", "#cbdff0", "#4a8dc7", "#0a4a82"]
)
"""For correlations: always symmetric about 0."""

# For cosines, with the limits printed.
SEQUENTIAL = LinearSegmentedColormap.from_list("lnsim_cosine", ["#ffffff", "#cbdff0", "#4a8dc7", "#0a4a82"])

_CONTRAST, _CONTRAST_OF_LINES = 4.5, 3.0


# Draws with the project's rcParams, and gives the reader's own back afterwards.
styled = rc_context(style)


def palette(names: Iterable[object], colours: Mapping[str, str] | None = None) -> dict[Any, str]:
    """A colour for each name: the given one, else that of its group or its role, else the next of a fixed row.

    Each is darkened where its line would not be seen on white, nor its inverse in the dark theme.
    """
    row = iter(_ROW * 12)
    given = {**GROUP_COLOURS, "True": RELATED, "False": INDEPENDENT, **(colours or {})}
    found = {name: given.get(str(name)) or _of_role(str(name)) or next(row) for name in dict.fromkeys(names)}
    return {name: readable(colour, _CONTRAST_OF_LINES) for name, colour in found.items()}


def _of_role(name: str) -> str:
    """Colour of a role, by its place in the block; towers share it. Empty for a name that is no role's."""
    role = name.rpartition("/")[2]
    return _ROLE_COLOURS.get(role) or (_OTHER_ROLES if any(word in role.split("_") for word in _ROLE_WORDS) else "")


def readable(colour: str, contrast: float = _CONTRAST) -> str:
    """A colour, darkened where needed, in which text has a contrast of at least 4.5, or as given, with white."""

    def luminance(shade: np.ndarray) -> float:  # as WCAG 2 defines it
        linear = np.where(shade <= 0.04045, shade / 12.92, ((shade + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    shade = np.array(to_rgb(colour))
    while 1.05 / (luminance(shade) + 0.05) < contrast:
        shade = shade * 0.96
    red, green, blue = shade.tolist()
    return to_hex((red, green, blue))

"""This package draws kinds of picture, never one picture of one page: labelled data in, an Axes or panels of them out.

Nothing here saves or shows; a page does. Each function takes ``ax=None``, and ``facets`` repeats it by a column.
"""

from lnsim.plots.curves import curves, scatter
from lnsim.plots.maps import maps
from lnsim.plots.panels import broken, facets, key, name_ends, panels, whole_numbers
from lnsim.plots.strips import strips
from lnsim.plots.style import DIVERGING, GROUP_COLOURS, INK, LABEL, NULL, QUIET, SEQUENTIAL, palette, style, styled

__all__ = [
    "DIVERGING", "GROUP_COLOURS", "INK", "LABEL", "NULL", "QUIET", "SEQUENTIAL", "broken", "curves", "facets",
    "key", "maps", "name_ends", "palette", "panels", "scatter", "strips", "style", "styled", "whole_numbers",
]  # fmt: skip

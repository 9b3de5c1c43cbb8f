"""This module gathers the figures: one function a figure, labelled data in, an Axes or a Figure of panels out.

Nothing here saves or shows; ``lnsim.render.page`` does.
"""

from lnsim.render.plots.components import component_panels
from lnsim.render.plots.depth import (
    block_norms_by_layer,
    gamma_maps,
    ridges,
    rounding_by_layer,
    statistics_panels,
)
from lnsim.render.plots.geometry import (
    channel_bars,
    cosine_and_r,
    geometry_thumbnail,
    mean_removal_moving,
    mean_removal_panels,
)
from lnsim.render.plots.maps import correlation_maps
from lnsim.render.plots.style import RELATION_COLOURS, ROLE_COLOURS, style

__all__ = [
    "RELATION_COLOURS",
    "ROLE_COLOURS",
    "block_norms_by_layer",
    "channel_bars",
    "component_panels",
    "correlation_maps",
    "cosine_and_r",
    "gamma_maps",
    "geometry_thumbnail",
    "mean_removal_moving",
    "mean_removal_panels",
    "ridges",
    "rounding_by_layer",
    "statistics_panels",
    "style",
]

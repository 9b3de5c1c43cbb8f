"""This module gathers the figures: one function a figure, labelled data in, an Axes or a Figure of panels out.

Nothing here saves or shows; ``lnsim.render.page`` does.
"""

from lnsim.render.plots.benchmark import area_dots, benchmark_thumbnail, roc_panels, values_by_kind
from lnsim.render.plots.calibration import (
    calibration_thumbnail,
    power_panels,
    rejection_curves,
    sigma_strokes,
)
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
from lnsim.render.plots.layers import layer_histograms, norm_by_layer, norm_thumbnail
from lnsim.render.plots.maps import correlation_maps
from lnsim.render.plots.style import RELATION_COLOURS, ROLE_COLOURS, style

__all__ = [
    "RELATION_COLOURS",
    "ROLE_COLOURS",
    "area_dots",
    "benchmark_thumbnail",
    "block_norms_by_layer",
    "calibration_thumbnail",
    "channel_bars",
    "component_panels",
    "correlation_maps",
    "cosine_and_r",
    "gamma_maps",
    "geometry_thumbnail",
    "layer_histograms",
    "mean_removal_moving",
    "mean_removal_panels",
    "norm_by_layer",
    "norm_thumbnail",
    "power_panels",
    "rejection_curves",
    "ridges",
    "roc_panels",
    "rounding_by_layer",
    "sigma_strokes",
    "statistics_panels",
    "style",
    "values_by_kind",
]

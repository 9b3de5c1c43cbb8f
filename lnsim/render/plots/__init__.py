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
from lnsim.render.plots.layers import layer_histograms, norm_by_layer, norm_thumbnail
from lnsim.render.plots.style import RELATION_COLOURS, ROLE_COLOURS, style

__all__ = [
    "RELATION_COLOURS",
    "ROLE_COLOURS",
    "area_dots",
    "benchmark_thumbnail",
    "calibration_thumbnail",
    "layer_histograms",
    "norm_by_layer",
    "norm_thumbnail",
    "power_panels",
    "rejection_curves",
    "roc_panels",
    "sigma_strokes",
    "style",
    "values_by_kind",
]

"""This module gathers the figures: one function a figure, labelled data in, an Axes or a Figure of panels out.

Nothing here saves or shows; ``lnsim.render.page`` does.
"""

from lnsim.render.plots.alignment import (
    alignment_thumbnail,
    mean_by_offset,
    nearest_layers,
    null_of_mean_r,
    stack_maps,
)
from lnsim.render.plots.baseline import (
    baseline_curves,
    baseline_thumbnail,
    cosine_terms,
    each_layer_as_baseline,
    null_band,
)
from lnsim.render.plots.benchmark import area_dots, benchmark_thumbnail, roc_panels, values_by_kind
from lnsim.render.plots.calibration import (
    calibration_thumbnail,
    power_panels,
    rejection_curves,
    sigma_strokes,
)
from lnsim.render.plots.change import change_by_layer, change_thumbnail
from lnsim.render.plots.comparison import (
    comparison_thumbnail,
    cosine_against_means,
    kinds_of_comparison,
    length_directions,
    metric_strips,
)
from lnsim.render.plots.components import component_panels
from lnsim.render.plots.depth import (
    block_norms_by_layer,
    gamma_maps,
    ridges,
    rounding_by_layer,
    statistics_panels,
)
from lnsim.render.plots.distance import by_distance, distance_thumbnail
from lnsim.render.plots.geometry import (
    channel_bars,
    cosine_and_r,
    geometry_thumbnail,
    mean_removal_moving,
    mean_removal_panels,
)
from lnsim.render.plots.groups import groups_thumbnail, kind_strips, pair_curves, pairs_against_null
from lnsim.render.plots.layers import layer_histograms, norm_by_layer, norm_thumbnail
from lnsim.render.plots.listed_pairs import cosines_beside_r
from lnsim.render.plots.maps import correlation_maps
from lnsim.render.plots.model_matrix import model_matrix
from lnsim.render.plots.projections import difference_against_ratio, projection_thumbnail, scores_by_group
from lnsim.render.plots.style import RELATION_COLOURS, ROLE_COLOURS, style

__all__ = [
    "RELATION_COLOURS",
    "ROLE_COLOURS",
    "alignment_thumbnail",
    "area_dots",
    "baseline_curves",
    "baseline_thumbnail",
    "benchmark_thumbnail",
    "block_norms_by_layer",
    "by_distance",
    "calibration_thumbnail",
    "change_by_layer",
    "change_thumbnail",
    "channel_bars",
    "comparison_thumbnail",
    "component_panels",
    "correlation_maps",
    "cosine_against_means",
    "cosine_and_r",
    "cosine_terms",
    "cosines_beside_r",
    "difference_against_ratio",
    "distance_thumbnail",
    "each_layer_as_baseline",
    "gamma_maps",
    "geometry_thumbnail",
    "groups_thumbnail",
    "kind_strips",
    "kinds_of_comparison",
    "layer_histograms",
    "length_directions",
    "mean_by_offset",
    "mean_removal_moving",
    "mean_removal_panels",
    "metric_strips",
    "model_matrix",
    "nearest_layers",
    "norm_by_layer",
    "norm_thumbnail",
    "null_band",
    "null_of_mean_r",
    "pair_curves",
    "pairs_against_null",
    "power_panels",
    "projection_thumbnail",
    "rejection_curves",
    "ridges",
    "roc_panels",
    "rounding_by_layer",
    "scores_by_group",
    "sigma_strokes",
    "stack_maps",
    "statistics_panels",
    "style",
    "values_by_kind",
]

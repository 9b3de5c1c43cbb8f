"""This module gathers the figures: one function a figure, labelled data in, an Axes or a Figure of panels out.

Nothing here saves or shows; ``lnsim.render.page`` does.
"""

from lnsim.render.plots.baseline import (
    baseline_curves,
    baseline_thumbnail,
    cosine_terms,
    each_layer_as_baseline,
    null_band,
)
from lnsim.render.plots.change import change_by_layer, change_thumbnail
from lnsim.render.plots.distance import by_distance, distance_thumbnail
from lnsim.render.plots.groups import groups_thumbnail, kind_strips, pair_curves, pairs_against_null
from lnsim.render.plots.layers import layer_histograms, norm_by_layer, norm_thumbnail
from lnsim.render.plots.maps import correlation_maps
from lnsim.render.plots.model_matrix import model_matrix
from lnsim.render.plots.style import RELATION_COLOURS, ROLE_COLOURS, style

__all__ = [
    "RELATION_COLOURS",
    "ROLE_COLOURS",
    "baseline_curves",
    "baseline_thumbnail",
    "by_distance",
    "change_by_layer",
    "change_thumbnail",
    "correlation_maps",
    "cosine_terms",
    "distance_thumbnail",
    "each_layer_as_baseline",
    "groups_thumbnail",
    "kind_strips",
    "layer_histograms",
    "model_matrix",
    "norm_by_layer",
    "norm_thumbnail",
    "null_band",
    "pair_curves",
    "pairs_against_null",
    "style",
]

"""This module measures what the verdict on each listed pair of models rests on, one kind of norm at a time.

Known relations take no part in it. The p-values are adjusted over *all* tests of the study, related pairs included: a
reader who looks for the smallest p looks at all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.alignment_pieces import partner_counts
from lnsim.measure.cells import adjusted
from lnsim.measure.listed_pairs import ListedPair
from lnsim.measure.metrics import pairwise
from lnsim.measure.permutation import Orders, channel_orders, matched_null
from lnsim.measure.stored_bits import same_bits

__all__ = ["norm_tests"]

_RANGE = (0.025, 0.975)


def norm_tests(
    models: Mapping[str, NormVectors],
    pairs: Sequence[ListedPair],
    labels: Mapping[str, str],
    n_permutations: int,
    seed: int,
) -> pd.DataFrame:
    """Every listed pair and kind of norm, tested or with the reason why not.

    Args:
        models: vectors by key; a pair with a model that is not among them is left out.
        pairs: as ``listed_pairs.pairs_of`` gives them.
        labels: what readers see of each key.
        n_permutations: of the channels, one permutation shared by all layers of a pair.
        seed: of the permutations.

    Returns:
        Columns ``a``, ``b`` (keys), ``pair``, ``norms``; ``obstacle`` (empty where the two can be compared); ``layers``
        (matched) and ``channels``; ``r`` (mean over matched layers), ``null_low`` and ``null_high`` (95 % of its
        permutations), ``rank_r``; ``pvalue`` and ``p_ranks`` (one-sided), ``p_holm`` and ``p_ranks_holm`` (adjusted
        over all rows tested); ``same``, ``elsewhere`` and ``without`` (see ``alignment_pieces.partner_counts``),
        ``one_length`` and ``identical`` (see ``verdict.NormTest``).

    Raises:
        ComparisonError: when no pair has both its models.
    """
    orders: dict[int, Orders] = {}
    rows = []
    for one in pairs:
        if one.a not in models or one.b not in models:
            continue
        first = {"a": one.a, "b": one.b, "pair": f"{labels[one.a]} × {labels[one.b]}", "norms": one.norms}
        obstacle = _obstacle(models, one, labels)
        found: dict[str, Any] = {}
        if not obstacle:
            a, b = models[one.a][one.role_a], models[one.b][one.role_b]
            if a.hidden_size not in orders:
                orders[a.hidden_size] = channel_orders(a.hidden_size, n_permutations, seed)
            found = _measured(a, b, orders[a.hidden_size])
        rows.append({**first, "obstacle": obstacle, **found})
    if not rows:
        raise ComparisonError(f"Testing {len(pairs)} listed pairs: none has the vectors of both its models.")
    return adjusted(pd.DataFrame(rows).reindex(columns=[*first, "obstacle", *_MEASURED]))


_MEASURED = (
    "layers", "channels", "r", "null_low", "null_high", "rank_r", "pvalue", "p_ranks", "same", "elsewhere", "without",
    "one_length", "identical",
)  # fmt: skip


def _obstacle(models: Mapping[str, NormVectors], one: ListedPair, labels: Mapping[str, str]) -> str:
    """Why the two cannot be compared, or an empty text."""
    sizes = [models[key].hidden_size for key in (one.a, one.b)]
    if sizes[0] != sizes[1]:
        return f"their hidden sizes are {sizes[0]} and {sizes[1]}, and no channel of one is a channel of the other"
    for key, role in ((one.a, one.role_a), (one.b, one.role_b)):
        if role not in models[key].roles:
            return f"{labels[key]} has no norm of the role {role}"
    a, b = models[one.a][one.role_a], models[one.b][one.role_b]
    if not len(np.intersect1d(a.layers, b.layers)):
        return "no layer number in common"
    for key, norms in ((one.a, a), (one.b, b)):
        if constant := norms.layers[np.ptp(norms.scale, axis=1) == 0].tolist():
            return f"γ of {labels[key]} is the same in every channel of layer {constant[0]}, so it has no pattern"
    return ""


def _measured(a: RoleVectors, b: RoleVectors, orders: Orders) -> dict[str, Any]:
    _, rows_a, rows_b = np.intersect1d(a.layers, b.layers, assume_unique=True, return_indices=True)
    matched = a.scale[rows_a], b.scale[rows_b]
    null, ranks = (matched_null(*matched, orders, correlation=kind) for kind in ("pearson", "spearman"))
    low, high = (float(edge) for edge in np.quantile(null.null_distribution, _RANGE))
    matrix = pd.DataFrame(pairwise(a.scale, b.scale, "pearson"), index=a.layers, columns=b.layers)
    counts = partner_counts(matrix)
    return {
        "layers": len(rows_a),
        "channels": a.hidden_size,
        "r": null.statistic,
        "null_low": low,
        "null_high": high,
        "rank_r": ranks.statistic,
        "pvalue": null.pvalue,
        "p_ranks": ranks.pvalue,
        **{name: counts[name] for name in ("same", "elsewhere", "without")},
        "one_length": np.array_equal(a.layers, b.layers),
        "identical": same_bits(a, b),
    }

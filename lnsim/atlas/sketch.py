"""This module makes the sketch of a model: one pattern over the channels for each kind of norm, for screening only.

A pattern is the mean over the layers of γ, each layer without its mean and over its standard deviation; it is scaled to
length 1. So models of different depth can be set against each other by one product. Constant layers are left out.

A sketch cannot see what no pattern over the channels shows: a distilled model, permuted channels, γ folded into the
matrices, norms that were reset. It also loses what the layers do not share: patterns of single layers average out,
so that two models alike in one layer of many look like strangers. Of a model's norms only those of one width take part,
its own, and of two towers that have it, the main one's; MTP blocks are left out. No p rests on a sketch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.nulls import centred_unit
from lnsim.measure.verdict import why_apart

Floats = npt.NDArray[np.float32]
Sketch = Mapping[str, Floats]
"""By role without its tower, a pattern of length 1, shape ``(hidden_size,)``."""

PASSES = 4.0
"""Standard deviations of the null from which a pair passes, at the least; see ``lets_in``."""


def sketch(vectors: NormVectors) -> dict[str, Floats]:
    """The patterns of a model by role; empty where no norm of its hidden size has one."""
    found: dict[str, Floats] = {}
    for key in sorted(vectors.roles, key=lambda key: "/" in key):  # those of the main tower first
        tower, _, role = key.rpartition("/")
        one = vectors.roles[key]
        if tower == "mtp" or why_apart(key) or role in found or one.hidden_size != vectors.hidden_size:
            continue
        if (pattern := _pattern(one.scale)) is not None:
            found[role] = pattern
    return found


def similarity(a: Sketch, b: Sketch) -> float:
    """The mean over the roles of both of the correlation of their patterns; NaN where they have none in common."""
    common = [role for role in a if role in b]
    return sum(float(a[role] @ b[role]) for role in common) / len(common) if common else math.nan


def lets_in(n_comparisons: int, hidden_size: int) -> float:
    """The similarity from which a pair gets the full test, where so many are screened.

    The correlation of two vectors of H channels, the one in random order, has mean 0 and standard deviation
    ``1 / sqrt(H - 1)``, so that of their mean over roles is no wider. Let in is what is ``PASSES`` of these above 0, or
    among very many ``sqrt(2 log(n_comparisons))``, about the largest of so many normal values: of strangers in random
    order few pass, and what lies below could hardly come out of the full test, which pays for as many comparisons.
    """
    deviations = max(PASSES, math.sqrt(2 * math.log(max(n_comparisons, 1))))
    return deviations / math.sqrt(max(hidden_size - 1, 1))


def _pattern(scale: npt.NDArray[np.float32]) -> Floats | None:
    """The mean standardised layer, of length 1; None where no layer has a pattern."""
    rows = scale[np.isfinite(scale).all(axis=1)].astype(np.float64)
    rows = rows[(rows != rows[:, :1]).any(axis=1)]
    mean = centred_unit(rows).mean(axis=0) if len(rows) else np.zeros(1)
    length = float(np.linalg.norm(mean))
    return None if length <= 1e-9 else np.asarray(mean / length, dtype=np.float32)

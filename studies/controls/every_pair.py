"""This module tests every pair of many models of one shape at once, for the page on calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.measure.nulls import Floats, centred_unit
from lnsim.measure.pair_test import KINDS
from lnsim.measure.permutation import order_stream

__all__ = ["every_pair"]


def every_pair(rows: npt.NDArray[Any], n_permutations: int, seed: int) -> tuple[Floats, Floats]:
    """Mean r and p of every pair of models of one shape: one permutation for all of them at a time.

    Args:
        rows: shape ``(n_models, n_rows, hidden_size)``; row i of one model is compared with row i of another.
        n_permutations: of the channels.
        seed: of the permutations.

    Returns:
        Two matrices over the models: the mean r, and the larger of the p by r and by ranks. The p of a pair (i, j) is
        that with the channels of j permuted; the diagonal, a model beside itself, has no meaning.
    """
    n, each, size = rows.shape
    flat = np.asarray(rows, dtype=np.float64).reshape(-1, size)
    units = [centred_unit(kind(flat)).reshape(n, each, size) for kind in KINDS]
    observed = [unit.reshape(n, -1) @ unit.reshape(n, -1).T for unit in units]
    hits = np.zeros((2, n, n), dtype=int)
    for order in order_stream(size, seed)(n_permutations).T:
        for place, (unit, value) in enumerate(zip(units, observed, strict=True)):
            moved = np.take(unit, order, axis=2).reshape(n, -1)
            hits[place] += unit.reshape(n, -1) @ moved.T >= value - 1e-12
    return observed[0] / each, (1 + hits.max(axis=0)) / (1 + n_permutations)

"""This module computes cosine, Pearson and Spearman of every row of one matrix with every row of another.

The functions here take float64 matrices that ``rows.widen`` has prepared. A row without direction or spread gives 0;
``metrics.pairwise`` puts NaN in its place, and ``undefined`` the reason.
"""

from __future__ import annotations

import numpy as np

from lnsim.measure.rows import Matrix, centre, lengths, scale

__all__ = ["cosine", "pearson", "ranks", "spearman"]

_NEAR_ONE = 0.999


def cosine(a: Matrix, b: Matrix) -> Matrix:
    """Cosines, shape ``(n_layers_a, n_layers_b)``, never outside [-1, 1].

    A product of unit vectors has a rounding error of a few units in the last place, which hides how close to 1 a cosine
    is. So near the ends it is 1 - |u - v|^2 / 2 instead, exactly 1 for equal vectors.
    """
    unit_a, unit_b = _unit(a), _unit(b)
    result: Matrix = unit_a @ unit_b.T
    for row, cosines in enumerate(result):
        for sign in (1.0, -1.0):
            near = np.flatnonzero(sign * cosines > _NEAR_ONE)
            chord = unit_b[near] - sign * unit_a[row]
            cosines[near] = sign * (1.0 - np.einsum("ij,ij->i", chord, chord) / 2)
    return result


def pearson(a: Matrix, b: Matrix) -> Matrix:
    """Pearson correlations over the channels: the cosines of the centred rows."""
    return cosine(centre(a)[1], centre(b)[1])


def spearman(a: Matrix, b: Matrix) -> Matrix:
    """Pearson correlations of the ranks within each row."""
    return pearson(ranks(a), ranks(b))


def _unit(rows: Matrix) -> Matrix:
    """Rows of length 1; an all-zero row stays as it is."""
    scaled, _ = scale(rows)
    length = lengths(scaled)[:, None]
    unit: Matrix = scaled / np.where(length > 0, length, 1.0)
    return unit


def ranks(rows: Matrix) -> Matrix:
    """Ranks from 1 within each row; equal values share the average of their ranks."""
    return np.stack([_ranks_of_row(row) for row in rows])


def _ranks_of_row(row: Matrix) -> Matrix:
    _, inverse, counts = np.unique(row, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Matrix = (last - (counts - 1) / 2)[inverse]
    return ranks

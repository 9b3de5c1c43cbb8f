"""This module splits a cosine into what the means do and what the pattern does.

With the share c = mean / rms of each vector and the Pearson correlation r,

    cos(a, b) = c_a c_b + r sqrt(1 - c_a^2) sqrt(1 - c_b^2)

holds exactly (both sides are mean(ab) / (rms_a rms_b)). Two vectors whose spread is small against their mean have
shares near 1, so their cosine is near 1 whatever r is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lnsim.measure.rows import Matrix, check_pair, row_statistics, widen
from lnsim.measure.similarity import cosine, pearson

__all__ = ["CosineTerms", "cosine_terms"]


@dataclass(frozen=True, slots=True, eq=False)
class CosineTerms:
    """The two terms of every cosine; all matrices have shape ``(n_layers_a, n_layers_b)``, float64.

    Args:
        share_a: mean over root mean square of each row of a, shape ``(n_layers_a,)``.
        share_b: the same for b, shape ``(n_layers_b,)``.
        mean_term: ``c_a c_b``, the cosine that the means alone would give.
        pattern_term: ``r sqrt(1 - c_a^2) sqrt(1 - c_b^2)``, what the pattern adds; 0 where a vector is constant.
        r: Pearson correlation; NaN where a vector is constant.
        cosine: computed from the vectors themselves, not from the terms.
    """

    share_a: Matrix
    share_b: Matrix
    mean_term: Matrix
    pattern_term: Matrix
    r: Matrix
    cosine: Matrix

    @property
    def residual(self) -> float:
        """Largest difference between a cosine and the sum of its terms; rounding only, NaN pairs left out."""
        gaps = np.abs(self.cosine - self.mean_term - self.pattern_term)
        return float(np.nanmax(gaps)) if np.isfinite(gaps).any() else float("nan")


def cosine_terms(a: npt.ArrayLike, b: npt.ArrayLike) -> CosineTerms:
    """Split the cosine of every row of ``a`` with every row of ``b``.

    Args:
        a: vectors, shape ``(n_layers_a, hidden_size)``, any real dtype.
        b: vectors, shape ``(n_layers_b, hidden_size)``.

    Raises:
        ComparisonError: when the two are not matrices of numbers of one hidden size.

    An all-zero row, or one with a value that is not finite, has NaN everywhere.
    """
    rows_a, rows_b = check_pair(a, b)
    (wide_a, _), (wide_b, _) = widen(rows_a), widen(rows_b)
    stats_a, stats_b = row_statistics(rows_a), row_statistics(rows_b)
    r = pearson(wide_a, wide_b)
    undefined = np.isnan(stats_a.share)[:, None] | np.isnan(stats_b.share)[None, :]
    constant = (stats_a.std == 0)[:, None] | (stats_b.std == 0)[None, :]
    pattern = r * np.outer(_pattern_share(stats_a.share), _pattern_share(stats_b.share))
    return CosineTerms(
        share_a=stats_a.share,
        share_b=stats_b.share,
        mean_term=np.outer(stats_a.share, stats_b.share),
        pattern_term=np.where(undefined, np.nan, pattern),
        r=np.where(undefined | constant, np.nan, r),
        cosine=np.where(undefined, np.nan, cosine(wide_a, wide_b)),
    )


def _pattern_share(share: Matrix) -> Matrix:
    """sqrt(1 - c^2), written so that a share near 1 does not lose its digits."""
    return np.sqrt((1 - share) * (1 + share))

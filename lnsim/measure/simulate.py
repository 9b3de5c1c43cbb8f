"""This module draws synthetic models whose norm vectors look like those of a real one, and share nothing with another.

A ``Template`` is what is measured on the stack of a real model: level and spread of each layer, how the layers resemble
each other, and how heavy the tails are. From it models are drawn channel by channel, by a multivariate t distribution:
normal values, correlated over the layers as measured, all divided by one random factor a channel. So a channel that is
extreme in one layer is apt to be extreme in the others, as in real models. Channels are independent of each other, and
two models are drawn independently: whatever a test finds between them is chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise
from lnsim.measure.nulls import Floats

__all__ = ["Template", "fitted"]

_DEGREES = (2.1, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0)
"""Degrees of freedom that are tried; the fewer, the heavier the tails."""


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """What is measured on the stack of a real model.

    Args:
        name: the model that it was measured on.
        role: which norm.
        level: median of each layer, shape ``(n_layers,)``.
        spread: scale of each layer, shape ``(n_layers,)``: that of a t distribution with the measured half-width.
        correlation: between layers, shape ``(n_layers, n_layers)``, positive definite, ones on the diagonal.
        degrees: of freedom of the t distribution: how heavy the tails are.
    """

    name: str
    role: str
    level: Floats
    spread: Floats
    correlation: Floats
    degrees: float

    def __post_init__(self) -> None:
        n = len(self.level)
        if self.spread.shape != (n,) or self.correlation.shape != (n, n) or not (self.spread > 0).all():
            raise ComparisonError(
                f"Describing the stack of {self.name}: expected a spread above 0 for each of {n} layers and their "
                f"correlations, found shapes {self.spread.shape} and {self.correlation.shape}."
            )

    def patterns(self, n_channels: int, generator: np.random.Generator) -> Floats:
        """What one drawn model has beside level and spread, shape ``(n_layers, n_channels)``."""
        normal = np.linalg.cholesky(self.correlation) @ generator.standard_normal((len(self.level), n_channels))
        factor = np.sqrt(generator.chisquare(self.degrees, size=n_channels) / self.degrees)
        return np.asarray(normal / factor)

    def with_pattern(self, pattern: Floats) -> Floats:
        """A stack of this level and spread."""
        return np.asarray(self.level[:, None] + self.spread[:, None] * pattern)

    def draw(self, n_channels: int, generator: np.random.Generator) -> Floats:
        """A synthetic stack, shape ``(n_layers, n_channels)``."""
        return self.with_pattern(self.patterns(n_channels, generator))


def fitted(name: str, role: str, rows: npt.ArrayLike) -> Template:
    """Measure a template on a real stack.

    The correlation of two layers is taken from their ranks, as ``2 sin(pi rho / 6)`` (exact for normal values), since a
    few extreme channels would decide a Pearson r. The degrees of freedom are those, of a list of eleven, under which
    the values of all layers are likeliest, each layer centred at its median and scaled by its median absolute
    deviation.

    Args:
        name: of the model.
        role: which norm.
        rows: shape ``(n_layers, hidden_size)``.

    Raises:
        ComparisonError: when half of a layer's values are equal, so that it has no spread.
    """
    wide = np.asarray(rows, dtype=np.float64)
    level = np.median(wide, axis=1)
    half = np.median(np.abs(wide - level[:, None]), axis=1)
    if not (half > 0).all():
        raise ComparisonError(
            f"Measuring the stack of {name}: layer {int(np.argmin(half))} has no spread around its median."
        )
    standard = ((wide - level[:, None]) / half[:, None]).ravel()
    degrees = max(_DEGREES, key=lambda nu: _likelihood(standard, nu))
    return Template(name, role, level, half / _half_width(degrees), _correlation(wide), degrees)


def _half_width(degrees: float) -> float:
    """Median absolute deviation of a t distribution of scale 1."""
    return float(stats.t.ppf(0.75, degrees))


def _likelihood(standard: Floats, degrees: float) -> float:
    """Log likelihood of values whose median absolute deviation is 1."""
    width = _half_width(degrees)
    return float(stats.t.logpdf(standard * width, degrees).sum() + standard.size * np.log(width))


def _correlation(rows: Floats) -> Floats:
    """Correlations from ranks, made positive definite where the layers are nearly alike."""
    found = 2 * np.sin(np.pi * pairwise(rows, rows, "spearman") / 6)
    values, vectors = np.linalg.eigh((found + found.T) / 2)
    definite = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    scale = np.sqrt(np.diag(definite))
    return np.asarray(definite / scale[:, None] / scale[None, :])

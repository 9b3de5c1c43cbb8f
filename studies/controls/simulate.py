"""This module draws pairs of Gaussian vectors that share nothing, and says what is known of them in closed form.

Each has ``n`` independent channels, a mean mu and a standard deviation sd; c = mu / sqrt(mu^2 + sd^2). To first order
in 1/n,

- the cosine is c_a c_b, with variance (c_b^2 s_a^6 + c_a^2 s_b^6 + s_a^2 s_b^2 + c_a^2 c_b^2 (s_a^4 + s_b^4)/2) / n,
  where s^2 = 1 - c^2 (the delta method);
- r is 0, with standard deviation 1/sqrt(n - 1), exactly;
- the squared length of a - b is n (d^2 + t^2) on average, d the difference of the means and t^2 = sd_a^2 + sd_b^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import Floats

__all__ = ["Draws", "Gaussian", "draw"]

_BATCH = 100
"""Pairs drawn at a time: 100 of 4,096 channels take 3 MB."""


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Two random vectors: mean and standard deviation of the channels of each, and their number.

    Args:
        mean_a: mean of the first; mean_b likewise.
        std_a: standard deviation of the first, not negative; std_b likewise.
        hidden_size: channels, at least 2.
    """

    mean_a: float
    std_a: float
    mean_b: float
    std_b: float
    hidden_size: int

    def __post_init__(self) -> None:
        if self.hidden_size < 2 or not (self.std_a > 0 and self.std_b > 0):
            raise ComparisonError(
                f"Describing random vectors: expected at least 2 channels and positive standard deviations, found "
                f"{self.hidden_size} channels and {self.std_a:g} and {self.std_b:g}."
            )

    def closed(self) -> dict[str, float]:
        """Means and standard deviations of cosine, r and L2, by the formulas at the top of this module."""
        n = self.hidden_size
        square_a, square_b = (self.mean_a**2 + self.std_a**2), (self.mean_b**2 + self.std_b**2)
        c_a, c_b = self.mean_a / np.sqrt(square_a), self.mean_b / np.sqrt(square_b)
        s_a, s_b = self.std_a**2 / square_a, self.std_b**2 / square_b  # 1 - c^2
        variance = c_b**2 * s_a**3 + c_a**2 * s_b**3 + s_a * s_b + (c_a * c_b) ** 2 * (s_a**2 + s_b**2) / 2
        gap, spread = self.mean_a - self.mean_b, self.std_a**2 + self.std_b**2
        mean_square, of_squares = gap**2 + spread, 2 * spread**2 + 4 * gap**2 * spread
        return {
            "cosine": float(c_a * c_b),
            "cosine_std": float(np.sqrt(variance / n)),
            "r": 0.0,
            "r_std": float(1 / np.sqrt(n - 1)),
            "l2": float(np.sqrt(n * mean_square) * (1 - of_squares / (8 * n * mean_square**2))),
            "l2_std": float(np.sqrt(of_squares / mean_square) / 2),
        }

    def simulated(self, draws: Draws) -> dict[str, float]:
        """The same from draws: means and standard deviations (ddof 1) over them."""
        found = self.values(draws)
        means = {name: float(values.mean()) for name, values in found.items()}
        return means | {f"{name}_std": float(values.std(ddof=1)) for name, values in found.items()}

    def values(self, draws: Draws) -> dict[str, Floats]:
        """Cosine, r and L2 of every draw, each of shape ``(n_draws,)``."""
        a = self.mean_a + self.std_a * draws.mean_x
        b = self.mean_b + self.std_b * draws.mean_y
        square_a, square_b = a**2 + self.std_a**2 * draws.var_x, b**2 + self.std_b**2 * draws.var_y
        product = a * b + self.std_a * self.std_b * draws.covariance
        return {
            "cosine": np.asarray(product / np.sqrt(square_a * square_b)),
            "r": np.asarray(draws.covariance / np.sqrt(draws.var_x * draws.var_y)),
            "l2": np.asarray(np.sqrt(draws.hidden_size * (square_a + square_b - 2 * product))),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Moments (ddof 0) of pairs of standard normal vectors, each of shape ``(n_draws,)``.

    A Gaussian vector with any mean and spread is a standard one, stretched and moved; so these moments serve all pairs.
    """

    hidden_size: int
    mean_x: Floats
    mean_y: Floats
    var_x: Floats
    var_y: Floats
    covariance: Floats

    def parts(self, n: int) -> Iterator[Draws]:
        """The draws in `n` parts of equal number, independent of each other; what is left over is in none."""
        size = len(self.covariance) // n
        moments = (self.mean_x, self.mean_y, self.var_x, self.var_y, self.covariance)
        for start in range(0, n * size, size):
            yield Draws(self.hidden_size, *(moment[start : start + size] for moment in moments))


def draw(hidden_size: int, n_draws: int, seed: int) -> Draws:
    """Draw at least 2 pairs of standard normal vectors, of at least 2 channels, and keep their moments."""
    if hidden_size < 2 or n_draws < 2:
        raise ComparisonError(f"Drawing {n_draws} random pairs of {hidden_size} channels: expected at least 2 of each.")
    generator = np.random.default_rng(seed)
    found = []
    for start in range(0, n_draws, _BATCH):
        x, y = generator.standard_normal((2, min(_BATCH, n_draws - start), hidden_size))
        covariance = (x * y).mean(axis=1) - x.mean(axis=1) * y.mean(axis=1)
        found.append(np.stack([x.mean(axis=1), y.mean(axis=1), x.var(axis=1), y.var(axis=1), covariance]))
    return Draws(hidden_size, *np.concatenate(found, axis=1))

"""This module says what random vectors would give: closed forms beside a seeded simulation, and shuffled channels.

Two Gaussian vectors of ``n`` independent channels, with means mu and standard deviations sd, have c = mu / sqrt(mu^2 +
sd^2) each. Then, to first order in 1/n,

- the cosine is c_a c_b, with variance (c_b^2 s_a^6 + c_a^2 s_b^6 + s_a^2 s_b^2 + c_a^2 c_b^2 (s_a^4 + s_b^4)/2) / n,
  where s^2 = 1 - c^2 (the delta method);
- r is 0, with standard deviation 1/sqrt(n - 1), exactly;
- the squared length of a - b is n (d^2 + t^2) on average, d the difference of the means and t^2 = sd_a^2 + sd_b^2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise, row_statistics
from lnsim.measure.permutation import channel_orders, matched_null

__all__ = ["Draws", "Gaussian", "draw", "published_pairs", "random_baselines"]

Floats = npt.NDArray[np.float64]

_BATCH = 100
"""Draws made at a time: 100 of 4,096 channels take 3 MB."""


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
    """Draw pairs of standard normal vectors and keep their moments.

    Raises:
        ComparisonError: for fewer than 2 draws or channels.
    """
    if hidden_size < 2 or n_draws < 2:
        raise ComparisonError(f"Drawing {n_draws} random pairs of {hidden_size} channels: expected at least 2 of each.")
    generator = np.random.default_rng(seed)
    found = []
    for start in range(0, n_draws, _BATCH):
        x, y = generator.standard_normal((2, min(_BATCH, n_draws - start), hidden_size))
        covariance = (x * y).mean(axis=1) - x.mean(axis=1) * y.mean(axis=1)
        found.append(np.stack([x.mean(axis=1), y.mean(axis=1), x.var(axis=1), y.var(axis=1), covariance]))
    return Draws(hidden_size, *np.concatenate(found, axis=1))


def published_pairs(
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    labels: Mapping[str, str],
    role: str,
    layers: Sequence[int],
) -> pd.DataFrame:
    """Experiment 6 of document 001: the pairs at the first layer, their models within themselves, and layer 0.

    Args:
        pairs: model keys.
        models: vectors by key, all of one hidden size.
        labels: what readers see of each key.
        role: which norm.
        layers: the first is compared across models and with layer 0, the first two within each model.

    Returns:
        Columns ``kind``, ``comparison``, ``cosine``, ``pearson``, ``l2``, and mean and standard deviation (ddof 0) of
        either vector: ``mean_a``, ``std_a``, ``mean_b``, ``std_b``. A comparison whose layer is missing is left out.
    """
    first, second = layers[0], layers[1] if len(layers) > 1 else layers[0]
    members = list(dict.fromkeys(key for pair in pairs for key in pair))
    wanted = [("same layer", a, first, b, first) for a, b in pairs]
    wanted += [("within one model", key, first, key, second) for key in members]
    wanted += [("layer 0", key, 0, key, first) for key in members]
    rows = []
    for kind, a, layer_a, b, layer_b in wanted:
        of_a, of_b = models[a][role], models[b][role]
        if layer_a in of_a.layers and layer_b in of_b.layers and (a, layer_a) != (b, layer_b):
            name = f"{labels[a]}[{layer_a}] × {labels[b]}[{layer_b}]"
            vectors = of_a.scale[[of_a.row(layer_a)]], of_b.scale[[of_b.row(layer_b)]]
            rows.append({"kind": kind, "comparison": name, **_observed(*vectors)})
    return pd.DataFrame(rows)


def random_baselines(
    pairs: Sequence[Sequence[str]],
    models: Mapping[str, NormVectors],
    labels: Mapping[str, str],
    role: str,
    layer: int,
    n_draws: int,
    n_permutations: int,
    seed: int,
    published: tuple[float, float] = (1.0, 0.1),
) -> pd.DataFrame:
    """What chance gives, for random vectors as one document drew them, and for each pair's own means and spreads.

    Args:
        pairs: model keys; those that lack the layer are left out.
        models: vectors by key, all of one hidden size.
        labels: what readers see of each key.
        role: which norm.
        layer: the layer compared.
        n_draws: random pairs simulated; the same draws serve every row.
        n_permutations: shuffles of the channels for r of each pair, the same for every pair.
        seed: of the draws and of the shuffles.
        published: mean and standard deviation of the first row.

    Returns:
        Index ``vectors``; for cosine, r and l2 the columns ``_closed``, ``_simulated`` (mean over the draws),
        ``_std_closed`` and ``_std_simulated``; the measured ``cosine``, ``r`` and ``l2``; and ``p_r``,
        two-sided, from shuffled channels. The first row has no measured values: they are NaN.
    """
    there = [(a, b) for a, b in pairs if layer in models[a][role].layers and layer in models[b][role].layers]
    if not there:
        raise ComparisonError(f"Comparing pairs at layer {layer}, role '{role}': no pair has this layer on both sides.")
    size = models[there[0][0]].hidden_size
    draws, orders = draw(size, n_draws, seed), channel_orders(size, n_permutations, seed)
    mean, std = published
    rows = {f"Gaussian({mean:g}, {std:g})": _chance(Gaussian(mean, std, mean, std, size), draws)}
    for a, b in there:
        of_a, of_b = (models[key][role].scale[[models[key][role].row(layer)]] for key in (a, b))
        seen = _observed(of_a, of_b)
        own = Gaussian(seen["mean_a"], seen["std_a"], seen["mean_b"], seen["std_b"], size)
        null = matched_null(of_a, of_b, orders, "two-sided")
        measured = {"cosine": seen["cosine"], "r": seen["pearson"], "l2": seen["l2"], "p_r": null.pvalue}
        rows[f"{labels[a]} × {labels[b]}"] = _chance(own, draws) | measured
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("vectors")


def _chance(vectors: Gaussian, draws: Draws) -> dict[str, float]:
    closed, simulated = vectors.closed(), vectors.simulated(draws)
    return {f"{name}_{how}": values[name] for name in closed for how, values in
            (("closed", closed), ("simulated", simulated))}  # fmt: skip


def _observed(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> dict[str, float]:
    """Cosine, Pearson and L2 of two single rows, with mean and standard deviation of each."""
    found = {metric: float(pairwise(a, b, metric)[0, 0]) for metric in ("cosine", "pearson", "l2")}
    of_a, of_b = row_statistics(a), row_statistics(b)
    means = {"mean_a": float(of_a.mean[0]), "mean_b": float(of_b.mean[0])}
    return found | means | {"std_a": float(of_a.std[0]), "std_b": float(of_b.std[0])}

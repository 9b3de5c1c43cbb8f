"""This module makes the null of the mean r of matched layers, for many pairs of models at once.

Like ``permutation_test`` it permutes the channels, one permutation shared by all layers; it makes the permutations in
families. All channels are put in one random order, and one model is turned against the other by 1, 2, ... n - 1 places.
The mean r at every turn comes from one Fourier transform a row: 45 pairs take about a second where single permutations
take a minute.

How exact this is. The turns of *one* whole order, with the turn by 0, form a group, and where the channels of the two
models stand together at random a turn more or less changes nothing: the true order is as likely as any turn to give the
largest value, and p is at most t with probability at most t, exactly as for single permutations. Two things are only
nearly as they are there:

- A turn leaves no channel in its place (and, for a prime n, goes through all of them in one cycle), so it is not drawn
  from all permutations but from those of its own cycles. The mean of all turns is therefore -r / (n - 1), and not 0.
- The turns of several orders together, or a part of the last order's, are no group. Each of m whole orders has an exact
  p-value, and the p-value of all lies at most 1 / n below the mean of these. A mean of exact p-values, however they
  depend on each other, is at most t with probability at most 2 t (Rueschendorf 1982; Vovk and Wang 2020), so here the
  guarantee is 2 (t + 1 / n). That is a bound and no estimate: all orders look at the same two models and estimate the
  same share of permutations, and the tests find p uniform and equal to that of single permutations within the error of
  a finite number of permutations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.model_pairs import ModelPair, having_role, with_role
from lnsim.measure.nulls import Floats, NullResult, centred_unit, holm, pvalue

__all__ = ["mean_r_tests", "turned_nulls"]


def mean_r_tests(
    models: Mapping[str, NormVectors],
    pairs: Sequence[ModelPair],
    roles: Sequence[str],
    n_permutations: int,
    seed: int,
) -> pd.DataFrame:
    """The mean r of every pair over its common layers, against permuted channels.

    Returns:
        Columns ``pair``, ``role``, ``r_mean``, ``null_std`` (ddof 0), ``pvalue`` (two-sided) and ``p_holm`` (adjusted
        for the number of pairs in this role).
    """
    frames = []
    for role in roles:
        comparable = with_role(models, pairs, role)
        nulls = turned_nulls(models, comparable, role, n_permutations, seed)
        frames.append(
            pd.DataFrame(
                {
                    "pair": list(nulls),
                    "role": role,
                    "r_mean": [null.statistic for null in nulls.values()],
                    "null_std": [null.null_std for null in nulls.values()],
                    "pvalue": [null.pvalue for null in nulls.values()],
                    "p_holm": holm([null.pvalue for null in nulls.values()]),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def turned_nulls(
    models: Mapping[str, NormVectors], pairs: Sequence[ModelPair], role: str, n_permutations: int, seed: int
) -> dict[str, NullResult]:
    """The mean r of matched layers beside its null, by the pair's label.

    Breaks: which channel of one model stands beside which of the other. Keeps: every value of every layer, and how the
    layers of one model resemble each other.

    Args:
        models: vectors by key.
        pairs: pairs that can be compared in this role; layers are matched by their number.
        role: the role compared.
        n_permutations: how many, at least 1.
        seed: of the random orders; the same seed gives the same orders for every pair of a hidden size.

    p is exact where `n_permutations` is ``hidden_size - 1``, one whole order, and nearly so for more: see the top of
    this module.

    Raises:
        ComparisonError: when there is nothing to permute, a pair has no layer in common, or a layer is constant.
    """
    if n_permutations < 1:
        raise ComparisonError(f"Turning channels {n_permutations} times: expected at least 1 permutation.")
    units = _Units.of(models, role)
    nulls: dict[str, NullResult] = {}
    for size in dict.fromkeys(units.size(pair) for pair in pairs):
        here = [pair for pair in pairs if units.size(pair) == size]
        parts = list(_families(units, here, n_permutations, np.random.default_rng([seed, size])))
        for place, pair in enumerate(here):
            null = np.concatenate([part[place] for part in parts])[:n_permutations]
            nulls[pair.label] = pvalue(units.mean_r(pair), null)
    return {pair.label: nulls[pair.label] for pair in pairs}


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """The vectors of one role without their means and of length 1, by model key, with their layer numbers."""

    rows: Mapping[str, Floats]
    layers: Mapping[str, npt.NDArray[np.int64]]

    @classmethod
    def of(cls, models: Mapping[str, NormVectors], role: str) -> _Units:
        have = having_role(models, role)
        rows = {key: centred_unit(one.scale.astype(np.float64)) for key, one in have.items()}
        return cls(rows, {key: one.layers for key, one in have.items()})

    def size(self, pair: ModelPair) -> int:
        return int(self.rows[pair.a].shape[1])

    def matched(self, pair: ModelPair) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The rows of each model at the layers that both have."""
        common, rows_a, rows_b = np.intersect1d(
            self.layers[pair.a], self.layers[pair.b], assume_unique=True, return_indices=True
        )
        if not len(common):
            raise ComparisonError(f"Matching the layers of {pair.label}: they have no layer number in common.")
        return rows_a, rows_b

    def mean_r(self, pair: ModelPair) -> float:
        rows_a, rows_b = self.matched(pair)
        return float(np.sum(self.rows[pair.a][rows_a] * self.rows[pair.b][rows_b])) / len(rows_a)


def _families(
    units: _Units, pairs: Sequence[ModelPair], n_permutations: int, generator: np.random.Generator
) -> Iterator[list[Floats]]:
    """Mean r of each pair at every turn of one random order, order after order until there are enough permutations."""
    size = units.size(pairs[0])
    keys = dict.fromkeys(key for pair in pairs for key in (pair.a, pair.b))
    matched = [units.matched(pair) for pair in pairs]
    for _ in range(-(-n_permutations // (size - 1))):
        order = generator.permutation(size)
        spectra = {key: np.fft.rfft(units.rows[key][:, order], axis=1) for key in keys}
        yield [
            _mean_r_at_turns(spectra[pair.a][rows_a], spectra[pair.b][rows_b], size)
            for pair, (rows_a, rows_b) in zip(pairs, matched, strict=True)
        ]


def _mean_r_at_turns(spectra_a: npt.NDArray[np.complex128], spectra_b: npt.NDArray[np.complex128], size: int) -> Floats:
    """Shape ``(size - 1,)``: a product of spectra is the correlation at every turn; the turn by 0 is left out."""
    product = np.einsum("lf,lf->f", spectra_a.conj(), spectra_b)
    return np.asarray(np.fft.irfft(product, n=size)[1:] / len(spectra_a))

"""This module makes the null of the mean r of matched layers, for many pairs of models at once.

Like ``permutation_test`` it permutes the channels, one permutation shared by all layers; it makes the permutations in
families. All channels are put in one random order, and one model is turned against the other by 1, 2, ... n - 1 places
(a cyclic shift). The mean r at every turn comes from one Fourier transform a row: 45 pairs take about a second where
single permutations take a minute.

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

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.comparable import Rows, matched_layers
from lnsim.measure.nulls import Floats, NullResult, centred_unit, pvalue

__all__ = ["cyclic_nulls"]

Pair = tuple[str, str]


def cyclic_nulls(
    models: Mapping[str, NormVectors], pairs: Iterable[Pair], role: str, n_permutations: int, seed: int
) -> dict[Pair, NullResult]:
    """The mean r of matched layers beside its null, by the pair.

    Breaks: which channel of one model stands beside which of the other. Keeps: every value of every layer, and how the
    layers of one model resemble each other.

    Args:
        models: vectors by key.
        pairs: keys of two models of one width in this role; layers are matched by their number.
        role: the role compared.
        n_permutations: how many, at least 1.
        seed: of the random orders; the same seed gives the same orders for every pair of a hidden size.

    Returns:
        Two-sided. p is exact where `n_permutations` is ``hidden_size - 1``, one whole order, and nearly so for more:
        see the top of this module.

    Raises:
        ComparisonError: when there is nothing to permute, a pair has no layer in common, or a layer is constant.
    """
    if n_permutations < 1:
        raise ComparisonError(f"Turning channels {n_permutations} times: expected at least 1 permutation.")
    matched = {(a, b): matched_layers(models[a][role], models[b][role])[1:] for a, b in pairs}
    if alone := [f"'{a}' and '{b}'" for (a, b), (rows, _) in matched.items() if not len(rows)]:
        raise ComparisonError(f"Matching the layers of {alone[0]}: they have no layer number in common.")
    keys = dict.fromkeys(key for pair in matched for key in pair)
    units = {key: centred_unit(models[key][role].scale.astype(np.float64)) for key in keys}
    nulls: dict[Pair, NullResult] = {}
    for size in dict.fromkeys(units[a].shape[1] for a, _ in matched):
        here = {pair: rows for pair, rows in matched.items() if units[pair[0]].shape[1] == size}
        parts = list(_families(units, here, n_permutations, np.random.default_rng([seed, size])))
        for (a, b), (rows_a, rows_b) in here.items():
            mean_r = float(np.sum(units[a][rows_a] * units[b][rows_b])) / len(rows_a)
            nulls[a, b] = pvalue(mean_r, np.concatenate([part[a, b] for part in parts])[:n_permutations])
    return {pair: nulls[pair] for pair in matched}


def _families(
    units: Mapping[str, Floats],
    matched: Mapping[Pair, tuple[Rows, Rows]],
    n_permutations: int,
    generator: np.random.Generator,
) -> Iterator[dict[Pair, Floats]]:
    """Mean r of each pair at every turn of one random order, order after order until there are enough permutations."""
    keys = dict.fromkeys(key for pair in matched for key in pair)
    size = units[next(iter(keys))].shape[1]
    for _ in range(-(-n_permutations // (size - 1))):
        order = generator.permutation(size)
        spectra = {key: np.fft.rfft(units[key][:, order], axis=1) for key in keys}
        found = {}
        for (a, b), (rows_a, rows_b) in matched.items():
            # A product of spectra is the correlation at every turn; the turn by 0 is left out.
            product = np.einsum("lf,lf->f", spectra[a][rows_a].conj(), spectra[b][rows_b])
            found[a, b] = np.asarray(np.fft.irfft(product, n=size)[1:] / len(rows_a))
        yield found

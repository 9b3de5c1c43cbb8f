"""This module asks whether printed means and standard deviations over groups of models can come from strangers.

The published run gives, at one layer, the mean and the standard deviation of the cosines of one group of models with
another, and within the other. The shares of the first group are known from other numbers, those of the second are not,
and nor is any r. So they are sought: shares and correlations that bring all four printed numbers within half a digit.
If no pair may have an r beyond a bound, and even the best choice misses, the printed numbers need a pair with more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import least_squares

from lnsim.errors import StudyError
from studies.claims.bounds import Bound, best
from studies.claims.cells import Cell, Vector, cells_of
from studies.claims.corpus import Corpus
from studies.claims.intervals import ANY_COSINE
from studies.claims.published import Published

__all__ = ["Groups", "best_fits", "printed_groups"]

Floats = npt.NDArray[np.float64]

_STARTS, _SEED = 5, 0
_LOWEST_SHARE, _HIGHEST_SHARE = 0.85, 1 - 1e-4
"""Of a norm deep in a model; lower ones occur only in its first layers."""


@dataclass(frozen=True, slots=True)
class Groups:
    """What was printed of two groups of models.

    Args:
        first: share of each model of the first group, by key.
        second: keys of the second.
        printed: mean and standard deviation of the cosines across the groups, then within the second.
        half: half a unit of the last printed digit.
        claims: names of the four claims.
    """

    first: Mapping[str, float]
    second: tuple[str, ...]
    printed: tuple[float, float, float, float]
    half: float
    claims: tuple[str, ...]


def printed_groups(corpus: Corpus) -> Groups:
    """The two groups of which mean and standard deviation are printed, across and within, and nothing of each pair.

    Raises:
        StudyError: when the data has no such set of claims.
    """
    known = {
        (claim.members, claim.statistic): claim
        for claim in sorted(corpus.claims, key=lambda claim: -claim.half)  # the finest print of each wins
        if claim.metric == "cosine" and claim.statistic in ("mean", "std") and " - " not in claim.members
    }
    for members, statistic in known:
        if members.startswith("cross(") and statistic == "std":
            first, second = ({cell_side(cell, side) for cell in _cells(corpus, members)} for side in (0, 1))
            within = f"pairs({','.join(vector.model for vector in _in_order(members, second))})@{members.split('@')[1]}"
            four = [known.get(key) for key in ((members, "mean"), (members, "std"), (within, "mean"), (within, "std"))]
            found = [claim for claim in four if claim]
            if len(found) == len(four):
                shares = {vector.model: _share(corpus.published, vector) for vector in _in_order(members, first)}
                printed = [claim.allowed.middle for claim in found]
                names = tuple(vector.model for vector in _in_order(members, second))
                values = (printed[0], printed[1], printed[2], printed[3])
                return Groups(shares, names, values, found[0].half, tuple(claim.name for claim in found))
    raise StudyError("Looking for groups of models: no claims give mean and std both across and within a group.")


def cell_side(cell: Cell, side: int) -> Vector:
    """The first or the second vector of a pair."""
    return cell.a if side == 0 or cell.b is None else cell.b


def best_fits(groups: Groups, bounds: Sequence[float], labels: Mapping[str, str]) -> pd.DataFrame:
    """How near to the four printed numbers one can come.

    Args:
        groups: what was printed.
        bounds: largest allowed size of r in every pair; after them, with the first bound, one pair at a time is free.
        labels: what readers see of each model, by key.

    Returns:
        One row a case: ``allowed``, ``r`` (the bound, or what the free pair takes), ``miss`` (the largest
        distance to a printed number), ``half_digits`` (the same in units of half the last printed digit) and ``fits``.
    """
    n_pairs = len(groups.first) * len(groups.second) + math.comb(len(groups.second), 2)
    rows = []
    for bound in bounds:
        miss, _ = _fit(groups, np.full(n_pairs, bound), None)
        rows.append(_row(groups, "every pair within the bound", bound, miss))
    for place, name in enumerate(groups.first):
        free = place * len(groups.second)
        miss, r = _fit(groups, np.full(n_pairs, bounds[0]), free)
        rows.append(_row(groups, f"one free: {labels[name]} and one of the second group", r, miss))
    return pd.DataFrame(rows)


def _row(groups: Groups, allowed: str, r: float, miss: float) -> dict[str, object]:
    half_digits = miss / groups.half
    return {"allowed": allowed, "r": r, "miss": miss, "half_digits": half_digits, "fits": half_digits <= 1}


def _fit(groups: Groups, bound: Floats, free: int | None) -> tuple[float, float]:
    """The largest miss of the best of some seeded least-squares fits, and the r of the free pair (else the bound)."""
    shares, targets = np.array(list(groups.first.values())), np.array(groups.printed)
    n, wide = len(groups.second), bound.copy()
    if free is not None:
        wide[free] = 1.0
    low = np.concatenate([np.full(n, _LOWEST_SHARE), -wide])
    high = np.concatenate([np.full(n, _HIGHEST_SHARE), wide])
    generator, found = np.random.default_rng(_SEED), (math.inf, 0.0)
    for _ in range(_STARTS):
        if found[0] < groups.half:
            break  # all four printed numbers are met
        solved = least_squares(
            lambda x: (_aggregates(x, shares, n)[0] - targets) / groups.half,
            low + (high - low) * generator.uniform(0.02, 0.98, len(low)),
            lambda x: _aggregates(x, shares, n)[1] / groups.half,
            bounds=(low, high),
            max_nfev=60,
        )
        miss = float(np.abs(solved.fun).max()) * groups.half
        if miss < found[0]:
            found = (miss, float(solved.x[n + free]) if free is not None else float(bound[0]))
    return found


def _aggregates(x: Floats, shares: Floats, n: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation across and within, shape ``(4,)``, and their slopes, shape ``(4, len(x))``."""
    sides = np.concatenate([shares, x[:n]])
    rest = np.sqrt(1 - sides**2)
    first, second = _places(len(shares), n)
    r = x[n:]
    cosines = sides[first] * sides[second] + r * rest[first] * rest[second]
    slopes = np.zeros((len(r), len(x)))
    slopes[np.arange(len(r)), n + np.arange(len(r))] = rest[first] * rest[second]
    for one, other in ((first, second), (second, first)):
        own = sides[other] - r * rest[other] * sides[one] / rest[one]
        moving = one >= len(shares)
        np.add.at(slopes, (np.flatnonzero(moving), one[moving] - len(shares)), own[moving])
    values, gradients = [], []
    for part in (slice(0, len(shares) * n), slice(len(shares) * n, None)):
        mean, std = cosines[part].mean(), max(float(cosines[part].std()), 1e-12)
        values += [mean, std]
        weights = (cosines[part] - mean) / (std * len(cosines[part]))
        gradients += [slopes[part].mean(axis=0), weights @ slopes[part]]
    return np.array(values), np.array(gradients)


def _places(n_first: int, n_second: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Both sides of each pair, across the groups first, then within the second."""
    across = [(i, n_first + j) for i in range(n_first) for j in range(n_second)]
    within = [(n_first + i, n_first + j) for i in range(n_second) for j in range(i + 1, n_second)]
    pairs = np.array(across + within, dtype=np.intp)
    return pairs[:, 0], pairs[:, 1]


def _share(published: Published, vector: Vector) -> float:
    """From the layer table, else solved from a printed cosine and r with a vector whose share is known.

    Two shares solve it, nearly the same; the larger one is taken.
    """
    cell = Cell(_ROLE, vector)
    if share := best(published.bounds("share", cell)):
        return share.known.middle
    for other, cosine in published.printed.beside("cosine", cell):
        r, share = best(published.printed.of("pearson", Cell(_ROLE, vector, other))), _known_share(published, other)
        if r and share:
            across = r.known.middle * math.sqrt(1 - share.known.middle**2)
            radius, angle = math.hypot(share.known.middle, across), math.atan2(across, share.known.middle)
            turned = math.acos(min(1.0, cosine.known.middle / radius))
            return max(math.cos(angle + turned), math.cos(angle - turned))
    raise StudyError(f"The share of {vector.model} at layer {vector.layer} follows from no published numbers.")


_ROLE = "pre_attention"


def _known_share(published: Published, vector: Vector) -> Bound | None:
    return best([one for one in published.bounds("share", Cell(_ROLE, vector)) if one.known.within(ANY_COSINE)])


def _cells(corpus: Corpus, members: str) -> list[Cell]:
    return cells_of(members, [_ROLE], corpus.n_layers)


def _in_order(members: str, vectors: Iterable[Vector]) -> list[Vector]:
    return sorted(vectors, key=lambda vector: members.index(vector.model))

"""This module finds the numbers that the main findings are computed from, and seeks values that meet printed ones.

A printed table of cosines with what is known of both shares; the values of a "difference in sigma"; the shares of
changed values that a figure shows, by layer. What follows from them is computed in notebook 10.

Groups of models: the published run gives mean and standard deviation of the cosines of one group with another, and
within the other. Shares and correlations are sought that bring all four numbers within half a digit. If no pair may
have an r beyond a bound, and even the best choice misses, the printed numbers need a pair with more.
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
from studies.claims.intervals import ANY_COSINE
from studies.claims.published import Corpus, Published
from studies.claims.rows import Cell, Claim, Vector, cells_of

__all__ = ["Groups", "effect_values", "fit", "printed_cells", "printed_groups", "read_off"]


_LEAST_CELLS = 5

_ROLE = "pre_attention"
"""Of the groups."""


def printed_cells(corpus: Corpus) -> pd.DataFrame:
    """Every cell of which one section prints cosine and r together, and of which the shares are known.

    Only sections that print at least five such cells count as a table.

    Returns:
        Columns ``section``, ``layer_a``, ``layer_b``; of the cosine ``printed``, ``printed_low`` and ``printed_high``
        (all that its digits stand for), and ``stored``, that of a stored output, undefined where there is none; of r
        ``printed_r``, ``r_low``, ``r_high`` and ``stored_r``; of both shares ``share_a_low``, ``share_a_high``,
        ``share_b_low`` and ``share_b_high``.
    """
    by_section: dict[tuple[str, str], list[tuple[Claim, Claim]]] = {}
    for cosine, r in _together(corpus.claims):
        by_section.setdefault((cosine.document, cosine.section), []).append((cosine, r))
    tables = [pairs for pairs in by_section.values() if len(pairs) >= _LEAST_CELLS]
    return pd.DataFrame([row for pairs in tables for cosine, r in pairs for row in _cell(corpus, cosine, r)])


def _together(claims: Sequence[Claim]) -> list[tuple[Claim, Claim]]:
    """Cosine and r of the same single cell, from the same section."""
    single = [claim for claim in claims if not claim.statistic and claim.members.count("@") == 2]
    found = {(c.document, c.section, c.members): c for c in single if c.metric == "pearson"}
    pairs = [(c, found.get((c.document, c.section, c.members))) for c in single if c.metric == "cosine"]
    return [(cosine, r) for cosine, r in pairs if r is not None and _crosses(cosine)]


def _crosses(claim: Claim) -> bool:
    sides = [side.partition("@")[0] for side in claim.members.split(":")]
    return sides[0] != sides[-1]


def _cell(corpus: Corpus, cosine: Claim, r: Claim) -> list[dict[str, object]]:
    """The row of a cell, or none where a share is not known."""
    (cell,) = cells_of(cosine.members, cosine.roles, corpus.n_layers)
    other = cell.b or cell.a
    sides = {"a": cell.a, "b": other}
    shares = {side: best(corpus.published.bounds("share", Cell(cell.role, one))) for side, one in sides.items()}
    ends = {
        f"share_{side}_{end}": getattr(share.known, end)
        for side, share in shares.items() if share for end in ("low", "high")
    }  # fmt: skip
    if len(ends) < 4:
        return []
    return [
        {
            "section": cosine.section, "layer_a": cell.a.layer, "layer_b": other.layer,
            "printed": cosine.allowed.middle, "printed_low": cosine.allowed.low, "printed_high": cosine.allowed.high,
            "stored": _stored(corpus, "cosine", cell), "printed_r": r.allowed.middle, "r_low": r.allowed.low,
            "r_high": r.allowed.high, "stored_r": _stored(corpus, "pearson", cell), **ends,
        }
    ]  # fmt: skip


def _stored(corpus: Corpus, metric: str, cell: Cell) -> float:
    firm = best([bound for bound in corpus.published.printed.of(metric, cell) if bound.firm])
    return firm.known.middle if firm else float("nan")


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
            cells = cells_of(members, [_ROLE], corpus.n_layers)
            first, second = {cell.a for cell in cells}, {cell.b for cell in cells if cell.b}
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


def fit(groups: Groups, bound: float, free: int | None = None) -> tuple[float, float]:
    """How near to the four printed numbers one can come: the best of some seeded least-squares fits.

    Args:
        groups: what was printed.
        bound: largest allowed size of r in every pair.
        free: the place of a pair whose r may be anything, or None; pairs across the groups come first, by the models
            of the first group.

    Returns:
        The bound, or the r that the free pair takes, and the largest distance to a printed number.
    """
    shares, targets = np.array(list(groups.first.values())), np.array(groups.printed)
    n = len(groups.second)
    wide = np.full(len(shares) * n + math.comb(n, 2), bound)
    if free is not None:
        wide[free] = 1.0
    low = np.concatenate([np.full(n, _LOWEST_SHARE), -wide])
    high = np.concatenate([np.full(n, _HIGHEST_SHARE), wide])
    generator, taken, least = np.random.default_rng(_SEED), bound, math.inf
    for _ in range(_STARTS):
        if least < groups.half:
            break  # all four printed numbers are met
        solved = least_squares(
            lambda x: (_aggregates(x, shares, n)[0] - targets) / groups.half,
            low + (high - low) * generator.uniform(0.02, 0.98, len(low)),
            lambda x: _aggregates(x, shares, n)[1] / groups.half,
            bounds=(low, high),
            max_nfev=60,
        )
        miss = float(np.abs(solved.fun).max()) * groups.half
        if miss < least:
            least, taken = miss, bound if free is None else float(solved.x[n + free])
    return taken, least


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


def _known_share(published: Published, vector: Vector) -> Bound | None:
    return best([one for one in published.bounds("share", Cell(_ROLE, vector)) if one.known.within(ANY_COSINE)])


def _in_order(members: str, vectors: Iterable[Vector]) -> list[Vector]:
    return sorted(vectors, key=lambda vector: members.index(vector.model))


def effect_values(corpus: Corpus) -> tuple[Claim, Floats, Floats, float]:
    """The first claim that gives a difference of means in standard deviations, and the cosines of its two sets; then
    that of the first set's pair at the layer which the second set takes as its baseline.

    Raises:
        StudyError: when there is no such claim, or not all of its values were published.
    """
    claim = next((claim for claim in corpus.claims if claim.statistic == "effect"), None)
    if claim is None:
        raise StudyError("Looking for a difference in standard deviations: no claim gives one.")
    sets = [cells_of(part, claim.roles, corpus.n_layers) for part in claim.members.split(" - ")]
    first, second = (np.array(_values(corpus, cells)) for cells in sets)
    pair, layer = sets[0][0], sets[1][0].a.layer
    other = pair.b or pair.a
    (baseline,) = _values(corpus, [Cell(pair.role, Vector(pair.a.model, layer), Vector(other.model, layer))])
    return claim, first, second, baseline


def _values(corpus: Corpus, cells: Sequence[Cell]) -> list[float]:
    found = [best(corpus.published.bounds("cosine", cell)) for cell in cells]
    if len(known := [bound.known.middle for bound in found if bound]) < len(cells):
        raise StudyError("Taking a difference in standard deviations apart: not all of its values were published.")
    return known


def read_off(corpus: Corpus) -> pd.DataFrame:
    """The layers of which a share of changed values was read off a figure, by depth.

    Returns:
        Columns ``layer``, ``mean`` and ``std`` of γ as published, ``read_off`` (the share, in per cent) and
        ``mean_change``, the published mean absolute difference; undefined where there is none.

    Raises:
        StudyError: when the data lacks what this needs.
    """
    cells = _read_off(corpus, "changed_percent")
    frame = pd.DataFrame({"layer": [cell.a.layer for cell in cells]})
    for name in ("mean", "std"):
        frame[name] = [_known(corpus, name, Cell(cell.role, cell.a)) for cell in cells]
    return frame.assign(
        read_off=[_known(corpus, "changed_percent", cell) for cell in cells],
        mean_change=[_stored(corpus, "mean_abs_diff", cell) for cell in cells],
    )


def _read_off(corpus: Corpus, metric: str) -> list[Cell]:
    """The single layers of which a value was read off the figure, by depth."""
    facts = [fact for fact in corpus.published.printed.facts if (fact.metric, fact.statistic) == (metric, "")]
    cells = [cell for fact in facts for cell in cells_of(fact.members, fact.roles, corpus.n_layers)]
    if not cells:
        raise StudyError(f"What rounding does: no '{metric}' of any layer was published.")
    return sorted(cells, key=lambda cell: cell.a.layer)


def _known(corpus: Corpus, metric: str, cell: Cell) -> float:
    found = best([bound for bound in corpus.published.printed.of(metric, cell) if bound.firm])
    if found is None:
        raise StudyError(f"What rounding does: no '{metric}' was published for {cell.layers} of {cell.a.model}.")
    return found.known.middle

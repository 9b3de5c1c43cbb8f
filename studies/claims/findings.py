"""This module does the arithmetic of the audit's four main findings.

A printed table of cosines: a cosine follows from two shares and one r, so with the shares known, even r from -1 to 1
leaves only an interval, and a cell outside of it was not measured on vectors with these means and standard deviations.

Groups of models: the published run gives mean and standard deviation of the cosines of one group with another, and
within the other. Shares and correlations are sought that bring all four numbers within half a digit. If no pair may
have an r beyond a bound, and even the best choice misses, the printed numbers need a pair with more.

A "difference in sigma": divided by the spread of four chosen values, a difference is a size of effect, in units of one
that hardly spreads, and no significance: no reshuffling of the eight can give a p-value below one in seventy.

Rounding: values are stored on a grid whose step grows with the value, and γ grows with depth. So the same update,
rounded to BF16, must change fewer values the deeper the layer. Here γ is a normal sample, in closed form its quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq, least_squares
from scipy.special import ndtri

from lnsim.errors import StudyError
from lnsim.measure.grid import expected_change, spacing
from studies.claims import intervals
from studies.claims.bounds import Bound, best
from studies.claims.intervals import ANY_COSINE, HIDDEN_SIZE
from studies.claims.published import Corpus, Published
from studies.claims.rows import Cell, Claim, Vector, cells_of

__all__ = [
    "Groups",
    "best_fits",
    "by_rounding_alone",
    "effect_claim",
    "effect_sizes",
    "least_pvalue",
    "printed_groups",
    "printed_table",
]


_LEAST_CELLS = 5

_ROLE = "pre_attention"
"""Of the groups."""


def printed_table(corpus: Corpus) -> pd.DataFrame:
    """Every cell of which one section prints cosine and r together, and of which the shares are known.

    Only sections that print at least five such cells count as a table.

    Returns:
        Columns ``section``, ``layer_a``, ``layer_b``, ``printed``, ``least`` and ``most`` (of the cosine, for any r),
        ``possible``, ``with_printed_r`` (the cosine for the printed r), ``stored`` (of a stored output;
        undefined where there is none), ``printed_r`` and ``stored_r``.
    """
    by_section: dict[tuple[str, str], list[tuple[Claim, Claim]]] = {}
    for cosine, r in _together(corpus.claims):
        by_section.setdefault((cosine.document, cosine.section), []).append((cosine, r))
    tables = [pairs for pairs in by_section.values() if len(pairs) >= _LEAST_CELLS]
    rows = [row for pairs in tables for cosine, r in pairs for row in _beside_possible(corpus, cosine, r)]
    return pd.DataFrame(rows)


def _together(claims: Sequence[Claim]) -> list[tuple[Claim, Claim]]:
    """Cosine and r of the same single cell, from the same section."""
    single = [claim for claim in claims if not claim.statistic and claim.members.count("@") == 2]
    found = {(c.document, c.section, c.members): c for c in single if c.metric == "pearson"}
    pairs = [(c, found.get((c.document, c.section, c.members))) for c in single if c.metric == "cosine"]
    return [(cosine, r) for cosine, r in pairs if r is not None and _crosses(cosine)]


def _crosses(claim: Claim) -> bool:
    sides = [side.partition("@")[0] for side in claim.members.split(":")]
    return sides[0] != sides[-1]


def _beside_possible(corpus: Corpus, cosine: Claim, r: Claim) -> list[dict[str, object]]:
    (cell,) = cells_of(cosine.members, cosine.roles, corpus.n_layers)
    other = cell.b or cell.a
    sides = [best(corpus.published.bounds("share", Cell(cell.role, side))) for side in (cell.a, other)]
    shares = [side.known for side in sides if side]
    if len(shares) < len(sides):
        return []
    anyhow, given = intervals.cosine(*shares), intervals.cosine(shares[0], shares[1], r.allowed)
    stored = {name: _stored(corpus, name, cell) for name in ("cosine", "pearson")}
    return [
        {
            "section": cosine.section, "layer_a": cell.a.layer, "layer_b": other.layer,
            "printed": cosine.allowed.middle, "least": anyhow.low, "most": anyhow.high,
            "possible": cosine.allowed.meets(anyhow), "with_printed_r": given.middle, "stored": stored["cosine"],
            "printed_r": r.allowed.middle, "stored_r": stored["pearson"],
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


def _known_share(published: Published, vector: Vector) -> Bound | None:
    return best([one for one in published.bounds("share", Cell(_ROLE, vector)) if one.known.within(ANY_COSINE)])


def _in_order(members: str, vectors: Iterable[Vector]) -> list[Vector]:
    return sorted(vectors, key=lambda vector: members.index(vector.model))


def effect_claim(corpus: Corpus) -> Claim:
    """The first claim that gives a difference of means in standard deviations; StudyError when there is none."""
    for claim in corpus.claims:
        if claim.statistic == "effect":
            return claim
    raise StudyError("Looking for a difference in standard deviations: no claim gives one.")


def effect_sizes(corpus: Corpus) -> pd.DataFrame:
    """The printed difference, divided in each of the ways that are open, and with the layer that was left out.

    Returns:
        Columns ``divided_by``, ``n_first``, ``n_second``, ``mean_first``, ``mean_second`` and ``effect``.
    """
    claim = effect_claim(corpus)
    first, second = (
        _values(corpus, cells_of(part, claim.roles, corpus.n_layers)) for part in claim.members.split(" - ")
    )
    whole = _values(corpus, _with_baseline(claim, corpus))
    rows = [
        _divided("pooled std, ddof 0", first, second, _pooled(first, second, 0)),
        _divided("pooled std, ddof 1", first, second, _pooled(first, second, 1)),
        _divided("std of the second set, ddof 0", first, second, float(np.std(second))),
        _divided("std of the first set, ddof 0", first, second, float(np.std(first))),
        _divided("pooled, baseline layer in both sets", whole, second, _pooled(whole, second, 0)),
    ]
    return pd.DataFrame(rows)


def least_pvalue(corpus: Corpus) -> float:
    """The smallest p-value that any reshuffling of these values between the two sets can give."""
    claim = effect_claim(corpus)
    sizes = [len(cells_of(part, claim.roles, corpus.n_layers)) for part in claim.members.split(" - ")]
    return 1 / math.comb(sum(sizes), sizes[0])


def _with_baseline(claim: Claim, corpus: Corpus) -> list[Cell]:
    """The first set with the same pair at the layer that the second set takes as its baseline."""
    first, second = (cells_of(part, claim.roles, corpus.n_layers) for part in claim.members.split(" - "))
    layer, pair = second[0].a.layer, first[0]
    other = pair.b or pair.a
    return [Cell(pair.role, Vector(pair.a.model, layer), Vector(other.model, layer)), *first]


def _values(corpus: Corpus, cells: Sequence[Cell]) -> list[float]:
    found = [best(corpus.published.bounds("cosine", cell)) for cell in cells]
    if len(known := [bound.known.middle for bound in found if bound]) < len(cells):
        raise StudyError("Taking a difference in standard deviations apart: not all of its values were published.")
    return known


def _pooled(first: Sequence[float], second: Sequence[float], ddof: int) -> float:
    return math.sqrt((float(np.var(first, ddof=ddof)) + float(np.var(second, ddof=ddof))) / 2)


def _divided(divided_by: str, first: Sequence[float], second: Sequence[float], std: float) -> dict[str, object]:
    means = {"mean_first": float(np.mean(first)), "mean_second": float(np.mean(second))}
    effect = (means["mean_first"] - means["mean_second"]) / std
    return {"divided_by": divided_by, "n_first": len(first), "n_second": len(second), **means, "effect": effect}


def by_rounding_alone(corpus: Corpus) -> pd.DataFrame:
    """The share of changed values that was read off the figure, beside what an update of one size gives.

    The size is fitted in the first layer alone, once to its mean absolute difference and once to its share of changed
    values; no other layer is fitted.

    Returns:
        One row a layer that was read off: ``layer``, ``mean`` and ``std`` of γ as published, ``step`` (median, of the
        BF16 grid), ``read_off`` (per cent), ``from_mean_change`` and ``from_share`` (per cent expected, by the two
        sizes). ``attrs`` holds both sizes, ``size_from_mean_change`` and ``size_from_share``.

    Raises:
        StudyError: when the data lacks what this needs.
    """
    cells = _read_off(corpus, "changed_percent")
    stored = np.stack([_sample(corpus, cell) for cell in cells])
    shares = [_known(corpus, "changed_percent", cell) for cell in cells]
    # E|x| of a normal update is sd sqrt(2/pi); rounding to the grid leaves it as it is where steps are finer.
    by_mean = _known(corpus, "mean_abs_diff", cells[0]) * math.sqrt(math.pi / 2)
    by_share = float(brentq(lambda sd: 100 * float(expected_change(stored[:1], sd)[0]) - shares[0], 1e-7, 1e-1))
    frame = pd.DataFrame(
        {
            "layer": [cell.a.layer for cell in cells],
            "mean": [_moment(corpus, "mean", cell) for cell in cells],
            "std": [_moment(corpus, "std", cell) for cell in cells],
            "step": np.median(spacing(stored), axis=1),
            "read_off": shares,
            "from_mean_change": 100 * expected_change(stored, by_mean),
            "from_share": 100 * expected_change(stored, by_share),
        }
    )
    frame.attrs |= {"size_from_mean_change": by_mean, "size_from_share": by_share}
    return frame


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


def _moment(corpus: Corpus, name: str, cell: Cell) -> float:
    return _known(corpus, name, Cell(cell.role, cell.a))


def _sample(corpus: Corpus, cell: Cell) -> npt.NDArray[ml_dtypes.bfloat16]:
    """γ of a layer as quantiles of a normal distribution, on the grid that it is stored on."""
    at = (np.arange(HIDDEN_SIZE) + 0.5) / HIDDEN_SIZE
    values = _moment(corpus, "mean", cell) + _moment(corpus, "std", cell) * ndtri(at)
    return np.asarray(values, dtype=ml_dtypes.bfloat16)

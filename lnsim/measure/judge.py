"""This module judges pairs of models: the rows that take part, one test a pair, Holm over the pairs, one sentence each.

Only norms of the residual stream take part. Left out, and named, are per-head norms, norms whose use is not known,
norms without a pattern, and norms of two towers whose channels have an order of their own in both models: by the table
of fixed positions, or because γ itself shows it (``channel_order``). One model in random order is enough for the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix
from lnsim.measure.channel_order import FIRES, FIXED_POSITIONS, channel_order
from lnsim.measure.comparable import common_roles, matched_layers, same_bits
from lnsim.measure.metrics import pairwise
from lnsim.measure.nulls import Floats, holm
from lnsim.measure.pair_test import MOST, PairTest, Stack, levels_for, pair_test, r_interval
from lnsim.measure.verdict import STRENGTHS, Evidence, sentence, verdict

__all__ = ["Judgement", "Rows", "judge", "matched_rows", "why_apart"]

_PER_HEAD = frozenset({"q_norm", "k_norm"})
"""Their channels are those of a head, and rotary positions turn channels of the same number at the same speed in every
model; so strangers may agree in them, and the permutation test is not exact."""


def why_apart(role: str) -> str:
    """Why a role takes no part in a verdict; an empty text for the norms of the residual stream, which do."""
    if role.rpartition("/")[2] in _PER_HEAD:
        return "rotary positions treat a head's channels alike in all models"
    return "what it acts on is not known" if role.startswith("other") else ""


@dataclass(frozen=True, slots=True)
class Rows:
    """What of two models takes part in a verdict.

    Args:
        stacks: matched rows of a and b, one pair of arrays a hidden size.
        roles: those that take part, one of each model.
        apart: by what was left out, why.
        ordered: whether something was left out because the channels of both have an order of their own.
        places: layers of the shorter stack whose best partner has the ``same`` number, lies ``elsewhere``, or that are
            ``without``, over the roles that take part.
        one_length: whether both stacks have the same layer numbers in all of them.
        identical: whether all stored bits, and the layers, are the same in every role asked for.
    """

    stacks: tuple[Stack, ...]
    roles: tuple[tuple[str, str], ...]
    apart: Mapping[str, str]
    ordered: bool
    places: Mapping[str, int]
    one_length: bool
    identical: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one pair.

    Args:
        key: one of ``verdict.RULES``.
        obstacle: what stands in the way of a comparison, where the key is ``not_comparable``.
        test: of the pair, None where nothing could be tested.
        p_adjusted: its p, adjusted over the pairs judged together (Holm 1979); None without a test.
        r_low: with r_high the ends of an interval of r that holds 95 % of draws of the channels; None without a test.
        rows: what took part.
    """

    key: str
    obstacle: str
    test: PairTest | None
    p_adjusted: float | None
    r_low: float | None
    r_high: float | None
    rows: Rows | None

    @property
    def strength(self) -> str:
        """How strong the sentence is: one of the values of ``verdict.STRENGTHS``."""
        return STRENGTHS[self.key]

    def sentence(self, replica: bool = False) -> str:
        """The verdict in words; of a replica it begins by saying that the vectors are synthetic."""
        return sentence(self.key, self.obstacle, replica)


def judge(
    pairs: Sequence[tuple[NormVectors, NormVectors] | tuple[NormVectors, NormVectors, Sequence[tuple[str, str]]]],
    most: int = MOST,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, planned: None,
) -> list[Judgement]:
    """Judge pairs that were asked about together, in the order given.

    Args:
        pairs: two models, and the roles to set against each other where those are not the ones of the same name.
        most: permutations of the channels that one pair may cost.
        seed: of the permutations.
        progress: told how many pairs are tested of how many.
    """
    levels, found = levels_for(len(pairs)), []
    for place, (a, b, *roles) in enumerate(pairs):
        progress(place, len(pairs))
        found.append(_measured(a, b, roles[0] if roles else None, levels, most, seed))
    progress(len(pairs), len(pairs))
    tested = [one for _, _, one, _ in found if one is not None]
    adjusted = iter(holm([one.pvalue for one in tested]))
    return [
        _judged(rows, obstacle, test, ends, next(adjusted) if test else None, most)
        for rows, obstacle, test, ends in found
    ]


def matched_rows(a: NormVectors, b: NormVectors, roles: Iterable[tuple[str, str]] | None = None, seed: int = 0) -> Rows:
    """The rows of two models that take part in a verdict.

    Args:
        a: one model.
        b: the other.
        roles: one of each model, to be set against each other; those of the same name where None.
        seed: of the permutations that look for an order of the channels.

    Raises:
        ComparisonError: when no norm of one can be set against a norm of the other.
    """
    wanted = [(role, role) for role in common_roles(a, b)] if roles is None else list(roles)
    apart: dict[str, str] = {}
    taken: list[tuple[tuple[str, str], Stack]] = []
    for both in wanted:
        name = both[0] if both[0] == both[1] else " × ".join(both)
        if lacking := [one for one, role in zip((a, b), both, strict=True) if role not in one.roles]:
            apart[name] = f"{' and '.join(repr(one.source) for one in lacking)} has no such norm"
            continue
        rows, why = _rows(a[both[0]], b[both[1]])
        if why := next(filter(None, map(why_apart, both)), "") or why:
            apart[name] = why
        if rows is not None and not any(map(why_apart, both)):
            taken.append((both, rows))
    kept, ordered = _in_random_order(a, b, taken, seed)
    apart |= {" × ".join(dict.fromkeys(both)): "the channels of both have an order of their own" for both in ordered}
    sizes = dict.fromkeys(rows[0].shape[1] for _, rows in kept)
    stacks = tuple(
        tuple(
            np.concatenate(side) for side in zip(*(rows for _, rows in kept if rows[0].shape[1] == size), strict=True)
        )
        for size in sizes
    )
    names = tuple(both for both, _ in kept)
    every = [(a[one], b[other]) for one, other in wanted if one in a.roles and other in b.roles]
    return Rows(
        stacks, names, apart, bool(ordered), _places([(a[one], b[other]) for one, other in names]),
        all(np.array_equal(a[one].layers, b[other].layers) for one, other in names),
        bool(every) and all(same_bits(*both) for both in every),
    )  # fmt: skip


def _rows(a: RoleVectors, b: RoleVectors) -> tuple[Stack | None, str]:
    """Matched rows with a pattern in both, and what was left out."""
    if a.hidden_size != b.hidden_size:
        return None, f"the hidden sizes are {a.hidden_size} and {b.hidden_size}"
    layers, rows_a, rows_b = matched_layers(a, b)
    one, other = a.scale[rows_a].astype(np.float64), b.scale[rows_b].astype(np.float64)
    alive = (np.ptp(one, axis=1) > 0) & (np.ptp(other, axis=1) > 0) & np.isfinite(one + other).all(axis=1)
    dead = layers[~alive].tolist()
    why = (
        f"γ has no pattern in layer {', '.join(map(str, dead))}"
        if dead
        else ""
        if len(layers)
        else "no layer number in common"
    )
    return ((one[alive], other[alive]) if alive.any() else None), why


def _in_random_order(
    a: NormVectors, b: NormVectors, taken: Sequence[tuple[tuple[str, str], Stack]], seed: int
) -> tuple[list[tuple[tuple[str, str], Stack]], list[tuple[str, str]]]:
    """Those with channels in random order in one of the two models, and the names of the others; tower by tower."""
    kept, ordered = [], []
    towers = [(a[both[0]].tower, b[both[1]].tower) for both, _ in taken]
    for pair in dict.fromkeys(towers):
        here = [one for one, tower in zip(taken, towers, strict=True) if tower == pair]
        if all(
            _own_order(one, tower, [rows[side] for _, rows in here], seed)
            for side, (one, tower) in enumerate(zip((a, b), pair, strict=True))
        ):
            ordered += [both for both, _ in here]
        else:
            kept += here
    return kept, ordered


def _own_order(model: NormVectors, tower: str, rows: Sequence[Floats], seed: int) -> bool:
    fixed = FIXED_POSITIONS.get(model.model_type or "", ())
    if tower in fixed or "" in fixed:
        return True
    sizes = {part.shape[1] for part in rows}
    return any(
        size >= 16 and channel_order(np.concatenate([part for part in rows if part.shape[1] == size]), seed) <= FIRES
        for size in sizes
    )


def _places(pairs: Iterable[tuple[RoleVectors, RoleVectors]]) -> dict[str, int]:
    counts = dict.fromkeys(("same", "elsewhere", "without"), 0)
    for a, b in pairs:
        values = pairwise(a.scale, b.scale, "pearson")
        rows, columns = np.isfinite(values).any(axis=1), np.isfinite(values).any(axis=0)
        found = LayerMatrix(values[np.ix_(rows, columns)], a.layers[rows], b.layers[columns]).partner_counts()
        counts = {name: number + found[name] for name, number in counts.items()}
    return counts


def _measured(
    a: NormVectors,
    b: NormVectors,
    roles: Sequence[tuple[str, str]] | None,
    levels: Sequence[float],
    most: int,
    seed: int,
) -> tuple[Rows | None, str, PairTest | None, tuple[float, float] | None]:
    try:
        rows = matched_rows(a, b, roles, seed)
    except ComparisonError as error:
        return None, str(error).rstrip("."), None, None
    if not rows.stacks:
        why = "; ".join(f"{role}: {reason}" for role, reason in rows.apart.items())
        return rows, f"no norm of the residual stream can be tested ({why})", None, None
    return rows, "", pair_test(rows.stacks, levels, most, seed), r_interval(rows.stacks, seed)


def _judged(
    rows: Rows | None,
    obstacle: str,
    test: PairTest | None,
    ends: tuple[float, float] | None,
    p: float | None,
    most: int,
) -> Judgement:
    r_low, r_high = ends or (None, None)
    if rows is None:
        return Judgement("not_comparable", obstacle, None, None, None, None, None)
    alike = Evidence(
        pvalue=None, identical=rows.identical, ordered=rows.ordered and not rows.stacks, one_length=rows.one_length,
        same=rows.places["same"], elsewhere=rows.places["elsewhere"], without=rows.places["without"],
    )  # fmt: skip
    if test is None or p is None:
        key = verdict(alike)
        return Judgement(key, obstacle if key == "not_comparable" else "", None, None, None, None, rows)
    steps = p / test.pvalue
    high, least = min(1.0, test.high * steps), steps / (1 + most)
    evidence = replace(alike, pvalue=p, low=test.low * steps, high=high, least=least)
    return Judgement(verdict(evidence), "", test, p, r_low, r_high, rows)

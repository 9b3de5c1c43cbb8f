"""This module judges pairs of models: the rows that take part, one test a pair, Holm over the pairs, one sentence each.

Only norms of the residual stream take part. Left out, and named, are per-head norms, norms whose use is not known,
norms without a pattern, and norms of two towers whose channels have an order of their own in both models: by the table
of fixed positions, or because γ itself shows it (``channel_order``). One model in random order is enough for the test.

The sentence is one out of a fixed set: evidence in, its key out; the first rule of ``RULES`` that fits is taken. What
is on record about the two models is no part of the evidence, so it cannot move the choice. No sentence says how a
signal came about: the vectors of a copy, of a fine-tune and of two children of one base differ in nothing that is
measured here.

*Strong*: p, adjusted over the pairs that were asked about together, is at most ``STRONG``; *weak*: at most ``WEAK``. p
is that of ``pair_test``: one test a pair, the larger p of r and ranks. A *partner* is a layer of the other model whose
r is at least ``alignment.PARTNER_FROM``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from lnsim.checkpoint.families.table import has_fixed_positions
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors, RoleVectors, key_of
from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix
from lnsim.measure.channel_order import FIRES, channel_order
from lnsim.measure.comparable import (
    by_reason,
    common_roles,
    layer_text,
    matched_layers,
    same_bits,
    same_gamma,
    two_roles,
    two_widths,
)
from lnsim.measure.metrics import pairwise
from lnsim.measure.nulls import Floats, holm
from lnsim.measure.pair_test import LEVELS, MOST, STRONG, WEAK, PairTest, Stack, levels_for, pair_tests, r_interval
from lnsim.measure.parted_test import parted_test
from lnsim.words import TEXTS

READINGS: str = TEXTS["verdicts"]["readings"]
"""What a shared-origin signal may come from, whatever its strength; none of them can be told from another here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured on one pair of models."""

    # of the pair, adjusted over the pairs that were asked about together; low and high are the ends of the
    # interval that the permutations drawn allow, adjusted likewise. None where nothing was tested.
    pvalue: float | None
    low: float = 0.0
    high: float = 1.0
    least: float = 0.0  # the smallest adjusted p that the permutations could have given
    ordered: bool = False  # whether the channels of both models have an order of their own
    identical: bool = False  # whether all stored bits, and the layers, are the same
    converted: bool = False  # whether all values are, once both are F32
    same: int = 0  # layers of the shorter stack whose best partner has the same number; elsewhere and without likewise
    elsewhere: int = 0
    without: int = 0
    one_length: bool = True  # whether both stacks have the same layer numbers

    def __post_init__(self) -> None:
        p = 1.0 if self.pvalue is None else self.pvalue
        if not 0 < p <= 1 or not 0 <= self.low <= self.high or min(self.same, self.elsewhere, self.without) < 0:
            raise ComparisonError(f"Judging a pair: expected p above 0 and up to 1, and counts; found {self}.")

    @property
    def open(self) -> bool:
        """Whether the interval of p lies on both sides of a level; where no permutation reached r, whether p, which is
        then the smallest that so many could give, is above the strong level."""
        if self.low == 0.0:
            return (self.pvalue or 1.0) > STRONG and self.high > STRONG
        return any(self.low <= level < self.high for level in LEVELS)

    @property
    def in_step(self) -> bool:
        """In equal stacks, most layers have their best partner at the same number."""
        return self.one_length and self.same > self.elsewhere + self.without

    def at_most(self, level: float) -> bool:
        """Whether p is there and at most so much."""
        return self.pvalue is not None and self.pvalue <= level


_HOLDS: Mapping[str, Callable[[Evidence], bool]] = {
    "identical": lambda found: found.identical,
    "converted": lambda found: found.converted,
    "own_order": lambda found: found.ordered,
    "not_comparable": lambda found: found.pvalue is None,
    "too_few": lambda found: found.least > WEAK,
    "border": lambda found: found.open,
    "one_by_one": lambda found: found.at_most(STRONG) and found.in_step,
    "rearranged": lambda found: found.at_most(STRONG) and found.same + found.elsewhere > 0,
    "unplaced": lambda found: found.at_most(STRONG),
    "weak": lambda found: found.at_most(WEAK),
    "none": lambda found: True,
}
"""The rule of each sentence, in the order in which they are tried; what they say stands in ``words.toml``."""

_TOLD: Mapping[str, Mapping[str, str]] = {key: TEXTS["verdicts"][key] for key in _HOLDS}
RULES: Mapping[str, str] = {key: one["where"] for key, one in _TOLD.items()}  # when each sentence is chosen, in words
STRENGTHS: Mapping[str, str] = {key: one["strength"] for key, one in _TOLD.items()}  # how strong a sentence is
# Every sentence by its key, in which ``{why}`` is what stands in the way of a comparison.
SENTENCES: Mapping[str, str] = {key: one["says"].replace("{readings}", READINGS) for key, one in _TOLD.items()}
# Keys of the sentences that speak of a signal that strangers do not give.
SIGNALS = tuple(key for key, strength in STRENGTHS.items() if strength in ("identical", "strong"))

_REPLICA = "REPLICA, synthetic vectors. "


def sentence(key: str, obstacle: str = "", replica: bool = False) -> str:
    """The sentence of a verdict, with what stands in the way of one; of a replica it first says: synthetic."""
    return (_REPLICA if replica else "") + SENTENCES[key].format(why=obstacle)


def verdict(evidence: Evidence) -> str:
    """The key of the first sentence whose rule fits, one of RULES."""
    return next(key for key, holds in _HOLDS.items() if holds(evidence))


Pair = tuple[NormVectors, NormVectors] | tuple[NormVectors, NormVectors, Sequence[tuple[str, str]]]
"""Two models, and the roles to set against each other where those are not the ones of the same name."""

_Taken = tuple[tuple[str, str], Stack]

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
    """What of two models takes part in a verdict."""

    stacks: tuple[Stack, ...]  # matched rows of a and b, one pair of arrays a hidden size
    roles: tuple[tuple[str, str], ...]  # those that take part, one of each model
    apart: Mapping[str, str]  # by what was left out, why
    ordered: bool  # whether something was left out because the channels of both have an order of their own
    # layers of the shorter stack whose best partner has the ``same`` number, lies ``elsewhere``, or that are
    # ``without``, over the roles that take part
    places: Mapping[str, int]
    one_length: bool  # whether both stacks have the same layer numbers in all of them
    identical: bool  # whether the stored bits, and the layers, are the same in every role asked for; one has a pattern
    obstacle: str = ""  # why nothing can be tested; empty where something can
    converted: bool = False  # whether the values are the same, after conversion to F32


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one pair."""

    key: str  # one of ``RULES``
    obstacle: str  # what stands in the way of a comparison, where the key is ``not_comparable``
    test: PairTest | None  # of the pair, None where nothing could be tested
    p_adjusted: float | None  # its p, adjusted over the pairs judged together (Holm 1979); None without a test
    rows: Rows  # what took part, and what did not

    def interval(self) -> tuple[float | None, float | None]:
        """The ends of an interval of r that holds 95 % of draws of the channels; None without a test."""
        return (None, None) if self.test is None else r_interval(self.rows.stacks, self.test.seed)

    @property
    def strength(self) -> str:
        """How strong the sentence is: one of the values of ``STRENGTHS``."""
        return STRENGTHS[self.key]

    def sentence(self, replica: bool = False) -> str:
        """The verdict in words; of a replica it begins by saying that the vectors are synthetic."""
        return sentence(self.key, self.obstacle, replica)


def judge(
    pairs: Sequence[Pair], most: int = MOST, seed: int = 0, progress: Progress = no_progress, n_tests: int | None = None
) -> list[Judgement]:
    """Judge pairs that were asked about together, in the order given; one may cost `most` permutations of the channels.

    `n_tests` is for pairs that are the best of so many: p is adjusted over all of these, by ``parted_test``.
    """
    rows = [matched_rows(a, b, roles[0] if roles else None, seed) for a, b, *roles in pairs]
    stacks = [one.stacks for one in rows if one.stacks]
    if n_tests is None:
        found = pair_tests(stacks, levels_for(len(stacks)), most, seed, progress)
    else:
        found = []
        for one in stacks:
            found.append(parted_test(one, n_tests, most, seed))
            progress(len(found), len(stacks))
    tests = iter(found)
    return judged(rows, [next(tests) if one.stacks else None for one in rows], n_tests)


def judged(rows: Sequence[Rows], tests: Sequence[PairTest | None], n_tests: int | None = None) -> list[Judgement]:
    """The verdicts on pairs that were asked about together: Holm over those tested, then a sentence for each.

    A test is None where nothing can be tested. `n_tests` is for where more were asked about, and passed over as
    strangers.
    """
    adjusted = iter(holm([test.pvalue for test in tests if test], n_tests))
    return [_judged(one, test, next(adjusted) if test else None) for one, test in zip(rows, tests, strict=True)]


def matched_rows(a: NormVectors, b: NormVectors, roles: Iterable[tuple[str, str]] | None = None, seed: int = 0) -> Rows:
    """The rows of two models that take part in a verdict: of these roles of each, or of those of the same name.

    `seed` is that of the permutations that look for an order of the channels.
    """
    wanted = list(roles or [])
    if roles is None:
        try:
            wanted = [(role, role) for role in common_roles(a, b)]
        except ComparisonError as error:
            return Rows((), (), {}, False, {}, True, False, str(error).partition("': ")[2].rstrip("."))
    apart: dict[str, str] = {}
    taken: list[_Taken] = []
    for both in wanted:
        rows, why = _rows(a, b, both)
        if why:
            apart[two_roles(both)] = why
        if rows is not None:
            taken.append((both, rows))
    kept, ordered = _in_random_order(a, b, taken, seed)
    apart |= {two_roles(both): "the channels of both have an order of their own" for both in ordered}
    every = [(a[one], b[other]) for one, other in wanted if _has(a, one) and _has(b, other)]
    matched = [(a[one], b[other]) for (one, other), _ in kept]
    stacks = _stacked([rows for _, rows in kept])
    return Rows(
        stacks=stacks,
        roles=tuple(both for both, _ in kept),
        apart=apart,
        ordered=bool(ordered),
        places=_places(matched),
        one_length=all(np.array_equal(one.layers, other.layers) for one, other in matched),
        identical=bool(taken) and all(same_bits(*both) for both in every),
        converted=bool(taken) and all(same_gamma(*both) for both in every),
        obstacle="" if stacks else by_reason(apart),
    )


def _stacked(rows: Sequence[Stack]) -> tuple[Stack, ...]:
    """One stack a hidden size."""
    by_size: dict[int, list[Stack]] = {}
    for one in rows:
        by_size.setdefault(one[0].shape[1], []).append(one)
    return tuple(
        (np.concatenate([a for a, _ in some]), np.concatenate([b for _, b in some])) for some in by_size.values()
    )


def _has(model: NormVectors, role: str) -> bool:
    return key_of(role, model.main_tower) in model.roles


def _rows(a: NormVectors, b: NormVectors, both: tuple[str, str]) -> tuple[Stack | None, str]:
    """Matched rows with a pattern in both, None where there are none, and what was left out."""
    if why := why_apart(both[0]) or why_apart(both[1]):
        return None, why
    found = [one[role] if _has(one, role) else None for one, role in zip((a, b), both, strict=True)]
    sizes = [part.hidden_size if part else one.hidden_size for part, one in zip(found, (a, b), strict=True)]
    if sizes[0] != sizes[1]:
        return None, two_widths(*sizes)
    of_a, of_b = found
    if of_a is None or of_b is None:
        lacking = [one.source for part, one in zip(found, (a, b), strict=True) if part is None]
        return None, f"{' and '.join(map(repr, lacking))} has no such norm"
    layers, rows_a, rows_b = matched_layers(of_a, of_b)
    one, other = of_a.scale[rows_a].astype(np.float64), of_b.scale[rows_b].astype(np.float64)
    alive = (np.ptp(one, axis=1) > 0) & (np.ptp(other, axis=1) > 0) & np.isfinite(one + other).all(axis=1)
    why = "" if len(layers) else "no layer number in common"
    if dead := layers[~alive].tolist():
        why = f"γ has no pattern in {layer_text(dead)}"
    return ((one[alive], other[alive]) if alive.any() else None), why


def _in_random_order(
    a: NormVectors, b: NormVectors, taken: Sequence[_Taken], seed: int
) -> tuple[list[_Taken], list[tuple[str, str]]]:
    """Those with channels in random order in one of the two models, and the names of the others; tower by tower."""
    kept, ordered = [], []
    towers = [(a[both[0]].tower, b[both[1]].tower) for both, _ in taken]
    for pair in dict.fromkeys(towers):
        here = [one for one, tower in zip(taken, towers, strict=True) if tower == pair]
        rows_a, rows_b = zip(*_stacked([rows for _, rows in here]), strict=True)
        if _own_order(a, pair[0], rows_a, seed) and _own_order(b, pair[1], rows_b, seed):
            ordered += [both for both, _ in here]
        else:
            kept += here
    return kept, ordered


def _own_order(model: NormVectors, tower: str, rows: Sequence[Floats], seed: int) -> bool:
    """Whether the table or the rows of a tower, one array a hidden size, tell of an order of its channels."""
    return has_fixed_positions(model.model_type, tower) or any(
        some.shape[1] >= 16 and _order_of(some.shape[1], some.tobytes(), seed) <= FIRES for some in rows
    )


@lru_cache(8)  # whoever asks for the relatives of a model asks this of it for every pair
def _order_of(size: int, rows: bytes, seed: int) -> float:
    return channel_order(np.frombuffer(rows).reshape(-1, size), seed)


def _places(pairs: Iterable[tuple[RoleVectors, RoleVectors]]) -> dict[str, int]:
    counts = dict.fromkeys(("same", "elsewhere", "without"), 0)
    for a, b in pairs:
        values = pairwise(a.scale, b.scale, "pearson")
        rows, columns = np.isfinite(values).any(axis=1), np.isfinite(values).any(axis=0)
        found = LayerMatrix(values[np.ix_(rows, columns)], a.layers[rows], b.layers[columns]).partner_counts()
        counts = {name: number + found[name] for name, number in counts.items()}
    return counts


def _judged(rows: Rows, test: PairTest | None, p: float | None) -> Judgement:
    found: dict[str, Any] = {name: rows.places.get(name, 0) for name in ("same", "elsewhere", "without")}
    if test is not None and p is not None:
        steps = p / test.pvalue
        found |= {"low": test.low * steps, "high": min(1.0, test.high * steps), "least": test.least * steps}
    found |= {"identical": rows.identical, "converted": rows.converted, "one_length": rows.one_length}
    key = verdict(Evidence(pvalue=p, ordered=rows.ordered and not rows.stacks, **found))
    return Judgement(key, rows.obstacle if key == "not_comparable" else "", test, p, rows)

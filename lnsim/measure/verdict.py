"""This module chooses, for two models, one sentence out of a fixed set: evidence in, the key of a sentence out.

What is on record about the two models is no part of the evidence, so it cannot move the choice. No sentence says how a
signal came about: the vectors of a copy, of a fine-tune and of two children of one base differ in nothing that is
measured here. The first rule of ``RULES`` that fits is taken.

*Strong*: p, adjusted over the pairs that were asked about together, is at most ``STRONG``; *weak*: at most ``WEAK``. p
is that of ``pair_test``: one test a pair, the larger p of r and ranks. A *partner* is a layer of the other model whose
r is at least ``alignment.PARTNER_FROM``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lnsim.errors import ComparisonError
from lnsim.measure.pair_test import LEVELS, STRONG, WEAK
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

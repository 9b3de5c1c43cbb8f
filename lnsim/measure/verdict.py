"""This module chooses, for two models, one sentence out of a fixed set: evidence in, the key of a sentence out.

What is on record about the two models is no part of the evidence, so it cannot move the choice. No sentence says how a
signal came about: the vectors of a copy, of a fine-tune and of two children of one base differ in nothing that is
measured here, and chance, common design or a permuted copy remain. The first rule of ``RULES`` that fits is taken.

*Signal*: for at least one kind of norm the mean r of matched layers and its counterpart by ranks both have an adjusted
p below the level. A *partner* is a layer of the other model whose r is at least ``alignment.PARTNER_FROM``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lnsim.errors import ComparisonError
from lnsim.measure.nulls import LEVEL

__all__ = ["RULES", "SENTENCES", "SIGNALS", "Evidence", "NormTest", "sentence", "verdict"]

SIGNALS = ("identical", "one_by_one", "rearranged", "unplaced")
"""Keys of the sentences that speak of a signal."""


@dataclass(frozen=True, slots=True)
class NormTest:
    """What was found for one kind of norm.

    Args:
        p_holm: p of the mean r over matched layers, adjusted over every test of the study.
        p_ranks_holm: the same by ranks.
        same: layers of the shorter stack whose best partner has the same number; elsewhere and without likewise.
        elsewhere: those whose best partner has another number.
        without: those without a partner.
        one_length: True where both stacks have the same layer numbers.
        identical: True where these, and all stored bits, are the same.
    """

    p_holm: float
    p_ranks_holm: float
    same: int
    elsewhere: int
    without: int
    one_length: bool
    identical: bool

    def __post_init__(self) -> None:
        probabilities = all(math.isfinite(p) and 0 < p <= 1 for p in (self.p_holm, self.p_ranks_holm))
        if not probabilities or min(self.same, self.elsewhere, self.without) < 0 or not self.n_layers:
            raise ComparisonError(
                f"Judging a pair: expected p-values above 0 and up to 1 and at least one layer, found {self}."
            )

    @property
    def n_layers(self) -> int:
        """Layers of the shorter stack."""
        return self.same + self.elsewhere + self.without

    @property
    def seen(self) -> tuple[bool, bool]:
        """Whether Pearson, and whether ranks, are below LEVEL."""
        return self.p_holm < LEVEL, self.p_ranks_holm < LEVEL


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was measured on one pair of models.

    Args:
        tests: one a kind of norm; none where nothing can be compared.
        least_p: the smallest adjusted p that this many permutations and tests could have given.
    """

    tests: tuple[NormTest, ...]
    least_p: float

    @property
    def signals(self) -> tuple[NormTest, ...]:
        """The tests that both Pearson and ranks pass."""
        return tuple(test for test in self.tests if all(test.seen))

    @property
    def in_step(self) -> bool:
        """In equal stacks, most layers of the tests with a signal have their best partner at the same number."""
        return all(test.one_length for test in self.signals) and 2 * self._sum("same") > self._sum("n_layers")

    @property
    def partners(self) -> bool:
        """Some layer of the tests with a signal has a partner."""
        return self._sum("same") + self._sum("elsewhere") > 0

    def _sum(self, name: str) -> int:
        return sum(int(getattr(test, name)) for test in self.signals)


_RULES: tuple[tuple[str, Callable[[Evidence], bool], str], ...] = (
    ("not_comparable", lambda found: not found.tests, "no norm of one can be set against a norm of the other"),
    ("identical", lambda found: all(test.identical for test in found.tests),
     "the same layers, and every weight and bias compared has the same stored bits"),
    ("undecided", lambda found: found.least_p >= LEVEL,
     "with so few permutations no p could be below the level after adjustment"),
    ("one_by_one", lambda found: bool(found.signals) and found.in_step,
     "signal; the stacks have the same layers, and most have their best partner at the same number"),
    ("rearranged", lambda found: bool(found.signals) and found.partners, "signal; layers have partners, but not so"),
    ("unplaced", lambda found: bool(found.signals), "signal; no layer has a partner"),
    ("contradictory", lambda found: any(any(test.seen) for test in found.tests),
     "one of Pearson and ranks is below the level after adjustment, and the other is not for the same norm"),
    ("none", lambda found: True, "nothing is below the level after adjustment"),
)  # fmt: skip

RULES: Mapping[str, str] = {key: where for key, _, where in _RULES}
"""When each sentence is chosen, in the order in which they are tried."""


SENTENCES: Mapping[str, str] = {
    "not_comparable": "Not comparable: {why}.",
    "identical": "Identical, bit for bit, in every norm vector compared.",
    "undecided": "Not decided: too few permutations for this many tests.",
    "one_by_one": "Shared-origin signal, layer by layer: compatible with one trained further from the other, or "
    "both from the same base.",
    "rearranged": "Shared-origin signal, layers not one by one: compatible with a common ancestor, or with layers "
    "cut, repeated or moved.",
    "unplaced": "Shared-origin signal, no layer with a close partner: compatible with a distant common ancestor.",
    "contradictory": "Weak or contradictory: Pearson and ranks disagree.",
    "none": "No shared-origin signal in the norm vectors; this does not show independence.",
}
"""Every sentence by its key; ``{why}`` is what stands in the way of a comparison."""

_REPLICA = "REPLICA, synthetic vectors. "


def sentence(key: str, obstacle: str = "", replica: bool = False) -> str:
    """The sentence of a verdict, with what stands in the way of one; of a replica it first says: synthetic."""
    return (_REPLICA if replica else "") + SENTENCES[key].format(why=obstacle)


def verdict(evidence: Evidence) -> str:
    """The key of the first sentence whose rule fits, one of RULES."""
    return next(key for key, holds, _ in _RULES if holds(evidence))

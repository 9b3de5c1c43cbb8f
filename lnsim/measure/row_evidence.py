"""This module puts the rows that were read of two models to the tests of ``evidence``, and says what they show.

What could not be tested is named with its reason. The p of a pair is that of the two exact tests together: their number
times the smaller one. Effective γ stands beside it, and takes no part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from lnsim.checkpoint.vectors import NormVectors
from lnsim.checkpoint.weight_rows import WeightRows
from lnsim.errors import ComparisonError
from lnsim.measure.comparable import REFUSED
from lnsim.measure.evidence import SignTest, ValueBlock, combined, effective_gamma, token_rows, value_rows
from lnsim.measure.nulls import Floats
from lnsim.measure.pair_test import MOST, STRONG, WEAK, PairTest
from lnsim.words import TEXTS

_SAYS: Mapping[str, str] = TEXTS["matrix_rows"]  # sentences by strength, and what is added to them

_FEWEST_TEXTS, _MOST_TOKENS = 64, 512  # more tokens cost time, and tell channels no better

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowEvidence:
    """What the rows of two models show; a test that could not be made is None, and ``missing`` says why."""

    values: SignTest | None
    tokens: SignTest | None
    gamma: PairTest | None
    missing: tuple[str, ...] = ()
    n_tokens: int = 0  # that token rows were compared over

    @property
    def pvalue(self) -> float | None:
        """Of the exact tests that were made, together; None where none was."""
        made = [test.pvalue for test in (self.values, self.tokens) if test is not None]
        return combined(*made) if made else None

    @property
    def strength(self) -> str:
        """``strong``, ``weak``, ``none`` or ``not_tested``, by the levels of the verdict."""
        if (p := self.pvalue) is None:
            return "not_tested"
        return "strong" if p <= STRONG else "weak" if p <= WEAK else "none"

    def sentence(self, of_norms: str) -> str:
        """What was found, beside the strength of the norms' verdict."""
        apart = self.strength == "strong" and of_norms in ("none", "weak", "not_comparable", "not_decided")
        return " ".join([_SAYS[self.strength], *[_SAYS["norms_silent"]] * apart, _SAYS["distilled"]])

    def record(self, of_norms: str) -> dict[str, Any]:
        """What ``lnsim compare --evidence --json`` prints."""
        tests = {"value_rows": self.values, "token_rows": self.tokens, "effective_gamma": self.gamma}
        told = {name: None if test is None else asdict(test) for name, test in tests.items()}
        if told["token_rows"] is not None:
            told["token_rows"] |= {"n_channels": told["token_rows"]["n_matched"], "n_tokens": self.n_tokens}
        if self.gamma is not None:
            told["effective_gamma"] |= {"pvalue": self.gamma.pvalue}  # type: ignore[operator]
        found = {"strength": self.strength, "pvalue": self.pvalue, "sentence": self.sentence(of_norms)}
        return found | told | {"missing": list(self.missing)}


def weigh_rows(
    a: NormVectors,
    b: NormVectors,
    ordered: bool = False,
    n_permutations: int = MOST,
    seed: int = 0,
    same_token_ids: bool = False,
) -> RowEvidence:
    """Test the rows of two models that were read with evidence.

    ``ordered`` says that the channels of both have an order of their own, so that token rows are outside of H0;
    ``same_token_ids`` that equal ids mean equal tokens, where no tokenizer tells. Permutations, at most so many, are
    for effective γ alone.
    """
    missing = [reason for one in (a, b) for reason in _rows(one).missing]

    def tried(what: str, test: Callable[[], T]) -> T | None:
        try:
            return test()
        except ComparisonError as error:
            missing.append(f"{what}: {str(error).rstrip('.')}.")
            return None

    one, other = value_blocks(a), value_blocks(b)
    values = gamma = tokens = None
    n_tokens = 0
    if one and other:
        values = tried("Value rows", partial(value_rows, one, other))
        gamma = tried("Effective γ", partial(effective_gamma, one, other, n_permutations, seed))
    if ordered:
        missing.append("Token rows: the channels of both models have an order of their own.")
    elif _rows(a).tokens and _rows(b).tokens:
        rows = tried("Token rows", partial(_common_tokens, _rows(a), _rows(b), same_token_ids))
        tokens = rows and tried("Token rows", partial(token_rows, *rows))
        n_tokens = len(rows[0]) if rows and tokens else 0
    return RowEvidence(values, tokens, gamma, tuple(dict.fromkeys(missing)), n_tokens)


def _rows(one: NormVectors) -> WeightRows:
    return one.rows or WeightRows(missing=(f"No rows of {one.source} were asked for.",))


def _common_tokens(a: WeightRows, b: WeightRows, same_ids: bool) -> tuple[Floats, Floats]:
    """Rows of the tokens that both models have: those of one text, else, where that is told, those of one id."""
    (ids_a, one), (ids_b, other) = (found.tokens or ((), np.zeros((0, 0))) for found in (a, b))
    told = bool(a.texts and b.texts)
    if not told and a.vocabulary != b.vocabulary:
        raise ComparisonError(REFUSED["vocabularies"].format(a=a, b=b))
    if not told and not same_ids:
        raise ComparisonError(REFUSED["token_ids"])
    place_a, place_b = (
        {key: place for place, key in list(enumerate(keys))[::-1] if key != ""}
        for keys in ((a.texts, b.texts) if told else (ids_a, ids_b))
    )
    both = [key for key in reversed(place_a) if key in place_b][:_MOST_TOKENS]  # the most frequent first
    if len(both) < (_FEWEST_TEXTS if told else 3):
        raise ComparisonError(
            f"{len(both)} of the tokens that were read are the same in both, too few to tell {one.shape[1]:,} channels"
        )
    return one[[place_a[key] for key in both]], other[[place_b[key] for key in both]]


def value_blocks(model: NormVectors) -> list[ValueBlock]:
    """The value rows of a model, each block with the γ of the norm that it reads; empty where none were read."""
    blocks = []
    for layer, (use, head_size, rows) in sorted(_rows(model).values().items()):
        gamma, centred = (None, False) if use != "value" else _norm_before(model, layer)
        if gamma is None or gamma.shape != rows.shape[1:]:  # written by values, or in the space of MLA
            gamma, centred = np.ones(rows.shape[1]), use == "output" and model.norm_type == "layernorm"
        blocks.append(ValueBlock(layer, rows, gamma, head_size, centred))
    return blocks


def _norm_before(model: NormVectors, layer: int) -> tuple[Floats | None, bool]:
    """γ of the norm that the attention of a block reads, and whether it takes out the mean; None where none is.

    Behind post-norms (BERT) that is the last norm of the block before, or the one behind the embedding.
    """
    for role, place in (("pre_attention", layer), ("post_mlp", layer - 1), ("embedding", -1)):
        found = model.roles.get(role)
        if found is not None and place in found.layers and (role != "embedding" or layer == 0):
            return found[place].astype(np.float64), found.norm_type == "layernorm"
    return None, False

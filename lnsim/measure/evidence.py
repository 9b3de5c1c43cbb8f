"""This module tests two models by rows of their matrices, where norms are blind: permuted, folded, rescaled, new norms.

H0: both were trained from initial values of their own, and no weights of one entered the other. *The same data,
tokenizer and recipe, and distillation, are inside H0*: a student that began at random is a stranger here, provably so.

Proof that p is exact. Flip the sign of one value dimension: its row of ``v_proj`` and its column of ``o_proj``. The
function is the same; initial values are symmetric; AdamW, SGD, Lion, Muon, weight decay and clipping commute with the
flip. So under H0, given A, the trained B and B with any value dimensions flipped have one law. The same holds for a
residual channel of an RMSNorm model, flipped in every matrix. Parts of A and B are matched by what no flip changes
(absolute values, γ); given the matching, the signs are fair coins. With c_j the product of weights that coin j turns,
z = sum(c) / sqrt(sum(c^2)), and P(z >= t) <= exp(-t^2 / 2) for every number of coins (Hoeffding 1963). So one symmetry
is spent on the matching and another is left for p. Matching and testing by the same thing would call every stranger.

Outside of H0: one seed of random numbers for both; copied or structured initial values; quantisation with a zero point;
for token rows fixed sinusoidal positions, and LayerNorm, whose channel signs are no symmetry (measured: fine, not
exact). Blind: random signs, or a rotation within heads, change no output and hide a copy. Gauge groups: Sweeney 2026,
arXiv:2606.31963. Permutations in place of signs: Zhu et al. 2025, arXiv:2502.12292. Measured: the zoo, notebook 15.

``weigh_rows`` puts the rows that were read of two models to these tests. What could not be tested is named with its
reason. The p of a pair is that of the two exact tests together: their number times the smaller one. Effective γ stands
beside it, and takes no part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors
from lnsim.checkpoint.weight_rows import WeightRows
from lnsim.errors import ComparisonError
from lnsim.measure.comparable import REFUSED
from lnsim.measure.nulls import Floats
from lnsim.measure.pair_test import MOST, STRONG, WEAK, PairTest, pair_test
from lnsim.words import TEXTS

_SAYS: Mapping[str, str] = TEXTS["matrix_rows"]  # sentences by strength, and what is added to them

_FEWEST_TEXTS, _MOST_TOKENS = 64, 512  # more tokens cost time, and tell channels no better
_AT_ONCE = 1024  # channels of a whose correlations with all of b are held at a time: with 4,096 of them 17 MB

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class ValueBlock:
    """The value rows of one block."""

    layer: int
    rows: npt.NDArray[np.floating]  # of ``v_proj``, whole heads of value dimensions: (n_heads * head_size, hidden_size)
    gamma: npt.NDArray[np.floating]  # effective γ of the norm before the attention, (hidden_size,)
    head_size: int  # value dimensions of a head
    centred: bool = False  # that norm is a LayerNorm: what it gives has no mean over the channels

    def __post_init__(self) -> None:
        n_rows, hidden_size = self.rows.shape
        whole = self.head_size > 1 and n_rows > 0 and n_rows % self.head_size == 0
        if not whole or self.gamma.shape != (hidden_size,):
            raise ComparisonError(REFUSED["value_block"].format(block=self, n_rows=n_rows, hidden_size=hidden_size))

    def effective(self) -> Floats:
        """What the rows do to the normalised residual: rows times γ, without its mean where the norm takes that out."""
        found = self.rows.astype(np.float64) * self.gamma.astype(np.float64)
        if not np.isfinite(found).all():
            raise ComparisonError(f"Value rows of block {self.layer}: a weight is not finite.")
        return found - found.mean(axis=1, keepdims=True) if self.centred else found

    def grams(self) -> Floats:
        """Products of the rows of each head, at unit length: ``(n_heads, head_size, head_size)``.

        No orthogonal change of the residual basis alters them, nor does what moves a factor from γ to the rows.
        """
        heads = _unit_length(self.effective(), 0).reshape(-1, self.head_size, self.rows.shape[1])
        return np.asarray(heads @ heads.transpose(0, 2, 1))


@dataclass(frozen=True, slots=True)
class SignTest:
    """What a test of signs found."""

    z: float  # sum of the coupled weights over the root of their sum of squares; at most the root of ``n_signs``
    n_signs: int  # coins
    pvalue: float  # ``n_tried * exp(-z^2 / 2)``, at most 1, for every number of coins; 1 where z is not above zero
    n_tried: int = 1  # how many pairs of parts were tried, of which this is the one with the largest z
    layers: tuple[int, int] | None = None  # of the two blocks, where the test is one of blocks
    n_matched: int = 0  # heads or channels that were matched


def value_rows(a: Sequence[ValueBlock], b: Sequence[ValueBlock]) -> SignTest:
    """Whether the value rows of two models agree in sign: those of the best pair of blocks, with its price.

    Heads are matched by the absolute products of their rows (Hungarian). Even rows of a head are probes, odd ones are
    tested: c_j is the sum over the probes i of G_a[j, i] G_b[j, i]. Hidden sizes may differ. Usual are the first and
    the last block of each model, or any few. ComparisonError when there are none, or heads have different sizes.
    """
    sizes = {block.head_size for block in (*a, *b)}
    if not a or not b or len(sizes) != 1:
        told = ", ".join(map(str, sorted(sizes))) or "no size"
        raise ComparisonError(REFUSED["value_rows"].format(n_a=len(a), n_b=len(b), sizes=told))
    grams = [[(block.layer, block.grams()) for block in blocks] for blocks in (a, b)]
    n_tried, found = len(a) * len(b), []
    for (layer_a, one), (layer_b, other) in product(*grams):
        heads_a, heads_b = _matched_heads(one, other)
        coupled = (one[heads_a, 1::2, ::2] * other[heads_b, 1::2, ::2]).sum(axis=2).ravel()
        found.append(_sign_test(coupled, n_tried, (layer_a, layer_b), len(heads_a)))
    return max(found, key=lambda test: test.z)


def _matched_heads(a: Floats, b: Floats) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    from scipy.optimize import linear_sum_assignment

    above = np.triu_indices(a.shape[1], 1)
    one, other = (_units(np.abs(grams[:, above[0], above[1]])) for grams in (a, b))
    return linear_sum_assignment(one @ other.T, maximize=True)  # type: ignore[no-any-return]


def token_rows(a: npt.ArrayLike, b: npt.ArrayLike) -> SignTest:
    """Whether the channels of two models agree in sign over the same tokens.

    Channels are matched where each is the other's best partner by absolute correlation over the tokens; c is the
    correlation of a matched pair. Both are rows of the embedding of the same tokens in the same order, ``(n_tokens,
    hidden_size)``; hidden sizes may differ. ComparisonError for fewer than three tokens, other numbers of them, or a
    weight that is not finite.
    """
    one, other = (np.asarray(rows, dtype=np.float64) for rows in (a, b))
    if one.ndim != 2 or other.ndim != 2 or len(one) != len(other) or len(one) < 3:
        raise ComparisonError(REFUSED["token_rows"].format(a=one, b=other))
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise ComparisonError("Testing token rows: a weight is not finite.")
    one, other = (_units(rows.T) for rows in (one, other))
    best_b = _best_partners(one.astype(np.float32), other.astype(np.float32))
    matched = np.flatnonzero(best_b >= 0)
    coupled = np.einsum("ij,ij->i", one[matched], other[best_b[matched]])
    return _sign_test(coupled, 1, None, len(matched))


def _best_partners(one: npt.NDArray[np.float32], other: npt.NDArray[np.float32]) -> npt.NDArray[np.intp]:
    """By channel of one, the channel of the other that has it as best partner and is its own; -1 where there is none.

    Float32 does, since it decides who is matched and not by how much: a flipped sign flips every product and every sum
    of them exactly, so that no matching changes.
    """
    best_b = np.zeros(len(one), dtype=np.intp)
    best_a, largest = np.zeros(len(other), dtype=np.intp), np.full(len(other), -1.0, dtype=np.float32)
    for start in range(0, len(one), _AT_ONCE):
        size = one[start : start + _AT_ONCE] @ other.T
        np.abs(size, out=size)
        best_b[start : start + len(size)] = size.argmax(axis=1)
        first = size.argmax(axis=0)
        most = size[first, np.arange(len(other))]
        better = most > largest
        best_a[better], largest[better] = first[better] + start, most[better]
    return np.where(best_a[best_b] == np.arange(len(one)), best_b, -1)


def _units(rows: Floats) -> Floats:
    """Rows without their mean, of length 1; a constant one is zero, and correlates with nothing."""
    return _unit_length(rows - rows.mean(axis=1, keepdims=True), 1e-12)


def _unit_length(rows: Floats, nothing: float) -> Floats:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > nothing))


def _sign_test(coupled: Floats, n_tried: int, layers: tuple[int, int] | None, n_matched: int) -> SignTest:
    length = float(np.sqrt(np.sum(coupled**2)))
    z = float(np.sum(coupled)) / length if length > 0 else 0.0
    pvalue = min(1.0, n_tried * math.exp(-(max(z, 0.0) ** 2) / 2))
    return SignTest(z, int(np.count_nonzero(coupled)), pvalue, n_tried, layers, n_matched)


def combined(*pvalues: float) -> float:
    """One p of several tests, whatever their dependence: their number times the smallest, at most 1 (Bonferroni)."""
    if not pvalues:
        raise ComparisonError("Combining tests: expected at least one p-value, found none.")
    return min(1.0, len(pvalues) * min(pvalues))


def effective_gamma(a: Sequence[ValueBlock], b: Sequence[ValueBlock], most: int = MOST, seed: int = 0) -> PairTest:
    """The permutation test of channels on γ times the root mean square of each column of the value rows.

    It needs no further bytes, and finds γ that was folded, rescaled or set anew, since the product stays. It is blind
    to permuted channels, as norms are. Blocks are compared in their order. ComparisonError when the numbers of blocks
    or the hidden sizes differ, and as ``pair_test``.
    """
    one, other = (np.array([np.sqrt(np.mean(block.effective() ** 2, axis=0)) for block in blocks]) for blocks in (a, b))
    if one.shape != other.shape:
        raise ComparisonError(REFUSED["effective_gamma"].format(a=one, b=other))
    return pair_test([(one, other)], most=most, seed=seed)


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

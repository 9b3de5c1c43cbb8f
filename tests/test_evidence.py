"""Two exact tests by signs: what they find, what they cannot see, and that chance keeps their p."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from lnsim.errors import ComparisonError
from lnsim.measure.evidence import SignTest, ValueBlock, combined, effective_gamma, token_rows, value_rows

H, D, HEADS = 96, 16, 4
Arrays = tuple[np.ndarray, np.ndarray]


def rows(seed: int, hidden_size: int = H) -> Arrays:
    """Value rows and γ of a block."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(HEADS * D, hidden_size)), 1 + rng.normal(0, 0.2, hidden_size)


def block(seed_or_arrays: int | Arrays, layer: int = 0, centred: bool = False) -> ValueBlock:
    weights, gamma = rows(seed_or_arrays) if isinstance(seed_or_arrays, int) else seed_or_arrays
    return ValueBlock(layer, weights, gamma, D, centred)


def trained_further(arrays: Arrays, seed: int, amount: float = 0.5) -> Arrays:
    rng = np.random.default_rng(seed)
    return arrays[0] + rng.normal(0, amount, arrays[0].shape), arrays[1] + rng.normal(0, 0.1, arrays[1].shape)


def permuted(arrays: Arrays, seed: int) -> Arrays:
    """Channels and heads in another order."""
    rng = np.random.default_rng(seed)
    channels, heads = rng.permutation(arrays[1].size), rng.permutation(HEADS)
    weights = arrays[0].reshape(HEADS, D, -1)[heads].reshape(HEADS * D, -1)
    return weights[:, channels], arrays[1][channels]


def folded(arrays: Arrays) -> Arrays:
    return arrays[0] * arrays[1], np.ones_like(arrays[1])


def rotated(arrays: Arrays, seed: int) -> Arrays:
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(H, H)))
    return (arrays[0] * arrays[1]) @ turn, np.ones(H)


DISGUISES = {
    "as it is": lambda one: one,
    "permuted channels and heads": lambda one: permuted(one, 5),
    "folded": folded,
    "rotated": lambda one: rotated(one, 6),
    "rescaled": lambda one: (one[0] / 3, one[1] * 3),
    "pruned": lambda one: (one[0][:, : H * 3 // 4], one[1][: H * 3 // 4]),
}


@pytest.mark.parametrize("disguise", list(DISGUISES))
def test_value_rows_find_a_model_that_was_trained_further_in_every_disguise_that_is_no_flip(disguise: str) -> None:
    parent = rows(1)
    found = value_rows([block(parent)], [block(DISGUISES[disguise](trained_further(parent, 2)))])
    assert found.pvalue < 1e-5
    assert (found.n_matched, found.n_signs) == (HEADS, HEADS * D // 2)
    assert found.z <= math.sqrt(found.n_signs)


def test_value_rows_of_strangers_and_of_a_copy_with_random_signs_show_nothing() -> None:
    parent = rows(1)
    signs = np.random.default_rng(3).choice([-1, 1], HEADS * D)[:, None]
    for other in (rows(2), (parent[0] * signs, parent[1])):
        assert value_rows([block(parent)], [block(other)]).pvalue > 0.01


def test_the_best_pair_of_blocks_is_named_and_pays_for_the_others() -> None:
    a = [block(rows(seed), layer) for seed, layer in ((1, 0), (2, 11))]
    b = [block(rows(3), 0), block(trained_further(rows(1), 4), 5)]
    found = value_rows(a, b)
    assert (found.layers, found.n_tried) == ((0, 5), 4)
    assert found.pvalue == pytest.approx(4 * math.exp(-(found.z**2) / 2))


def test_behind_a_layer_norm_what_is_common_to_all_channels_plays_no_part() -> None:
    weights, gamma = rows(1)
    shifted = weights + 5 / gamma  # the same function: a LayerNorm gives no mean
    assert value_rows(
        [block((weights, gamma), centred=True)], [block((shifted, gamma), centred=True)]
    ).z == pytest.approx(value_rows([block((weights, gamma), centred=True)], [block((weights, gamma), centred=True)]).z)


def embedding(seed: int, hidden_size: int = H, n_tokens: int = 64) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n_tokens, hidden_size))


@pytest.mark.parametrize("disguise", ["as it is", "permuted", "rescaled", "pruned"])
def test_token_rows_find_a_model_that_was_trained_further(disguise: str) -> None:
    child = embedding(1) + np.random.default_rng(2).normal(0, 0.4, (64, H))
    order = np.random.default_rng(3).permutation(H)
    child = {"as it is": child, "permuted": child[:, order], "rescaled": child * np.linspace(0.1, 9, H),
             "pruned": child[:, order[: H // 2]]}[disguise]  # fmt: skip
    found = token_rows(embedding(1), child)
    assert found.pvalue < 1e-8
    assert found.n_matched == found.n_signs == child.shape[1]


def test_token_rows_of_strangers_a_rotated_copy_and_one_with_random_signs_show_nothing() -> None:
    one = embedding(1)
    turn, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(H, H)))
    signs = np.random.default_rng(5).choice([-1, 1], H)
    for other in (embedding(2), one @ turn, one * signs):
        assert token_rows(one, other).pvalue > 0.01


def test_channels_are_matched_block_by_block_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    child = embedding(1)[:, ::-1] + np.random.default_rng(2).normal(0, 1.5, (64, H))
    whole = token_rows(embedding(1), child)
    monkeypatch.setattr("lnsim.measure.evidence._AT_ONCE", 7)
    parts = token_rows(embedding(1), child)
    assert (parts.n_matched, parts.z) == (whole.n_matched, pytest.approx(whole.z))
    correlations = np.corrcoef(embedding(1).T, child.T)[:H, H:]
    size = np.abs(correlations)
    mutual = [(i, size[i].argmax()) for i in range(H) if size[:, size[i].argmax()].argmax() == i]
    c = np.array([correlations[i, j] for i, j in mutual])
    assert (whole.n_matched, whole.z) == (len(mutual), pytest.approx(c.sum() / np.sqrt((c**2).sum())))


def test_flips_change_no_matching_and_over_all_of_them_p_is_never_smaller_than_chance_allows() -> None:
    """Exactly, by going through every flip of four tested value dimensions, and of ten channels."""
    weights, gamma = np.random.default_rng(1).normal(size=(8, 24)), np.ones(24)
    close = weights + np.random.default_rng(2).normal(0, 0.2, weights.shape)
    tested = np.arange(1, 8, 2)
    found: list[SignTest] = []
    for flips in product([1, -1], repeat=4):
        signs = np.ones((8, 1))
        signs[tested, 0] = flips
        found.append(value_rows([ValueBlock(0, weights, gamma, 4)], [ValueBlock(0, close * signs, gamma, 4)]))
    check_uniform_or_larger(found)
    one = embedding(1, 10, 16)
    other = one + np.random.default_rng(3).normal(0, 0.3, one.shape)
    check_uniform_or_larger([token_rows(one, other * np.array(flips)) for flips in product([1, -1], repeat=10)])


def check_uniform_or_larger(found: list[SignTest]) -> None:
    assert len({test.n_matched for test in found}) == 1
    assert sum(test.z for test in found) == pytest.approx(0, abs=1e-9)  # each flip has its opposite
    pvalues = np.sort([test.pvalue for test in found])
    assert (np.arange(1, len(pvalues) + 1) / len(pvalues) <= pvalues + 1e-12).all()


def test_effective_gamma_stays_where_gamma_was_folded_and_goes_where_channels_were_permuted() -> None:
    parent = rows(1)
    parent = parent[0], parent[1] * np.random.default_rng(9).lognormal(0, 0.5, H)
    child = trained_further(parent, 2, 0.2)
    blocks = {name: [block(DISGUISES[name](child)), block(rows(7))] for name in DISGUISES if name != "pruned"}
    whole = [block(parent), block(rows(7))]
    found = {name: effective_gamma(whole, other, most=999).pvalue for name, other in blocks.items()}
    assert found["folded"] == found["as it is"] == 0.001
    narrow = [block(DISGUISES["pruned"](child)), block(DISGUISES["pruned"](rows(7)))]
    with pytest.raises(ComparisonError, match="as many blocks and channels in both models"):
        effective_gamma(whole, narrow)


def test_two_tests_cost_their_number() -> None:
    assert (combined(0.001, 0.4), combined(0.8, 0.9)) == (0.002, 1.0)
    with pytest.raises(ComparisonError, match="at least one p-value"):
        combined()


def test_what_cannot_be_tested_is_refused_in_words() -> None:
    weights, gamma = rows(1)
    with pytest.raises(ComparisonError, match=r"Value rows of block 3: expected whole heads .* found 64 rows of 96"):
        ValueBlock(3, weights, gamma, 10)
    with pytest.raises(ComparisonError, match=r"γ of shape \(95,\)"):
        ValueBlock(3, weights, gamma[1:], D)
    with pytest.raises(ComparisonError, match="block 0: a weight is not finite"):
        value_rows([block((weights * np.nan, gamma))], [block(1)])
    with pytest.raises(ComparisonError, match="found 1 and 1 blocks and heads of 8, 16"):
        value_rows([block(1)], [ValueBlock(0, weights, gamma, 8)])
    with pytest.raises(ComparisonError, match="found 0 and 1 blocks"):
        value_rows([], [block(1)])
    with pytest.raises(ComparisonError, match=r"the same three or more tokens, found shapes \(64, 96\) and \(63, 96\)"):
        token_rows(embedding(1), embedding(1)[1:])
    with pytest.raises(ComparisonError, match="a weight is not finite"):
        token_rows(embedding(1), embedding(1) * np.inf)

"""Exact tests by signs, and the rows of two models put to them: what they find and cannot see, and what is said."""

from __future__ import annotations

import json
import math
import re
from itertools import product
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from command_line import run
from made_tokenizers import byte_level, sentence_pieces, word_pieces
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, write_files
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer

import lnsim
from lnsim.checkpoint.extract import extract
from lnsim.errors import ComparisonError
from lnsim.measure.evidence import (
    RowEvidence,
    SignTest,
    ValueBlock,
    combined,
    effective_gamma,
    token_rows,
    value_blocks,
    value_rows,
    weigh_rows,
)

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


SIZE, N_HEADS, N_LAYERS, N_TOKENS = 64, 4, 2, 96
CONFIG = LLAMA_CONFIG | {"num_hidden_layers": N_LAYERS, "hidden_size": SIZE, "num_attention_heads": N_HEADS}
EVIDENCE = ("--evidence", "--same-token-ids", "--permutations", "1999")
Tensors = dict[str, np.ndarray]


def llama(seed: int, n_tokens: int = N_TOKENS) -> Tensors:
    rng = np.random.default_rng(seed)
    found = {
        "model.embed_tokens.weight": rng.normal(size=(n_tokens, SIZE)),
        "model.norm.weight": rng.normal(1, 0.1, SIZE),
    }
    for layer in range(N_LAYERS):
        stem = f"model.layers.{layer}"
        found |= {
            f"{stem}.{norm}.weight": rng.normal(1, 0.1, SIZE)
            for norm in ("input_layernorm", "post_attention_layernorm")
        }
        found[f"{stem}.self_attn.v_proj.weight"] = rng.normal(size=(SIZE, SIZE))
    return found


def trained_further_and_permuted(tensors: Tensors, seed: int) -> Tensors:
    """Every weight moved a little, then the channels in another order: the norms agree in nothing."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(SIZE)
    moved = {name: one + rng.normal(0, 0.3 if one.ndim == 2 else 0.02, one.shape) for name, one in tensors.items()}
    return {name: np.ascontiguousarray(one[..., order]) for name, one in moved.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    parent = llama(1)
    kinds = {"parent": parent, "child": trained_further_and_permuted(parent, 2), "stranger": llama(3),
             "other_tokens": llama(4, 90)}  # fmt: skip
    for name, tensors in kinds.items():
        files = checkpoint_files({key: one.astype(np.float32) for key, one in tensors.items()}, CONFIG)
        write_files(tmp_path / name, files)
    return tmp_path


def weighed(a: Path, b: Path, **how: bool) -> RowEvidence:
    found = lnsim.compare(a, b, n_permutations=199, evidence=True, **how).rows
    assert found is not None
    return found


def test_a_permuted_child_is_silent_in_its_norms_and_strong_in_its_rows(folder: Path) -> None:
    code, out, err = run("compare", str(folder / "parent"), str(folder / "child"), *EVIDENCE)
    assert (code, err) == (0, "")
    text = " ".join(out.split())
    assert "Verdict: No shared-origin signal in the norm vectors" in text
    assert "Shared initial values or weights: strong, in rows of the matrices." in text
    assert "Norms silent, rows strong: compatible with permuted, folded or newly set norms." in text
    assert "A model distilled from random initial values is a stranger to every test here." in text
    assert "Token rows: signs agree with z = 8.0 of at most 8.0 (64 signs)" in text
    assert len(out.splitlines()) < 45  # one screen


def test_strangers_show_nothing_and_the_record_holds_every_test(folder: Path) -> None:
    words = ("compare", str(folder / "parent"), str(folder / "stranger"))
    code, out, _ = run(*words, *EVIDENCE, "--json")
    found = json.loads(out)["evidence"]
    assert code == 0
    assert (found["strength"], found["missing"]) == ("none", [])
    assert found["value_rows"]["n_tried"] == 4
    assert found["pvalue"] == min(1.0, 2 * min(found["value_rows"]["pvalue"], found["token_rows"]["pvalue"]))
    assert found["effective_gamma"]["pvalue"] > 0.05
    assert "evidence" not in json.loads(run(*words, "--json")[1])


def test_equal_ids_are_equal_tokens_only_where_somebody_says_so(folder: Path) -> None:
    a, b = folder / "parent", folder / "child"
    found = weighed(a, b)
    assert found.tokens is None
    assert found.missing[-1].startswith("Token rows: no tokenizer's file lies beside both models, so equal ids")
    told = weighed(a, b, same_token_ids=True)
    record = told.record("none")["token_rows"]
    assert (record["n_channels"], record["n_tokens"]) == (SIZE, N_TOKENS)


def test_other_vocabularies_are_named_and_the_value_rows_decide_alone(folder: Path) -> None:
    found = lnsim.compare(folder / "parent", folder / "other_tokens", n_permutations=199, evidence=True)
    assert found.rows is not None
    assert found.rows.tokens is None
    assert found.rows.pvalue == found.rows.values.pvalue
    assert "Not tested: Token rows: the vocabularies have 96 and 90 tokens" in found.text()


def with_tokenizer(folder: Path, tensors: Tensors, name: str, content: bytes, rows: np.ndarray) -> Path:
    moved = tensors | {"model.embed_tokens.weight": rows}
    files = checkpoint_files({key: one.astype(np.float32) for key, one in moved.items()}, CONFIG)
    return write_files(folder, files | {name: content})


def test_under_another_tokenizer_tokens_of_one_text_are_matched(tmp_path: Path) -> None:
    """A child that was given another tokenizer: rows of the tokens that both know stayed, their ids did not."""
    rng = np.random.default_rng(8)
    parent = llama(1)
    tokenizer, in_pieces = Tokenizer.from_str(byte_level().decode()), sentence_pieces(n_tokens=1900)
    known = [tokenizer.decode([number]) for number in range(2000)]
    row_of = {text: rng.normal(size=SIZE) for text in known}
    rows_a = np.array([row_of[text] for text in known])
    a = with_tokenizer(tmp_path / "a", parent, "tokenizer.json", byte_level(), rows_a)
    spelt = SentencePieceProcessor(model_proto=in_pieces)
    pieces = [spelt.id_to_piece(number).replace("▁", " ") for number in range(1900)]
    rows = np.array([row_of.get(text, rng.normal(size=SIZE)) + rng.normal(0, 0.3, SIZE) for text in pieces])
    child = trained_further_and_permuted(parent | {"model.embed_tokens.weight": rows}, 2)
    b = with_tokenizer(tmp_path / "b", child, "tokenizer.model", in_pieces, child["model.embed_tokens.weight"])
    found = weighed(a, b)
    assert found.missing == ()
    assert found.tokens is not None
    assert (found.tokens.z, found.tokens.n_signs) == (pytest.approx(8, abs=0.1), SIZE)
    c = with_tokenizer(tmp_path / "c", llama(3), "tokenizer.model", in_pieces, rng.normal(size=(1900, SIZE)))
    other = weighed(a, c)
    assert other.strength == "none"


def test_too_few_common_texts_are_named_with_their_number(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = with_tokenizer(tmp_path / "a", llama(1), "tokenizer.json", byte_level(), rng.normal(size=(2000, SIZE)))
    b = with_tokenizer(tmp_path / "b", llama(2), "tokenizer.json", word_pieces(), rng.normal(size=(170, SIZE)))
    found = weighed(a, b)
    assert found.tokens is None
    assert re.search(r"Token rows: \d+ of the tokens that were read are the same in both, too few", found.missing[-1])


def test_rows_that_nobody_asked_for_and_channels_in_an_order_of_their_own_are_named(folder: Path) -> None:
    plain, rich = extract(folder / "parent"), extract(folder / "child", evidence=True)
    found = weigh_rows(plain, rich)
    assert (found.strength, found.values, found.tokens) == ("not_tested", None, None)
    assert found.missing == (f"No rows of {plain.source} were asked for.",)
    ordered = weigh_rows(extract(folder / "parent", evidence=True), rich, ordered=True)
    assert ordered.tokens is None
    assert ordered.missing == ("Token rows: the channels of both models have an order of their own.",)
    assert ordered.strength == "strong"
    with pytest.raises(ComparisonError, match="they need the norms of every role"):
        lnsim.compare(plain, rich, "pre_mlp", evidence=True)


def test_value_rows_meet_the_norm_that_their_attention_reads(tmp_path: Path) -> None:
    parent = llama(1)
    source = write_files(tmp_path / "m", checkpoint_files({k: v.astype(np.float32) for k, v in parent.items()}, CONFIG))
    for one in value_blocks(extract(source, evidence=True)):
        assert np.array_equal(one.gamma, parent[f"model.layers.{one.layer}.input_layernorm.weight"].astype(np.float32))
        assert (one.centred, one.head_size) == (False, SIZE // N_HEADS)
    norms = [f"encoder.layer.{n}.{part}.LayerNorm" for n in (0, 1) for part in ("attention.output", "output")]
    bert = {f"{name}.{kind}": (SIZE,) for name in ("embeddings.LayerNorm", *norms) for kind in ("weight", "bias")}
    bert |= {f"encoder.layer.{n}.attention.self.value.weight": (SIZE, SIZE) for n in (0, 1)}
    bert["embeddings.word_embeddings.weight"] = (30, SIZE)
    rng = np.random.default_rng(0)
    tensors = {name: rng.normal(size=shape).astype(ml_dtypes.bfloat16) for name, shape in bert.items()}
    config = {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": SIZE, "num_attention_heads": N_HEADS}
    vectors = extract(write_files(tmp_path / "b", checkpoint_files(tensors, config)), evidence=True)
    first, last = value_blocks(vectors)
    for block, norm in ((first, "embeddings.LayerNorm"), (last, "encoder.layer.0.output.LayerNorm")):
        assert np.array_equal(block.gamma, tensors[f"{norm}.weight"].astype(np.float64))
        assert block.centred
    assert vectors.rows is not None
    assert vectors.rows.vocabulary == 30


@pytest.mark.parametrize(
    ("z", "strength", "of_norms", "silent"),
    [(9, "strong", "none", True), (9, "strong", "strong", False), (3.5, "weak", "none", False), (0, "none", "", False)],
)
def test_the_sentence_follows_p_and_names_silent_norms(z: float, strength: str, of_norms: str, silent: bool) -> None:
    test = SignTest(z, 100, min(1.0, float(np.exp(-(z**2) / 2))))
    found = RowEvidence(test, None, None)
    assert found.strength == strength
    assert ("Norms silent, rows strong" in found.sentence(of_norms)) == silent
    assert "copied" not in found.sentence(of_norms)

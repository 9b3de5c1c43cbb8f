"""Rows of two models put to the tests: which γ they meet, what is said of them, and what could not be tested."""

from __future__ import annotations

import json
import re
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
from lnsim.measure.evidence import SignTest
from lnsim.measure.row_evidence import RowEvidence, value_blocks, weigh_rows

H, HEADS, N_LAYERS, N_TOKENS = 64, 4, 2, 96
CONFIG = LLAMA_CONFIG | {"num_hidden_layers": N_LAYERS, "hidden_size": H, "num_attention_heads": HEADS}
EVIDENCE = ("--evidence", "--same-token-ids", "--permutations", "1999")
Tensors = dict[str, np.ndarray]


def llama(seed: int, n_tokens: int = N_TOKENS) -> Tensors:
    rng = np.random.default_rng(seed)
    found = {"model.embed_tokens.weight": rng.normal(size=(n_tokens, H)), "model.norm.weight": rng.normal(1, 0.1, H)}
    for layer in range(N_LAYERS):
        stem = f"model.layers.{layer}"
        found |= {
            f"{stem}.{norm}.weight": rng.normal(1, 0.1, H) for norm in ("input_layernorm", "post_attention_layernorm")
        }
        found[f"{stem}.self_attn.v_proj.weight"] = rng.normal(size=(H, H))
    return found


def trained_further_and_permuted(tensors: Tensors, seed: int) -> Tensors:
    """Every weight moved a little, then the channels in another order: the norms agree in nothing."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(H)
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
    assert (record["n_channels"], record["n_tokens"]) == (H, N_TOKENS)


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
    row_of = {text: rng.normal(size=H) for text in known}
    rows_a = np.array([row_of[text] for text in known])
    a = with_tokenizer(tmp_path / "a", parent, "tokenizer.json", byte_level(), rows_a)
    spelt = SentencePieceProcessor(model_proto=in_pieces)
    pieces = [spelt.id_to_piece(number).replace("▁", " ") for number in range(1900)]
    rows = np.array([row_of.get(text, rng.normal(size=H)) + rng.normal(0, 0.3, H) for text in pieces])
    child = trained_further_and_permuted(parent | {"model.embed_tokens.weight": rows}, 2)
    b = with_tokenizer(tmp_path / "b", child, "tokenizer.model", in_pieces, child["model.embed_tokens.weight"])
    found = weighed(a, b)
    assert found.missing == ()
    assert found.tokens is not None
    assert (found.tokens.z, found.tokens.n_signs) == (pytest.approx(8, abs=0.1), H)
    c = with_tokenizer(tmp_path / "c", llama(3), "tokenizer.model", in_pieces, rng.normal(size=(1900, H)))
    other = weighed(a, c)
    assert other.strength == "none"


def test_too_few_common_texts_are_named_with_their_number(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = with_tokenizer(tmp_path / "a", llama(1), "tokenizer.json", byte_level(), rng.normal(size=(2000, H)))
    b = with_tokenizer(tmp_path / "b", llama(2), "tokenizer.json", word_pieces(), rng.normal(size=(170, H)))
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
        assert (one.centred, one.head_size) == (False, H // HEADS)
    norms = [f"encoder.layer.{n}.{part}.LayerNorm" for n in (0, 1) for part in ("attention.output", "output")]
    bert = {f"{name}.{kind}": (H,) for name in ("embeddings.LayerNorm", *norms) for kind in ("weight", "bias")}
    bert |= {f"encoder.layer.{n}.attention.self.value.weight": (H, H) for n in (0, 1)}
    bert["embeddings.word_embeddings.weight"] = (30, H)
    rng = np.random.default_rng(0)
    tensors = {name: rng.normal(size=shape).astype(ml_dtypes.bfloat16) for name, shape in bert.items()}
    config = {"model_type": "bert", "num_hidden_layers": 2, "hidden_size": H, "num_attention_heads": HEADS}
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

"""Tokenizers' files as the real libraries write them, trained on texts of this project."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {"docs": sorted(ROOT.glob("docs/*.md")), "code": sorted(ROOT.glob("lnsim/checkpoint/*.py"))}
SPECIALS = ["<s>", "</s>", "<pad>"]


@cache
def lines(kind: str) -> tuple[str, ...]:
    return tuple(line for path in TEXTS[kind] for line in path.read_text("utf-8").splitlines() if line.strip())


@cache
def byte_level(kind: str = "docs", n_tokens: int = 2000) -> bytes:
    """A ``tokenizer.json`` of byte pairs, as GPT-2, Llama 3 and GLM have it."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=n_tokens, special_tokens=SPECIALS, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(lines(kind), trainer)
    return made.to_str(pretty=True).encode()


@cache
def word_pieces(kind: str = "docs") -> bytes:
    """A ``tokenizer.json`` of word pieces, as BERT has it."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=2000, special_tokens=["[PAD]", "[UNK]"], show_progress=False)
    made.train_from_iterator(lines(kind), trainer)
    return made.to_str().encode()


@cache
def unigrams(kind: str = "docs") -> bytes:
    """A ``tokenizer.json`` of unigrams, a list of tokens with scores, as T5 and XLM-R have it."""
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=2000, special_tokens=SPECIALS, show_progress=False, unk_token="<s>")
    made.train_from_iterator(lines(kind), trainer)
    return made.to_str(pretty=True).encode()


@cache
def sentence_pieces(kind: str = "docs", n_tokens: int = 2000) -> bytes:
    """A ``tokenizer.model`` of byte pairs, as Llama 2 has it."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines(kind)), model_writer=out, vocab_size=n_tokens, model_type="bpe",
        byte_fallback=True, minloglevel=2,
    )  # fmt: skip
    return out.getvalue()


@cache
def many_specials(n: int = 6000) -> bytes:
    """A ``tokenizer.json`` that lists as many unused tokens in front of its vocabulary, a megabyte of them."""
    content = json.loads(byte_level())
    unused = [
        {"id": 10_000 + number, "content": f"<unused{number}>", "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for number in range(n)
    ]  # fmt: skip
    content["added_tokens"] += unused
    return json.dumps(content, indent=2).encode()

"""Tokenizers' files as the real libraries write them, trained on texts of this project."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

DOCS = Path(__file__).resolve().parent.parent / "docs"
SPECIALS = ["<s>", "</s>", "<pad>"]
MOST = {"vocab_size": 2000, "show_progress": False}


@cache
def lines() -> tuple[str, ...]:
    return tuple(line for path in sorted(DOCS.glob("*.md")) for line in path.read_text("utf-8").splitlines() if line)


def trained(model: Any, splitter: Any, trainer: Any, pretty: bool) -> bytes:
    made = Tokenizer(model)
    made.pre_tokenizer = splitter
    if isinstance(splitter, pre_tokenizers.ByteLevel):
        made.decoder = decoders.ByteLevel()
    made.train_from_iterator(lines(), trainer)
    return made.to_str(pretty=pretty).encode()


@cache
def byte_level() -> bytes:
    """A ``tokenizer.json`` of byte pairs, as GPT-2, Llama 3 and GLM have it."""
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(special_tokens=SPECIALS, initial_alphabet=splitter.alphabet(), **MOST)
    return trained(models.BPE(), splitter, trainer, pretty=True)


@cache
def word_pieces() -> bytes:
    """A ``tokenizer.json`` of word pieces, as BERT has it."""
    trainer = trainers.WordPieceTrainer(special_tokens=["[PAD]", "[UNK]"], **MOST)
    return trained(models.WordPiece(unk_token="[UNK]"), pre_tokenizers.BertPreTokenizer(), trainer, pretty=False)


@cache
def unigrams() -> bytes:
    """A ``tokenizer.json`` of unigrams, a list of tokens with scores, as T5 and XLM-R have it."""
    trainer = trainers.UnigramTrainer(special_tokens=SPECIALS, unk_token="<s>", **MOST)
    return trained(models.Unigram(), pre_tokenizers.Metaspace(), trainer, pretty=True)


@cache
def sentence_pieces(n_tokens: int = 2000) -> bytes:
    """A ``tokenizer.model`` of byte pairs, as Llama 2 has it."""
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()), model_writer=out, vocab_size=n_tokens, model_type="bpe",
        byte_fallback=True, minloglevel=2,
    )  # fmt: skip
    return out.getvalue()


@cache
def many_specials() -> bytes:
    """A ``tokenizer.json`` that lists 6,000 unused tokens in front of its vocabulary, a megabyte of them."""
    content = json.loads(byte_level())
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    content["added_tokens"] += [{"id": 10_000 + n, "content": f"<unused{n}>", **flags} for n in range(6000)]
    return json.dumps(content, indent=2).encode()

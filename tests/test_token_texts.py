"""What the first tokens of a vocabulary are, by the first bytes of a tokenizer's file, held against the libraries."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_tokenizers import byte_level, many_specials, sentence_pieces, unigrams, word_pieces
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer

from lnsim.checkpoint.token_texts import N_TOKENS, FileStart, first_run, read_texts
from lnsim.errors import RoleError


def start_of(content: bytes, asked: list[int] | None = None) -> FileStart:
    def read(n_bytes: int) -> bytes:
        if asked is not None:
            asked.append(n_bytes)
        return content[:n_bytes]

    return read


def words(content: bytes, name: str = "tokenizer.json") -> dict[int, str]:
    start, texts = read_texts(start_of(content), name, "x")
    return {number: text for number, text in enumerate(texts, start) if text}


def test_byte_pairs_are_spelt_as_the_library_decodes_them() -> None:
    decoder = Tokenizer.from_str(byte_level().decode())
    found = words(byte_level())
    assert len(found) > 800
    assert found == {number: decoder.decode([number]) for number in found}


def test_word_pieces_have_a_space_in_front_where_a_word_begins() -> None:
    known = Tokenizer.from_str(word_pieces().decode())
    found = words(word_pieces())
    assert len(found) > 800
    for number, text in found.items():
        token = known.id_to_token(number)
        assert token == (text[1:] if text[0] == " " else f"##{text}")


@pytest.mark.parametrize(("made", "name"), [(unigrams, "tokenizer.json"), (sentence_pieces, "tokenizer.model")])
def test_pieces_have_a_space_for_their_mark(made: Callable[[], bytes], name: str) -> None:
    if name == "tokenizer.model":
        spelt = SentencePieceProcessor(model_proto=made()).id_to_piece
    else:
        spelt = Tokenizer.from_str(made().decode()).id_to_token
    found = words(made(), name)
    assert len(found) > 700
    assert found == {number: spelt(number).replace("▁", " ") for number in found}


def test_vocab_json_and_vocab_txt_say_the_same_as_the_tokenizer_that_they_belong_to() -> None:
    pairs = json.loads(byte_level())["model"]["vocab"]
    assert words(json.dumps(pairs).encode(), "vocab.json") == words(byte_level())
    pieces = json.loads(word_pieces())["model"]["vocab"]
    assert words("".join(f"{token}\n" for token in pieces).encode(), "vocab.txt") == words(word_pieces())


def test_a_run_begins_behind_special_tokens_and_single_bytes() -> None:
    start, texts = read_texts(start_of(byte_level()), "tokenizer.json", "x")
    assert len(texts) == N_TOKENS
    assert texts.count("") < 0.2 * N_TOKENS
    first = next(number for number, text in enumerate(texts, start) if text)
    assert 3 + 256 <= first <= 3 + 256 + 4
    assert start <= first
    assert first_run({}) is None
    assert first_run(dict.fromkeys(range(100, 200), "ab")) == 75  # 39 of the next 64 are words


def test_one_window_is_read_of_a_usual_file_and_larger_ones_of_one_with_six_thousand_special_tokens() -> None:
    found = []
    for content, windows in ((byte_level(), [1 << 17]), (many_specials(), [1 << 17, 1 << 19, 1 << 21])):
        asked: list[int] = []
        found.append(read_texts(start_of(content, asked), "tokenizer.json", "x"))
        assert asked == windows
    assert found[0] == found[1]


@given(st.integers(0, 70_000))
def test_a_file_that_ends_anywhere_tells_what_stands_before_its_end(end: int) -> None:
    try:
        part = words(byte_level()[:end])
    except RoleError:
        return
    assert part.items() <= words(byte_level()).items()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\xff\xff\xff\xff\xff\xff",
        b'{"vocab": {',
        b'{"vocab": {"a": 1e9, "b": -1}}',
        b'{"vocab": ' + b'["\\"' * 300_000,
        b'{"vocab": {"' + b'\\"' * 1_000_000,
        b"[" * 2_000_000,
        b"\n\x02\n\x00" * 500_000,
        "vocab".encode("utf-16"),
    ],
    ids=range(9),
)
@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt"])
def test_a_file_without_words_is_refused_with_what_was_expected(content: bytes, name: str) -> None:
    with pytest.raises(RoleError, match=r"a/b/tokens was expected to list its tokens by id, as tokenizer\.json, .* do"):
        read_texts(start_of(content), name, "a/b/tokens")

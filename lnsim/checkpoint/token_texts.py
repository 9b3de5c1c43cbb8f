"""This module reads what the first tokens of a vocabulary are, from the first bytes of a tokenizer's file.

Two models with tokenizers of their own can be compared token by token where the texts are the same. A byte-pair
vocabulary lists its merges in the order in which they were made, the most frequent ones first: of any two, the 960
tokens that come first behind special tokens and single bytes have more than 500 texts in common. So one run of ids is
read of every model, and no pair needs a reading of its own.

Files list their tokens in the order of the ids, which is why their start is enough: ``tokenizer.json`` (a dict of ids,
or of a unigram model a list), ``vocab.json``, ``vocab.txt``, and SentencePiece's ``tokenizer.model`` (its
``ModelProto``, field 1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from lnsim.errors import RoleError

N_TOKENS = 960

# Where the run of tokens begins, and their texts; an empty text stands for one that names no token elsewhere.
Tokens = tuple[int, tuple[str, ...]]

NO_TEXTS: Tokens = (256, ())  # where it begins if no tokenizer tells: behind single bytes, among the first merges
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model")

FileStart = Callable[[int], bytes]  # gives the first so many bytes of a file; where they are fewer, that is all of it
_WINDOWS = (1 << 17, 1 << 19, 1 << 21)  # bytes read at most; some files list 6,000 special tokens first
_VOCABULARY = re.compile(r'"vocab"\s*:\s*(?=[{\[])')
_BEFORE = re.compile(r"[\s,\[]*")
_ID = re.compile(r"\s*:\s*(\d{1,7})(?=[\s,}])")
_SCORE = re.compile(r"\s*,[^\[\]{}\"]*\]")
_LOOK, _SHARE = 64, 0.6
_LATEST_START = 4096


def read_texts(read: FileStart, name: str, where: str) -> Tokens:
    """The run of tokens of one model, by the file of this name; RoleError where its first 2 MB list no such run."""
    for n_bytes in _WINDOWS:
        data = read(n_bytes)
        texts = _texts(_tokens(name, data))
        start = first_run(texts)
        if start is not None and (start + N_TOKENS <= len(texts) or len(data) < n_bytes):
            return start, tuple(texts.get(number, "") for number in range(start, start + N_TOKENS))
        if len(data) < n_bytes:
            break
    raise RoleError(
        f"{where} was expected to list its tokens by id, as {', '.join(TOKENIZER_FILES)} do, and its first {len(data)} "
        "bytes show no run of words and parts of words"
    )


def first_run(texts: Mapping[int, str]) -> int | None:
    """The first id from which most tokens are words or parts of words; None where there is none."""
    known = [len(texts.get(number, "").strip()) > 1 for number in range(_LATEST_START + _LOOK)]
    sums = list(accumulate(known, initial=0))
    return next((at for at in range(_LATEST_START) if sums[at + _LOOK] - sums[at] >= _SHARE * _LOOK), None)


def _tokens(name: str, data: bytes) -> dict[int, str]:
    """Tokens by id as the file spells them, as far as these first bytes go."""
    if name == "tokenizer.model":
        return dict(enumerate(_pieces(data)))
    text = data.decode("utf-8", "replace")
    if name == "vocab.txt":
        return dict(enumerate(text.split("\n")[:-1]))
    found = _VOCABULARY.search(text) if name == "tokenizer.json" else re.search(r"(?=\{)", text)
    return {} if found is None else dict(_entries(text, found.end()))


def _entries(text: str, at: int) -> Iterator[tuple[int, str]]:
    """Ids and tokens of a JSON object or list that may be cut off anywhere."""
    behind = _ID if text[at] == "{" else _SCORE
    at, number = at + 1, 0
    while (before := _BEFORE.match(text, at)) and text[before.end() : before.end() + 1] == '"':
        try:
            token, at = json.JSONDecoder().raw_decode(text, before.end())
        except json.JSONDecodeError:
            return
        ends = behind.match(text, at)
        if ends is None:
            return
        yield int(ends[1]) if behind is _ID else number, token
        at, number = ends.end(), number + 1


def _pieces(data: bytes) -> Iterator[str]:
    """The pieces of a SentencePiece model: messages of field 1, each of which begins with its text."""
    at = 0
    while data[at : at + 1] == b"\n":
        n_bytes, start = _varint(data, at + 1)
        at = start + n_bytes
        if at > len(data) or data[start : start + 1] != b"\n":
            return
        n_text, first = _varint(data, start + 1)
        yield data[first : first + n_text].decode("utf-8", "replace")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data[at : at + 5]:
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            break
    return value, at


def _texts(tokens: Mapping[int, str]) -> dict[int, str]:
    """What tokens stand for in a text, a space in front where a word begins; only for words and parts of words."""
    spellings = set().union(*tokens.values()) if tokens else set()
    if "Ġ" in spellings:
        spelt = {number: _from_bytes(token) for number, token in tokens.items()}
    elif "▁" in spellings:
        spelt = {number: token.replace("▁", " ") for number, token in tokens.items()}
    elif any(token.startswith("##") for token in tokens.values()):
        spelt = {number: token[2:] if token.startswith("##") else f" {token}" for number, token in tokens.items()}
    else:
        spelt = dict(tokens)
    return {
        number: text if len(text) > 1 and any(map(str.isalpha, text)) and text.strip()[0] not in "<[" else ""
        for number, text in spelt.items()
    }


def _from_bytes(token: str) -> str:
    """The text behind a byte-level spelling; empty where its bytes are only a part of a character."""
    try:
        return bytes(_BYTES[letter] for letter in token).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return ""


# Which byte each letter of a byte-level vocabulary spells: a printable one itself, the rest from U+0100 on.
_BYTES = {chr(byte): byte for byte in (*range(33, 127), *range(161, 173), *range(174, 256))}
_BYTES |= {chr(256 + place): byte for place, byte in enumerate(sorted({*range(256)} - {*_BYTES.values()}))}

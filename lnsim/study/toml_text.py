"""This module writes the few kinds of values that a study file holds as TOML, which the standard library only reads.

Texts, whole numbers, lists and tables with text keys; anything else is an error. What is written reads back the same.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from lnsim.errors import StudyError

__all__ = ["toml_text"]

_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_STEERING = frozenset({"Cc", "Cf", "Co", "Cn", "Zl", "Zp"})
"""Unicode's categories of what shows nothing or changes how the rest shows; it is written as an escape."""


def toml_text(content: Mapping[str, Any]) -> str:
    """A table as the text of a TOML file.

    Args:
        content: by key, texts, whole numbers, lists of these or of lists, tables, and lists of tables.

    Raises:
        StudyError: for a value of another kind, or a text that is no Unicode.

    >>> print(toml_text({"title": 'a "b"', "models": [{"key": "a"}], "sets": {"all": ["a"]}}), end="")
    title = "a \\"b\\""
    <BLANKLINE>
    [[models]]
    key = "a"
    <BLANKLINE>
    [sets]
    all = ["a"]
    """
    return "\n".join(_table((), content)).lstrip("\n") + "\n"


def _table(at: tuple[str, ...], content: Mapping[str, Any]) -> list[str]:
    """The lines of a table: its own values first, since whatever follows a header belongs to that header."""
    own = {key: value for key, value in content.items() if not _is_table(value) and not _is_list_of_tables(value)}
    lines = [f"{_key(key)} = {_value(value, (*at, key))}" for key, value in own.items()]
    for key, value in content.items():
        path = (*at, key)
        name = ".".join(_key(part) for part in path)
        if _is_table(value):
            inner = _table(path, value)
            # A table that holds only tables is made by their headers.
            lines += inner if inner and not inner[0] else ["", f"[{name}]", *inner]
        elif _is_list_of_tables(value):
            for one in value:
                lines += ["", f"[[{name}]]", *_table(path, one)]
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and bool(value) and all(map(_is_table, value))


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise StudyError(f"Writing a study: expected texts as keys, found {key!r:.80}.")
    return key if key.isascii() and key.replace("_", "a").isalnum() else _text(key)


def _value(value: Any, at: tuple[str, ...]) -> str:
    if isinstance(value, str):
        return _text(value)
    if type(value) is int:  # True and False are ints to Python, and no numbers here
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return f"[{', '.join(_value(item, at) for item in value)}]"
    raise StudyError(
        f"Writing a study, key '{'.'.join(at)}': expected a text, a whole number, a list or a table, found "
        f"{value!r:.80}."
    )


def _text(text: str) -> str:
    return f'"{"".join(map(_character, text))}"'


def _character(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    category = unicodedata.category(character)
    if category == "Cs":
        raise StudyError(f"Writing a study: the text has half a character, {character!r}, which no file can hold.")
    if category in _STEERING:
        return f"\\u{ord(character):04x}" if ord(character) < 2**16 else f"\\U{ord(character):08x}"
    return character

"""This module reads the fields of a study file one by one and says exactly which of them is wrong.

A message names the key, what was expected and what was found; ``catalog.load_study`` puts the file's name in front.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from lnsim.errors import StudyError

__all__ = ["Fields", "wrong"]

_MAX_SHOWN = 80


def wrong(key: str, expected: str, found: Any) -> StudyError:
    """The error for one key; the value found is shown shortened."""
    shown = repr(found)
    shown = shown if len(shown) <= _MAX_SHOWN else shown[: _MAX_SHOWN - 3] + "..."
    return StudyError(f"key '{key}': expected {expected}, found {shown}.")


@dataclass(slots=True)
class Fields:
    """One table of a study file; every key must be taken before ``close``.

    Args:
        table: the table as tomllib gives it.
        at: the key of the table itself, empty for the file's top.
    """

    table: Mapping[str, Any]
    at: str = ""
    _taken: set[str] = field(default_factory=set)

    def key(self, name: str) -> str:
        """The full key of a field, for messages."""
        return f"{self.at}.{name}" if self.at else name

    def take(self, name: str, expected: str) -> Any:
        """A field that must be there; raises StudyError saying what was expected."""
        if name not in self.table:
            raise StudyError(f"key '{self.key(name)}': expected {expected}, found no such key. Add it.")
        self._taken.add(name)
        return self.table[name]

    def text(self, name: str, expected: str = "a text", pattern: str = r".*\S.*") -> str:
        """A text that must be there and fit the pattern as a whole."""
        value = self.take(name, expected)
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
            raise wrong(self.key(name), expected, value)
        return value

    def optional_text(self, name: str, expected: str = "a text", pattern: str = r".*\S.*") -> str | None:
        """The same, or None when the key is not there."""
        return self.text(name, expected, pattern) if name in self.table else None

    def choice(self, name: str, known: Collection[str]) -> str:
        """A text that is one of the known ones."""
        expected = f"one of {', '.join(known)}"
        value = self.text(name, expected)
        if value not in known:
            raise wrong(self.key(name), expected, value)
        return value

    def tables(self, name: str) -> list[Fields]:
        """A list of tables, ``[[name]]`` in the file; empty when the key is not there."""
        value = self.take(name, "a list of tables") if name in self.table else []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise wrong(self.key(name), f"a list of tables, written [[{name}]]", value)
        return [Fields(item, f"{self.key(name)}[{number}]") for number, item in enumerate(value)]

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A table, ``[name]`` in the file; empty when the key is not there."""
        value = self.take(name, "a table") if name in self.table else {}
        if not isinstance(value, dict):
            raise wrong(self.key(name), f"a table, written [{name}]", value)
        return value

    def close(self) -> None:
        """Raise StudyError when a key was never taken: a misspelt key must not be passed over."""
        extra = [name for name in self.table if name not in self._taken]
        if extra:
            known = ", ".join(sorted(self._taken)) or "none"
            raise StudyError(f"key '{self.key(extra[0])}': expected one of {known}, found an unknown key.")

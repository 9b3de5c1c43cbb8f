"""This module decodes JSON as strictly as the reference parser of headers does, and hides no key that comes twice."""

from __future__ import annotations

import json
import re
from typing import Any

from lnsim.errors import HeaderError

__all__ = ["JsonObject", "check_characters", "decoder_for"]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonObject(list[tuple[str, Any]]):
    """A JSON object as its pairs, since a dict would hide a key that comes twice."""


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _signed_zero_apart(digits: str) -> int | float:
    # Python reads -0 as the integer 0; the reference, like JSON Schema, does not count it among the integers.
    return -0.0 if digits == "-0" else int(digits)


_USUAL = json.JSONDecoder(object_pairs_hook=JsonObject, parse_constant=_refuse_constant)
_WITH_SIGNED_ZERO = json.JSONDecoder(
    object_pairs_hook=JsonObject, parse_constant=_refuse_constant, parse_int=_signed_zero_apart
)


def decoder_for(text: str) -> json.JSONDecoder:
    """The decoder for a text: NaN and infinities are errors, -0 is no whole number."""
    return _WITH_SIGNED_ZERO if "-0" in text else _USUAL


def check_characters(value: Any, text: str, length: int) -> None:
    """Refuse a value, decoded from the first `length` characters of a text, that holds half a surrogate pair."""
    if _SURROGATE.search(text, 0, length):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise HeaderError("a string holds half a surrogate pair, which is no character.") from None

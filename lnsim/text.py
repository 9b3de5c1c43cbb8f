"""This module makes text from outside safe to show: what would steer a terminal, a log or a page is written out.

Names in a repo are whatever its owner typed. An escape sequence could recolour or retitle a terminal, a line break
could forge a line of a log, and a mark for writing from right to left could show a name backwards.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

# Unicode's categories of controls, format marks, half surrogates, private and unassigned characters, line breaks.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def printable(text: str, keep: str = "") -> str:
    r"""The text with every character that shows nothing, or changes how others show, as its escape, but for `keep`.

    >>> printable("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(ascii(c)[1:-1] if unicodedata.category(c) in _STEERING and c not in keep else c for c in text)


def json_text(content: Any, **form: Any) -> str:
    r"""Content as JSON that reads back the same, and steers no terminal; `form` as for ``json.dumps``.

    >>> json_text({"name": "\u202eé"})
    '{"name": "\\u202eé"}'
    """
    text = json.dumps(content, ensure_ascii=False, **form)
    if text.isprintable():
        return text
    # Outside its strings JSON is ASCII, and in them it has escaped line breaks; what else steers stands in a string.
    return "".join(json.dumps(c)[1:-1] if unicodedata.category(c) in _STEERING and c != "\n" else c for c in text)

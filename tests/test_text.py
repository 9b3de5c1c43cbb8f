"""Text from outside, made safe to show."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from lnsim.errors import HubError, LnsimError
from lnsim.text import json_text, printable

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(ANY_TEXT)
def test_nothing_that_steers_is_left_and_nothing_else_is_changed(text: str) -> None:
    found = printable(text)
    assert not {unicodedata.category(c) for c in found} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert printable(found) == found
    assert found == text or not text.isprintable()


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.dictionaries(ANY_TEXT, st.lists(ANY_TEXT | st.floats(allow_nan=False) | st.none(), max_size=3), max_size=3))
def test_json_reads_back_the_same_and_steers_nothing(content: dict[str, list[object]]) -> None:
    for form in ({}, {"indent": 1}):
        text = json_text(content, **form)
        assert json.loads(text) == content
        assert printable(text, keep="\n") == text


def test_text_of_any_language_and_what_is_to_be_kept_stays_as_it_is() -> None:
    text = "γ −0.5 × 10⁻³, naïve, 日本語, 😀, 10\u00a0000, e\u0301"
    assert printable(text) == text
    assert json_text(text) == f'"{text}"'
    assert printable("a\nb\tc\r", keep="\n\t") == "a\nb\tc\\r"


def test_an_error_is_one_line_of_plain_text_and_not_endless() -> None:
    assert str(HubError("a\x1b[31m\r\nb")) == "a\\x1b[31m\\r\\nb"
    text = str(LnsimError("begin" + "x" * 100_000 + "end"))
    assert len(text) < 4_100
    assert text.startswith("begin")
    assert text.endswith("end")
    assert " [...] " in text

"""What is written as TOML reads back the same, whatever the texts are; what a study cannot hold is refused."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lnsim.errors import StudyError
from lnsim.study.toml_text import toml_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(TEXTS | st.integers(-(2**63), 2**63 - 1), lambda inner: st.lists(inner, max_size=3), max_leaves=5)
TABLES = st.recursive(
    st.dictionaries(TEXTS, PLAIN, max_size=3),
    lambda inner: st.dictionaries(TEXTS, inner | st.lists(inner, min_size=1, max_size=2), max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(TABLES)
def test_every_table_reads_back_the_same(content: dict[str, Any]) -> None:
    assert tomllib.loads(toml_text(content)) == content


@pytest.mark.parametrize(
    "text",
    ['say "no"', "back\\slash", "line\nbreak", "tab\t", "\x00\x1b[31m\x7f", "\u202eright", "γ × 😀", "'''", "# no"],
)
def test_quotes_controls_and_marks_survive(text: str) -> None:
    written = toml_text({"label": text, text: {"x": [text]}})
    assert tomllib.loads(written) == {"label": text, text: {"x": [text]}}
    assert "\x1b" not in written
    assert "\u202e" not in written


def test_a_table_keeps_its_own_values_apart_from_those_of_its_tables() -> None:
    content = {"a": {"b": {"x": 1}, "y": 2}, "c": [{"z": {"k": "v"}}, {}], "d": 3}
    assert tomllib.loads(toml_text(content)) == content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"a": {"b": 1.5}}, r"key 'a\.b': expected a text, a whole number, a list or a table, found 1\.5"),
        ({"a": True}, "key 'a': .* found True"),
        ({"a": None}, "found None"),
        ({"a": [{"b": 1}, 2]}, "key 'a': .* found {'b': 1}"),
        ({"a": "\ud800"}, "half a character"),
        ({1: "x"}, "expected texts as keys, found 1"),
    ],
)
def test_what_a_study_cannot_hold_is_refused(content: dict[Any, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        toml_text(content)

"""Relations that follow from a study's own record of descent."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from lnsim.study.descent import ancestors

from lnsim.errors import StudyError
from lnsim.study.catalog import load_study


@dataclass(frozen=True, slots=True)
class Made:
    """A model with its descent."""

    key: str
    parents: tuple[str, ...]
    derivation: str


def test_a_descent_that_does_not_hold_together_is_refused() -> None:
    with pytest.raises(StudyError, match=r"models\.b\.parents.*listed before it, found 'c'"):
        ancestors([Made("a", (), ""), Made("b", ("c",), "made")])
    with pytest.raises(StudyError, match=r"models\.b'.*together or neither"):
        ancestors([Made("a", (), ""), Made("b", ("a",), "")])


def test_the_zoos_relations_follow_from_its_parents() -> None:
    study = load_study("zoo")
    assert study.has_descent
    assert study.relation("llama_prose_1_merged", "llama_prose_1").kind == "derived"
    assert study.relation("llama_prose_1_merged", "llama_prose_1").a == "llama_prose_1"
    assert study.relation("llama_prose_1_light", "llama_prose_1_folded").kind == "common_ancestor"
    assert study.relation("llama_prose_1_light", "llama_prose_2").independent

"""Tests of the children of a study's models: fine-tunes of one parent, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lnsim.errors import StudyError
from lnsim.study.catalog import Study, load_study
from lnsim.study.children import fine_tuned

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def zoo(monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    return load_study("zoo")


def test_the_fine_tunes_of_a_model_are_found_with_how_they_were_made(zoo: Study) -> None:
    assert dict(fine_tuned(zoo, ["llama_prose_1"])) == {
        ("llama_prose_1", "llama_prose_1_light"): "light fine-tune",
        ("llama_prose_1", "llama_prose_1_heavy"): "heavy fine-tune",
        ("llama_prose_1", "llama_prose_1_other_text"): "fine-tune on other text",
        ("llama_prose_1", "llama_prose_1_high_rate"): "fine-tune at a high rate",
    }


def test_only_the_parents_asked_for_have_children(zoo: Study) -> None:
    found = fine_tuned(zoo, ["gpt2_prose_6", "llama_prose_2"])
    assert {parent for parent, _ in found} == {"gpt2_prose_6"}


def test_no_fine_tune_at_all_is_an_error_that_names_the_study(zoo: Study) -> None:
    with pytest.raises(
        StudyError, match=r"Study 'zoo': no model is a fine-tune of one of llama_prose_2\. Name a parent"
    ):
        fine_tuned(zoo, ["llama_prose_2"])

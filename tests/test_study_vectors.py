"""Tests of a study's vectors by source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lnsim.checkpoint.reading import Question
from lnsim.errors import SourceError, StudyError
from lnsim.study.catalog import Study, load_study
from lnsim.study.vectors import fetch_command, study_vectors
from studies.run.plans import fetch_study


def changed(study: Study, **fields: Any) -> Study:
    """A study with other fields."""
    return replace(study, experiments={number: dict(given) for number, given in study.experiments.items()}, **fields)


def test_auto_gives_the_stored_vectors_of_every_model_in_the_studys_order() -> None:
    study = load_study("small_models")
    found = study_vectors(study)
    assert found.kind == "stored"
    assert list(found.vectors) == [model.key for model in study.models]
    assert not found.missing


def test_a_model_without_a_stored_file_is_missing_with_the_reason() -> None:
    study = load_study("small_models")
    lost = changed(study, models=(replace(study.models[0], stored="no-such-file"), *study.models[1:]))
    found = study_vectors(lost)
    assert list(study_vectors(study, "stored", ["smollm2"]).vectors) == ["smollm2"]
    assert list(found.missing) == [study.models[0].key]
    assert "There is no stored model 'no-such-file'" in found.missing[study.models[0].key]
    found = study_vectors(changed(study, sources=("stored", "hub")), "hub", ["smollm2"])
    assert "no commit is on record" in found.missing["smollm2"]  # hub means an extract with one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda study: study_vectors(study, "auto", ["gpt"]),
         "'small_models' has no model 'gpt'; its models are minilm, "),
        (lambda study: study_vectors(study, "cloud"), "'cloud' is not a source; known are auto, stored, hub, replica"),
        (lambda study: study_vectors(study, "hub"), "does not allow the source 'hub', only stored"),
        (lambda study: study_vectors(study, "replica"), "does not allow the source 'replica', only stored"),
        (fetch_study, "does not allow the source 'hub'"),
    ],
)  # fmt: skip
def test_what_a_study_does_not_have_or_allow_is_refused(call: Callable[[Study], object], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        call(load_study("small_models"))


def test_fetching_keeps_what_could_be_read_and_names_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Question] = []
    folders: list[Path] = []

    def keep(questions: list[Question], *, out: Path) -> Iterator[SourceError | None]:
        folders.append(out)
        for question in questions:
            asked.append(question)
            yield SourceError("It is gated.") if question.source.startswith("zai") else None

    monkeypatch.setattr("studies.run.plans.extract_many", keep)
    study, told = load_study("solar_glm"), []
    failed = fetch_study(study, told.append)
    assert [question.source for question in asked] == [model.repo_id for model in study.models]
    assert [folder.name for folder in folders] == ["solar_glm"]
    assert set(failed.values()) == {"It is gated."}
    assert told == [model.key for model in study.models]


def test_the_command_that_fetches_names_the_study() -> None:
    assert fetch_command(load_study("solar_glm")) == "python run_all.py --study solar_glm --source hub"
    assert fetch_command(load_study("small_models")) == "git checkout -- data/vectors/small_models"
    assert fetch_command(load_study("zoo")) == "python -m studies.zoo"

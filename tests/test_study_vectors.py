"""Tests of a study's vectors by source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lnsim.checkpoint.reading import Question
from lnsim.errors import SourceError, StudyError
from lnsim.study import vectors
from lnsim.study.catalog import Study, load_study
from lnsim.study.vectors import StudyVectors, fetch_command, fetch_study, study_vectors


def changed(study: Study, **fields: Any) -> Study:
    """A study with other fields."""
    return replace(study, experiments={number: dict(given) for number, given in study.experiments.items()}, **fields)


def test_auto_gives_the_stored_vectors_of_every_model_in_the_studys_order() -> None:
    study = load_study("small_models")
    found = study_vectors(study)
    assert found.kind == "stored"
    assert list(found.vectors) == [model.key for model in study.models]
    assert not found.missing


def test_only_the_models_asked_for_are_read() -> None:
    assert list(study_vectors(load_study("small_models"), "stored", ["smollm2"]).vectors) == ["smollm2"]


def test_a_model_without_a_stored_file_is_missing_with_the_reason() -> None:
    study = load_study("small_models")
    lost = changed(study, models=(replace(study.models[0], stored="no-such-file"), *study.models[1:]))
    found = study_vectors(lost)
    assert list(found.missing) == [study.models[0].key]
    assert "There is no stored model 'no-such-file'" in found.missing[study.models[0].key]


def test_an_unknown_model_key_is_refused_with_the_known_ones() -> None:
    with pytest.raises(StudyError, match="'small_models' has no model 'gpt'; its models are minilm, "):
        study_vectors(load_study("small_models"), "auto", ["gpt"])


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(StudyError, match="'cloud' is not a source; known are auto, stored, hub, replica"):
        study_vectors(load_study("small_models"), "cloud")


def test_a_source_that_the_study_does_not_allow_is_refused() -> None:
    with pytest.raises(StudyError, match="does not allow the source 'hub', only stored"):
        study_vectors(load_study("small_models"), "hub")
    with pytest.raises(StudyError, match="does not allow the source 'hub'"):
        fetch_study(load_study("small_models"))


def test_a_replica_never_stands_in_for_stored_vectors() -> None:
    found = study_vectors(load_study("solar_glm"), "stored")
    assert found.kind == "stored"
    assert not found.vectors


def test_hub_means_an_extract_with_a_commit() -> None:
    study = changed(load_study("small_models"), sources=("stored", "hub"))
    found = study_vectors(study, "hub", ["smollm2"])
    assert "no commit is on record" in found.missing["smollm2"]


def test_fetching_keeps_what_could_be_read_and_names_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Question] = []
    folders: list[Path] = []

    def keep(questions: list[Question], *, out: Path) -> Iterator[SourceError | None]:
        folders.append(out)
        for question in questions:
            asked.append(question)
            yield SourceError("It is gated.") if question.source.startswith("zai") else None

    monkeypatch.setattr("lnsim.checkpoint.extract.extract_many", keep)
    study, told = load_study("solar_glm"), []
    failed = fetch_study(study, told.append)
    assert [question.source for question in asked] == [model.repo_id for model in study.models]
    assert [folder.name for folder in folders] == ["solar_glm"]
    assert set(failed.values()) == {"It is gated."}
    assert told == [model.key for model in study.models]


def test_a_model_cannot_be_there_and_missing() -> None:
    with pytest.raises(StudyError, match="a cannot be both there and missing"):
        StudyVectors("stored", {"a": None}, {"a": "gone"})  # type: ignore[dict-item]


def test_the_command_that_fetches_names_the_study() -> None:
    assert fetch_command(load_study("solar_glm")) == "python run_all.py --study solar_glm --source hub"
    assert fetch_command(load_study("small_models")) == "git checkout -- data/vectors/small_models"
    assert fetch_command(load_study("zoo")) == "python -m studies.zoo"
    assert "fetch_command" in vectors.__all__

"""Tests of a study's vectors by source."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from lnsim.errors import StudyError
from lnsim.study.catalog import Study, load_study
from lnsim.study.vectors import fetch_command, study_vectors
from studies.run.plans import fetch_study


def test_auto_gives_the_stored_vectors_of_every_model_in_the_studys_order() -> None:
    study = load_study("small_models")
    found = study_vectors(study)
    assert found.kind == "stored"
    assert list(found.vectors) == [model.key for model in study.models]
    assert not found.missing


def test_a_model_without_a_stored_file_is_missing_with_the_reason() -> None:
    study = load_study("small_models")
    assert list(study_vectors(study, "stored", ["smollm2"]).vectors) == ["smollm2"]
    found = study_vectors(replace(study, models=(replace(study.models[0], stored="no-such-file"), *study.models[1:])))
    assert list(found.missing) == [study.models[0].key]
    assert "There is no stored model 'no-such-file'" in found.missing[study.models[0].key]
    found = study_vectors(replace(study, sources=("stored", "hub")), "hub", ["smollm2"])
    assert "no commit is on record" in found.missing["smollm2"]  # hub means an extract with one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda study: study_vectors(study, "auto", ["gpt"]),
         "'small_models' has no model 'gpt'; its models are minilm, "),
        (lambda study: study_vectors(study, "cloud"), "'cloud' is not a source; known are auto, stored, hub, replica"),
        (lambda study: study_vectors(study, "replica"), "does not allow the source 'replica', only stored"),
        (fetch_study, "does not allow the source 'hub'"),
    ],
)  # fmt: skip
def test_what_a_study_does_not_have_or_allow_is_refused(call: Callable[[Study], object], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        call(load_study("small_models"))


def test_the_command_that_fetches_names_the_study() -> None:
    assert fetch_command(load_study("solar_glm")) == "python run_all.py --study solar_glm --source hub"
    assert fetch_command(load_study("small_models")) == "git checkout -- data/vectors/small_models"
    assert fetch_command(load_study("zoo")) == "python -m studies.zoo"

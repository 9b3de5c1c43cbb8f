"""What a replica is good for: its control points, and the word for agreeing with it there."""

from __future__ import annotations

from pathlib import Path

import pytest
from published_claims import FOLDER, by_the_others, corpus

import lnsim
from lnsim.study.vectors import study_vectors
from studies.claims import judging, report
from studies.claims.cells import Vector
from studies.claims.control_points import control_points

ROOT = FOLDER.parents[2]
CALIBRATION = ROOT / "data" / "studies" / "replica" / "solar_glm.toml"


@pytest.fixture(scope="module")
def judged() -> tuple[judging.Judged, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LNSIM_HOME", str(ROOT))
        study = lnsim.load_study("solar_glm")
        found = study_vectors(study, "replica")
        points = control_points(CALIBRATION)
        return judging.judge(corpus(), found.vectors, True, points, by_the_others())


def test_the_control_points_are_those_of_the_calibration_file() -> None:
    points = control_points(CALIBRATION)
    assert ("pre_attention", Vector("solar", 10)) in points
    assert ("pre_attention", Vector("solar", 11)) not in points
    assert ("pre_attention", Vector("intellect", 40)) in points  # made from a model that has one there


def test_what_agrees_at_control_points_is_calibrated_and_nothing_else_is(judged: tuple[judging.Judged, ...]) -> None:
    points = control_points(CALIBRATION)
    for one in judged:
        if one.verdict == judging.CALIBRATED and "@" in one.claim.members:
            assert one.measured is not None
            cells = judging._cells(one.claim, corpus().n_layers)
            assert all((cell.role, side) in points for cell in cells for side in (cell.a, cell.b) if side is not None)
    assert not [one for one in judged if one.verdict == judging.DIFFERS]


def test_at_least_seventy_numbers_of_document_001_are_calibrated_and_none_reproduced_but_by_arithmetic(
    judged: tuple[judging.Judged, ...],
) -> None:
    in_001 = [one for one in judged if one.claim.document == "001"]
    assert sum(one.verdict == judging.CALIBRATED for one in in_001) >= 70
    assert all(one.by_arithmetic for one in in_001 if one.verdict == judging.REPRODUCED)


def test_what_the_vectors_cannot_say_is_said_all_the_same(judged: tuple[judging.Judged, ...]) -> None:
    assert sum(one.verdict == judging.CONTRADICTED for one in judged) == 87
    table = report.verdict_table(judged, {"glm": "GLM"})
    assert len(table) == 443
    assert (table.because[table.verdict == judging.UNTESTED] != "").all()
    assert (table.other_number[table.verdict == judging.CONTRADICTED] != "").all()
    assert table.because["004-139"].startswith("GLM: printed (config.json of the model)")
    assert table.because["004-087"] == "Printed (solar-vs-glm-sanity-check, layernorm_sanity.csv)."


def test_the_counts_add_up(judged: tuple[judging.Judged, ...]) -> None:
    for counts in (report.by_document(judged), report.by_published(judged)):
        assert counts.loc[report.TOTAL, report.TOTAL] == 443
        body = counts.drop(index=report.TOTAL, columns=report.TOTAL)
        assert (body.sum(axis=1) == counts[report.TOTAL].drop(report.TOTAL)).all()


def test_a_calibration_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(lnsim.errors.StudyError, match=r"there is no file data/studies/replica/none\.toml"):
        control_points(tmp_path / "none.toml")

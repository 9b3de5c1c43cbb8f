"""Verdicts: against the audit, with a replica, and with vectors that were read from the Hub."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest
from published_claims import by_the_others, corpus

import lnsim
from lnsim.study.vectors import study_vectors
from studies.claims import judging
from studies.claims.bounds import AGREES, CONTRADICTS
from studies.claims.rows import Vector

PACKAGE = Path(judging.__file__).parent
AUDIT = (Path(__file__).parent / "data" / "audit_contradicted.txt").read_text("utf-8")

ONLY_THE_AUDIT = {
    # The right half of a conflict: 46 layers were compared, and the config says 46; the row that says 47 is found.
    "004-038": AGREES,
    # An r of 0.01 with a model whose sibling has -0.002. With r between the two siblings printed as 1 to two digits,
    # anything from -0.10 to 0.10 can be, so no published number excludes it.
    "004-160": judging.NOTHING,
}
ONLY_THE_RULES = {
    # Two means in one row: one of them agrees with the figure's title, the other does not. The audit called it mixed.
    "004-004",
    # An order of three standard deviations that layers 0 to 2 do not keep. The audit called it mostly right.
    "004-083",
}


def audited() -> set[str]:
    return {name for line in AUDIT.splitlines() if not line.startswith("#") for name in line.split()}


def found() -> set[str]:
    return {name for name, one in by_the_others().items() if one.outcome == CONTRADICTS}


def test_the_rules_find_the_87_of_the_audit_but_for_two_and_two_more_each_with_its_evidence() -> None:
    assert len(audited()) == 87
    assert audited() - found() == set(ONLY_THE_AUDIT)
    assert found() - audited() == ONLY_THE_RULES
    assert {name: by_the_others()[name].outcome for name in ONLY_THE_AUDIT} == ONLY_THE_AUDIT
    for name in found():
        assert all(one.bound.sources and one.bound.how for one in by_the_others()[name].findings), name


def test_no_claim_is_evidence_against_itself_or_against_others_once_it_is_excluded() -> None:
    # A list of models and the count of their pairs exclude each other, so there each is evidence against the other.
    counts = {claim.name for claim in corpus().claims if claim.metric == "n_pairs"}
    firm = {name for name in found() if by_the_others()[name].findings[0].bound.firm} - counts
    for name, one in by_the_others().items():
        used = {source for finding in one.findings for source in finding.bound.sources}
        assert name not in used
        assert not used & firm, name


def test_the_judging_code_names_no_row_and_no_printed_number() -> None:
    names = {claim.name for claim in corpus().claims}
    digits = {value: value.replace(".", "").strip("-0") for value in (claim.value for claim in corpus().claims)}
    printed = {float(value) for value, said in digits.items() if said.isdigit() and len(said) >= 3}
    for path in PACKAGE.glob("*.py"):
        constants = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        assert not [value for value in constants if isinstance(value, str) and value in names], path.name
        assert not [value for value in constants if isinstance(value, float) and value in printed], path.name


@pytest.fixture(scope="module")
def vectors(replica: None) -> Mapping[str, lnsim.NormVectors]:
    return study_vectors(lnsim.load_study("solar_glm"), "replica").vectors


@pytest.fixture(scope="module")
def judged(vectors: Mapping[str, lnsim.NormVectors]) -> tuple[judging.Judged, ...]:
    points = judging.control_points("solar_glm", "replica") or frozenset()
    return judging.judge(corpus(), vectors, points, by_the_others())


def test_the_control_points_are_those_of_the_calibration_file() -> None:
    points = judging.control_points("solar_glm", "replica") or frozenset()
    assert ("pre_attention", Vector("solar", 10)) in points
    assert ("pre_attention", Vector("solar", 11)) not in points
    assert ("pre_attention", Vector("intellect", 40)) in points  # made from a model that has one there
    with pytest.raises(lnsim.errors.StudyError, match=r"there is no file data/studies/replica/none\.toml"):
        judging.control_points("none", "replica")


def test_at_least_70_numbers_of_001_are_calibrated_and_none_reproduced(judged: tuple[judging.Judged, ...]) -> None:
    assert not [one for one in judged if one.verdict == judging.DIFFERS]
    in_001 = [one for one in judged if one.claim.document == "001"]
    assert sum(one.verdict == judging.CALIBRATED for one in in_001) >= 70
    assert all(one.by_arithmetic for one in judged if one.verdict == judging.REPRODUCED)


def test_vectors_from_the_hub_judge_every_row_that_they_can(vectors: Mapping[str, lnsim.NormVectors]) -> None:
    """As if those of two models had been read there."""
    two = {key: vectors[key] for key in ("solar", "glm")}
    judged = judging.judge(corpus(), two, judging.control_points("solar_glm", "hub"), by_the_others())
    verdicts = {one.claim.name: one.verdict for one in judged}
    assert len(judged) == 443
    assert not {judging.CALIBRATED, judging.FROM_REPLICA} & set(verdicts.values())
    # These vectors were built to the numbers of 001, so as real ones they reproduce them and differ from the table.
    assert verdicts["001-017"] == verdicts["001-001"] == judging.REPRODUCED
    assert verdicts["004-091"] == judging.DIFFERS
    assert verdicts["001-018"] == judging.UNTESTED
    assert verdicts["001-049"] == judging.CONTRADICTED

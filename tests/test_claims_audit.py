"""What the rules find, beside what an audit by hand had found before any of them was written."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from published_claims import by_the_others, corpus

from studies.claims import judging
from studies.claims.evaluate import AGREES, CONTRADICTS

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


def test_the_rules_find_the_87_of_the_audit_but_for_two_and_two_more() -> None:
    assert len(audited()) == 87
    assert audited() - found() == set(ONLY_THE_AUDIT)
    assert found() - audited() == ONLY_THE_RULES


@pytest.mark.parametrize(("name", "outcome"), ONLY_THE_AUDIT.items())
def test_where_the_audit_alone_saw_a_contradiction_the_rules_say_otherwise(name: str, outcome: str) -> None:
    assert by_the_others()[name].outcome == outcome


def test_every_contradiction_names_its_evidence() -> None:
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
    for path in set(PACKAGE.glob("*.py")) - {PACKAGE / "plots.py"}:  # which draws, and judges nothing
        constants = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        assert not [value for value in constants if isinstance(value, str) and value in names], path.name
        assert not [value for value in constants if isinstance(value, float) and value in printed], path.name


def test_the_document_whose_outputs_are_stored_elsewhere_loses_nothing_but_counts() -> None:
    in_001 = [claim for claim in corpus().claims if claim.document == "001"]
    lost = {claim.metric for claim in in_001 if by_the_others()[claim.name].outcome == CONTRADICTS}
    assert lost == {"n_pairs", "n_models"}

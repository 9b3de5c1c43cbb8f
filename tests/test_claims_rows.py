"""The data file of published numbers: every row of it, and what a broken one is told."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from published_claims import FOLDER, corpus

from lnsim.errors import StudyError
from studies.claims.rows import read_claims, read_facts

HEADER = "claim,document,line,section,statement,metric,statistic,role,members,meaning,value,low,high,half,note\n"
ROW = "000-001,000,1,s,A cosine,cosine,,pre_attention,a@1:b@1,equals,0.38,,,0.005,\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "published.csv"
    path.write_text(text, "utf-8")
    return path


def test_there_are_443_rows_each_with_a_name_of_its_own() -> None:
    claims = corpus().claims
    assert len(claims) == len({claim.name for claim in claims}) == 443
    assert {claim.document for claim in claims} == {"000", "001", "002", "003", "004"}


def test_no_column_of_the_data_carries_a_verdict() -> None:
    assert (FOLDER / "published.csv").read_text("utf-8").startswith(HEADER)


def test_every_number_that_was_read_from_words_says_so() -> None:
    """Bounds and tolerances that no document prints must be named as a reading."""
    read = [claim for claim in corpus().claims if claim.meaning == "at most" and claim.half == 0]
    assert all("eading" in claim.note or claim.metric == "percent" for claim in read)
    assert all(claim.note for claim in corpus().claims if claim.meaning == "words")


@pytest.mark.parametrize(
    ("meaning", "value", "low", "high", "half", "expected"),
    [
        ("equals", "0.38", "", "", "0.005", (0.375, 0.385)),
        ("about", "1.0", "", "", "0.25", (0.75, 1.25)),
        ("at least", "0.9", "", "", "0.005", (0.895, math.inf)),
        ("at most", "0.5", "", "", "0", (-math.inf, 0.5)),
        ("range", "", "0.94", "0.99", "0.005", (0.935, 0.995)),
    ],
)
def test_a_printed_number_stands_for_an_interval(
    tmp_path: Path, meaning: str, value: str, low: str, high: str, half: str, expected: tuple[float, float]
) -> None:
    row = f"000-001,000,1,s,A cosine,cosine,,pre_attention,a@1:b@1,{meaning},{value},{low},{high},{half},\n"
    (claim,) = read_claims(written(tmp_path, HEADER + row))
    assert (claim.allowed.low, claim.allowed.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + ROW + ROW, "expected each claim once, found 000-001 again"),
        (HEADER + ROW.replace("equals", "roughly"), "expected a meaning among equals, about, .* found 'roughly'"),
        (HEADER + ROW.replace("0.38", "low"), "Reading 000-001: expected a number as 'value', found 'low'"),
        (HEADER + ROW.replace("A cosine", ""), "expected a statement, and a name that begins with its document"),
        (HEADER + ROW.replace("equals,0.38,,,0.005", "words,,,,"), "words without a number need a note"),
        (HEADER.replace("half", "verdict") + ROW, "expected the columns claim, document, .* found others"),
    ],
)
def test_a_row_that_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        read_claims(written(tmp_path, text))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"there is no data/claims/peers.csv"):
        read_facts(tmp_path / "peers.csv")

"""Published numbers as they were read: rows, the vectors that they speak of, and those of the small GPT-2s."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from published_claims import FOLDER, corpus

from lnsim.errors import StudyError
from studies.claims.rows import Cell, Vector, cells_of, models_of, printed_cosines, read_claims, read_facts

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
    assert (FOLDER / "published.csv").read_text("utf-8").startswith(HEADER)  # no column carries a verdict


def test_every_number_that_was_read_from_words_says_so() -> None:
    """Bounds and tolerances that no document prints must be named as a reading."""
    read = [claim for claim in corpus().claims if claim.meaning == "at most" and claim.half == 0]
    assert all("eading" in claim.note or claim.metric == "percent" for claim in read)
    assert all(claim.note for claim in corpus().claims if claim.meaning == "words")


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


DEPTHS = {"a": 4, "b": 3, "c": 3}


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ("a@10", [(10, None)]),
        ("a@0-2:b@=", [(0, 0), (1, 1), (2, 2)]),
        ("a@0-1:b@!=", [(0, 1), (1, 0)]),
        ("a@*:b@=", [(0, 0), (1, 1), (2, 2)]),
        ("within(a)@1,2,3", [(1, 2), (1, 3), (2, 3)]),
        ("a@1:a@1,2", [(1, 2)]),  # a layer is never set beside itself
    ],
)
def test_a_selection_gives_its_layers(selection: str, expected: list[tuple[int, int | None]]) -> None:
    found = cells_of(selection, ["r"], DEPTHS)
    assert [(cell.a.layer, cell.b.layer if cell.b else None) for cell in found] == expected


def test_pairs_and_cross_name_each_pair_of_models_once() -> None:
    pairs = cells_of("pairs(a,b,c)@1", ["r"], DEPTHS)
    assert [(cell.a.model, cell.b.model) for cell in pairs if cell.b] == [("a", "b"), ("a", "c"), ("b", "c")]
    cross = cells_of("cross(a|b,c)@1,2", ["r"], DEPTHS)
    assert [(cell.b.model, cell.b.layer) for cell in cross if cell.b] == [("b", 1), ("b", 2), ("c", 1), ("c", 2)]
    assert models_of("pairs(a,b)@10;cross(a|c)@5") == ("a", "b", "c")
    assert models_of("one@0-46:two@!=") == ("one", "two")
    found = cells_of("a@1;a@1;a@2", ["r", "s"], DEPTHS)  # every role repeats the cells, and a cell comes once
    assert found == [Cell(role, Vector("a", layer)) for role in "rs" for layer in (1, 2)]
    assert Cell("r", Vector("a", 1)).layers == Cell("r", Vector("a", 1), Vector("b", 1)).layers == "layer 1"
    assert Cell("r", Vector("a", 1), Vector("b", 2)).layers == "layers 1 and 2"


ROOT = Path(__file__).resolve().parents[1]


REFUSED = {
    "a file that is not there": (
        lambda: read_facts(ROOT / "none" / "peers.csv"), r"there is no data/claims/peers.csv"),
    "all layers of a model of unknown depth": (
        lambda: cells_of("z@*:a@=", ["r"], DEPTHS), "needs the number of layers of 'z'"),
    "a list without cosines of 003": (lambda: printed_cosines([]), "none of 0 claims is of 'gpt2 toy'"),
    **{f"the selection {text}": (
        lambda text=text: cells_of(text, ["r"], DEPTHS),
        "expected vectors written like a@10, a@0-46:b@= or pairs",
    ) for text in ("a", "a@x", "a@1:b@2:c@3", "A@1", "pairs(a)")},
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        call()

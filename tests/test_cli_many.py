"""`lnsim relatives` and `lnsim matrix` as a user runs them: best first, JSON, CSV, what fails is named, one page."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from test_two_models import Ran, ran

import lnsim
from lnsim.paths import stored_models

__all__ = ["ran"]

MINILM = ("all-minilm-l6-v2", "sre-minilm-l6", "multilingual-e5-small")
FEW = ("--permutations", "9999")


def listed(*words: str) -> list[dict[str, Any]]:
    code, out, err = run(*words, "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    return list(json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON")))


def test_relatives_are_listed_best_first_with_the_fields_of_the_contract_and_without_the_model_itself() -> None:
    found = listed("relatives", "multilingual-e5-small", *FEW)
    assert {"name", "r", "pvalue", "p_adjusted", "strength", "sentence"} <= set(found[0])
    assert [one["strength"] for one in found] == ["identical", *["none"] * 4]
    assert found[0]["name"] == "portuguese-e5-small"
    assert "multilingual-e5-small" not in {one["name"] for one in found}
    assert found[0]["p_adjusted"] == pytest.approx(5 * found[0]["pvalue"])


def test_the_model_may_be_a_file_and_is_not_its_own_relative() -> None:
    path = stored_models()["sre-minilm-l6"]
    code, out, _ = run("relatives", str(path), "--study", "small_models", *FEW)
    lines = out.splitlines()
    assert (code, lines[0]) == (0, f"{path}: 6 models compared, 1 more are of another hidden size.")
    assert lines[2].split()[:2] == ["all-minilm-l6-v2", "1.000"]
    assert "sre-minilm-l6 " not in "".join(lines[1:])
    assert "same number, 13 of 13  strong" in lines[2]
    assert "[1] Strong shared-origin signal, layer by layer." in out
    assert "2 others without a signal; the largest r is 0.0" in out
    assert "1 not compared (no norm of one can be set against a norm of the other): whisper-tiny.en." in out


def test_strangers_are_counted_or_listed_with_all() -> None:
    among = ("relatives", "multilingual-e5-small", "--among", *MINILM[:2], *FEW)
    assert "None stands out.\n2 others without a signal" in run(*among)[1]
    assert "sre-minilm-l6     0.0" in run(*among, "--all")[1]


def test_what_cannot_be_read_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    code, out, err = run("relatives", MINILM[0], "--among", MINILM[1], str(tmp_path / "nothing"), *FEW)
    assert (code, err.count("\n")) == (1, 1)
    assert "nothing': there is no such file or folder" in err
    assert "sre-minilm-l6  1.000" in out
    code, out, err = run("relatives", "sre-minilm-l7", "--among", MINILM[0])
    assert (code, out) == (1, "")
    assert "Did you mean 'sre-minilm-l6'" in err


def test_every_pair_is_printed_written_and_given_as_json(tmp_path: Path) -> None:
    found = listed("matrix", *MINILM, *FEW, "--csv", str(tmp_path / "pairs.csv"))
    assert (found[0]["a"], found[0]["b"]) == MINILM[:2]
    assert [one["strength"] for one in found] == ["strong", "none", "none"]
    with (tmp_path / "pairs.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["r"]) for row in rows] == [one["r"] for one in found]
    assert (rows[0]["same"], rows[0]["sentence"]) == ("13", found[0]["sentence"])
    code, out, _ = run("matrix", *MINILM, *FEW)
    assert (code, out.splitlines()[0]) == (0, "3 models, 3 pairs.")
    assert "2 others without a signal; the largest r is 0.013 (all-minilm-l6-v2 × multilingual-e5-small)." in out
    assert len(run("matrix", *MINILM, *FEW, "--all")[1].splitlines()) == 7


def test_stored_models_are_chosen_by_a_part_of_their_name_or_folder() -> None:
    found = listed("matrix", "--stored", "one-seed-0[12]", "--permutations", "1999")
    assert [(one["a"], one["b"]) for one in found] == [("one-seed-01", "one-seed-02")]
    assert len(listed("matrix", "--stored", "small_models", "--permutations", "200")) == 28


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "found 0, in 0 of them"),
        ((MINILM[0], MINILM[0]), "found 1, in 1 of them"),
        ((*MINILM, "--study", "small_models"), "found 8, in 2 of them"),
        (("--stored", "no such model"), "found 0, in 1 of them"),
    ],
)
def test_models_are_named_in_one_way_and_are_two_or_more(words: tuple[str, ...], said: str) -> None:
    code, out, err = run("matrix", *words)
    assert (code, out) == (1, "")
    assert said in err


def test_a_csv_that_cannot_be_written_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, _, err = run("matrix", *MINILM[:2], *FEW, "--csv", str(tmp_path / "file" / "x.csv"))
    assert (code, err.count("\n")) == (1, 1)
    assert "Writing the pairs into" in err


def test_the_folder_of_a_report_holds_the_extracts_the_record_and_what_makes_it_again(tmp_path: Path, ran: Ran) -> None:
    folder = tmp_path / "r"
    code, out, err = run("matrix", *MINILM, *FEW, "--report", str(folder))
    assert (code, err, out.splitlines()[-1]) == (0, "", f"Report: {folder / 'index.html'}")
    (given,) = ran.parameters
    assert list(given["models"]) == list(MINILM)
    assert {lnsim.load(path).n_vectors for path in given["models"].values()} == {13, 25}
    assert given["command"] == f"lnsim matrix {' '.join(MINILM)} --permutations 9999 --report {folder}"
    record = json.loads((folder / "matrix.json").read_text("utf-8"))
    assert (record["models"], len(record["pairs"])) == (list(MINILM), 3)
    code, _, err = run("matrix", *MINILM[:2], *FEW, "--report", str(folder))
    assert code == 1
    assert f"it holds a report on other models ({', '.join(MINILM)})" in err


@pytest.mark.slow
def test_the_page_of_many_is_whole_and_says_how_many_stand_out(tmp_path: Path) -> None:
    code, _, err = run("matrix", "--study", "small_models", "--report", str(tmp_path / "r"))
    assert (code, err) == (0, "")
    page = (tmp_path / "r" / "index.html").read_text("utf-8")
    assert "<title>Which of 8 models share a pattern in their norm vectors?" in page
    assert "7 of 28 pairs of 8 models stand out" in page
    assert "Group of 4: " in page
    assert "0 of 8 shuffled copies and 8 of 8 copies that keep half" in page
    assert "copied" not in page.replace("copies", "")
    tables = {path.name for path in (tmp_path / "r" / "tables").iterdir()}
    assert tables == {f"matrix_{name}.csv" for name in ("models", "pairs", "links", "controls")}
    assert len(list((tmp_path / "r" / "figures").iterdir())) == 2

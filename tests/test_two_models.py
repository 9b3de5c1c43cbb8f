"""The page of two models that someone asks about: its folder, what it refuses to replace, and the whole of it once."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from safetensors import safe_open
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors, write_files

import lnsim
from lnsim.paths import stored_models
from lnsim.report import html, two_models
from lnsim.report.notebooks import Outcome

A, B = "all-minilm-l6-v2", "sre-minilm-l6"


@dataclass
class Ran:
    """What would have been executed: nothing runs, and the parameters are noted."""

    parameters: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None

    def execute(self, notebook: Any, output: Path, parameters: dict[str, Any], root: Path, timeout: int) -> Outcome:
        self.parameters.append(parameters)
        return Outcome("compare", notebook.path.stem, "?", "failed" if self.error else "done", 1.0, self.error)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    ran = Ran()
    monkeypatch.setattr(two_models, "execute", ran.execute)
    report = html.Report("Question?", {}, None)
    monkeypatch.setattr(html, "read_report", lambda path: report)
    monkeypatch.setattr(html, "write_report", lambda report, path: path)
    return ran


def reported(a: str, b: str, folder: Path, *more: str) -> tuple[int, str, str]:
    return run("compare", a, b, "--report", str(folder), "--permutations", "1999", *more)


def test_the_folder_holds_both_extracts_the_record_and_what_makes_it_again(tmp_path: Path, ran: Ran) -> None:
    folder = tmp_path / "new" / "r"
    code, out, err = reported(A, B, folder, "--role", "post_mlp")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"Report: {folder / 'index.html'}"
    (given,) = ran.parameters
    assert (given["name_a"], given["name_b"]) == (A, B)
    assert (given["n_permutations"], given["seed"], given["roles"]) == (1999, 0, ["post_mlp"])
    assert given["command"] == f"lnsim compare {A} {B} --report {folder} --permutations 1999 --role post_mlp"
    assert list(lnsim.load(given["b"]).roles) == ["post_mlp"]
    assert {path.parent for path in map(Path, (given["a"], given["b"]))} == {folder / "vectors"}
    record = json.loads((folder / "comparison.json").read_text("utf-8"))
    assert (record["a"], record["b"], record["verdict"]["key"]) == (A, B, "one_by_one")


def test_the_extracts_of_folders_are_written_too_and_names_differ(tmp_path: Path, ran: Ran) -> None:
    for seed, name in enumerate(("x/it's", "y/it's")):
        write_files(tmp_path / name, checkpoint_files(llama_tensors(seed=seed), LLAMA_CONFIG))
    assert reported(str(tmp_path / "x" / "it's"), str(tmp_path / "y" / "it's"), tmp_path / "r")[0] == 0
    (given,) = ran.parameters
    assert (given["name_a"], given["name_b"]) == ("it's (a)", "it's (b)")
    assert lnsim.load(given["a"]).n_vectors == lnsim.load(given["b"]).n_vectors > 0


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, ran: Ran) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    code, out, err = reported(A, B, folder)
    assert code == 1
    assert "Verdict: " in out
    assert f"Writing reports into '{folder}': it holds other files, such as 'thesis.txt'" in err
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    assert "it is a file; name a folder" in reported(A, B, folder / "thesis.txt")[2]


def test_the_same_page_may_be_made_again_and_no_other(tmp_path: Path, ran: Ran) -> None:
    code, out, _ = reported(A, B, tmp_path / "r", "--json")
    assert (code, json.loads(out)["report"]) == (0, str(tmp_path / "r" / "index.html"))
    assert reported(A, B, tmp_path / "r", "--json")[0] == 0
    code, out, err = reported(A, "multilingual-e5-small", tmp_path / "r", "--json")
    assert (code, json.loads(out)["report"]) == (1, None)
    assert f"it holds a report on other models ({A} and {B}); name a new or an empty folder" in err


def test_a_notebook_that_fails_is_an_error_that_names_its_cell(tmp_path: Path, ran: Ran) -> None:
    ran.error = "ValueError in cell 7: no"
    code, _, err = reported(A, B, tmp_path / "r")
    assert code == 1
    assert "ValueError in cell 7: no. 'compare.ipynb' there holds all up to that cell." in err


def test_vectors_of_a_replica_get_no_page(tmp_path: Path, ran: Ran) -> None:
    path = tmp_path / "replica.safetensors"
    with safe_open(stored_models()[A], framework="np") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        path.write_bytes(file_bytes(tensors, file.metadata() | {"replica": "yes"}))
    code, out, err = reported(str(path), str(path), tmp_path / "r")
    assert code == 1
    assert "Verdict: REPLICA, synthetic vectors. Identical" in out
    assert "it is a replica, synthetic, and says nothing about a model" in err


def without_code(text: str) -> str:
    """A page without its cells of code, where `np.nan` may stand."""
    kept, cells = re.subn(r'<details class="cell code">.*?</details>', "", text, flags=re.DOTALL)
    assert cells
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("others", ["with controls", "of a width that no control has"])
def test_a_page_is_made_from_end_to_end(tmp_path: Path, others: str) -> None:
    words = [A, B]
    if others != "with controls":
        for seed in (0, 1):
            tensors = llama_tensors(4, 72, seed)
            config = LLAMA_CONFIG | {"num_hidden_layers": 4, "hidden_size": 72}
            words[seed] = str(write_files(tmp_path / f"m{seed}", checkpoint_files(tensors, config)))
    folder, controls = tmp_path / "r", others == "with controls"
    code, _, err = reported(*words, folder)
    assert (code, err) == (0, "")
    text = without_code((folder / "index.html").read_text("utf-8"))
    assert f"<h1>Do the norm vectors of {Path(words[0]).name} and {Path(words[1]).name} share a pattern?</h1>" in text
    assert ("has no control from other models.</dd>" in text) != controls
    first = text[text.index("<dt>Finding</dt>") :].partition("</dd>")[0]
    assert ("Strong shared-origin signal, layer by layer" if controls else "No shared-origin signal") in first
    assert ("REAL WEIGHTS, stored" if controls else "WEIGHTS AS GIVEN") in text
    again = text[text.rindex("Made again by") :]
    assert "lnsim compare" in again
    assert "run_all.py" not in again
    assert ">nan<" not in text
    assert "../" not in re.sub(r"data:[^\"]*", "", text)
    linked = re.findall(r'href="(tables/[^"]+)"', text)
    assert linked
    assert all((folder / name).is_file() for name in linked)


@pytest.mark.slow
def test_with_evidence_the_page_tells_what_the_rows_show_and_the_folder_holds_them(tmp_path: Path) -> None:
    folder, other = tmp_path / "r", "paraphrase-minilm-l3-v2"
    code, _, err = reported(A, other, folder, "--evidence", "--same-token-ids")
    assert (code, err) == (0, "")
    text = without_code((folder / "index.html").read_text("utf-8"))
    assert "Rows of the matrices: strong." in text
    assert "Token rows: signs agree with z = 19.6 of at most 19.6 (384 signs)" in text
    again = text[text.rindex("Made again by") :]
    assert f"lnsim compare {A} {other}" in again
    assert "--evidence --same-token-ids" in again
    kept = [lnsim.load(path, evidence=True).rows for path in (folder / "vectors").iterdir()]
    assert all(rows is not None and rows.tokens is not None and len(rows.values()) == 2 for rows in kept)

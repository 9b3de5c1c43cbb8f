"""From the Hub's stand-in to a report: a study of another file runs notebook 01 unchanged, with commit and badge."""

from __future__ import annotations

from pathlib import Path

import pytest
from hub_stand_in import COMMIT, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors

from lnsim.study.catalog import load_study
from lnsim.study.vectors import study_vectors
from studies.run.plans import fetch_study, plan_study, run_plans
from studies.run.selection import list_notebooks

MODEL = """
[[models]]
key = "{0}"
label = "{1}"
repo_id = "owner/{0}"
revision = "main"
colour = "{2}"
family = "Llama"
kind = "dense"
"""
STUDY = f"""
title = "Two tiny models"
about = "A study that no notebook was written for."
sources = ["hub"]
{MODEL.format("one", "One <script>alert(1)</script>", "#0b5fa5")}{MODEL.format("two", "Two", "#bf4a00")}
[experiments.01]
model = "one"
roles = ["pre_attention", "pre_mlp"]
models = ["one", "two"]
baseline_layer = 0
layers = [1, 3]
n_permutations = 99
seed = 0
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with this study only, and no vectors."""
    (tmp_path / "data" / "studies").mkdir(parents=True)
    (tmp_path / "data" / "studies" / "tiny.toml").write_text(STUDY)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return tmp_path


@pytest.fixture
def stocked(hub: HubStandIn) -> HubStandIn:
    hub.add("owner/one", checkpoint_files(llama_tensors(n_layers=5), {**LLAMA_CONFIG, "num_hidden_layers": 5}))
    hub.add("owner/two", checkpoint_files(llama_tensors(), LLAMA_CONFIG), gated=True)
    return hub


@pytest.mark.usefixtures("home")
def test_a_study_is_fetched_once_and_what_could_be_read_is_there_with_its_commit(stocked: HubStandIn) -> None:
    study = load_study("tiny")
    assert list(fetch_study(study)) == ["two"]
    asked = len(stocked.requests)
    found = study_vectors(study, "hub")
    assert (found.kind, found.vectors["one"].commit, list(found.missing)) == ("hub", COMMIT, ["two"])
    assert len(stocked.requests) == asked


@pytest.mark.slow
def test_the_report_of_a_study_says_hub_and_commit_and_asks_nothing_more(home: Path, stocked: HubStandIn) -> None:
    fetch_study(load_study("tiny"))
    asked = len(stocked.requests)
    notebooks = [n for n in list_notebooks(Path(__file__).parents[1] / "notebooks") if n.number == "01"]
    plan = plan_study("tiny", "hub", notebooks, asked=True)
    (run,) = run_plans([plan], home / "reports", home, {}, 1, 120, lambda name, ended: None)
    assert run.outcomes["01"].error is None
    assert run.agreements()[0].not_compared == "tiny was asked from another source (hub) than was recorded"
    assert (run.source, run.commits) == ("hub", {"one": COMMIT})
    html = (home / "reports" / "tiny" / "01_layer0_baseline.html").read_text("utf-8")
    assert "REAL WEIGHTS, from the Hub" in html
    assert COMMIT in html
    assert "python run_all.py --study tiny --source hub --only 01" in html
    assert "<script>alert(1)" not in html
    assert len(stocked.requests) == asked

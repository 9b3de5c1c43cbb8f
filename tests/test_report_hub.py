"""From the Hub's stand-in to a report: a study of another file runs notebook 01 unchanged, with commit and badge."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hub_stand_in import COMMIT, HubStandIn
from made_tokenizers import byte_level
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
    study, told = load_study("tiny"), []
    assert list(fetch_study(study, told.append)) == ["two"]
    assert told == ["one", "two"]
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


SIZES = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
TOWER = SIZES | {"model_type": "siglip_vision_model"}
# By model what its own config says beside the sizes, the stem of its vision tower and the prefix of its text model.
LAYOUTS: dict[str, tuple[dict[str, object], str, str]] = {
    "siglip": ({"model_type": "siglip", "text_config": SIZES, "vision_config": TOWER}, "vision_model.", "text_"),
    "paligemma": (
        {"model_type": "paligemma", "text_config": SIZES | {"model_type": "gemma"}, "vision_config": TOWER},
        "vision_tower.vision_model.",
        "language_model.",
    ),
    "minicpm": ({"model_type": "minicpmv", "architectures": ["MiniCPMV"], "vision_config": TOWER}, "vpm.", "llm."),
}


def with_vision(stem: str, text: str) -> dict[str, np.ndarray]:
    """Two blocks of a vision tower with their values, beside a Llama."""
    found = {text + name: one for name, one in llama_tensors(2, 64).items()}
    for block in (f"{stem}encoder.layers.{number}." for number in range(2)):
        norms = [f"{block}layer_norm{number}.{kind}" for number in (1, 2) for kind in ("weight", "bias")]
        found |= {name: np.random.default_rng(len(name)).normal(1, 0.1, 64).astype("f4") for name in norms}
        found[f"{block}self_attn.v_proj.weight"] = np.eye(64, dtype="f4")
    return found


def test_of_every_model_that_holds_a_vision_tower_that_tower_is_read_with_its_rows(hub: HubStandIn, home: Path) -> None:
    shutil.copy(Path(__file__).parents[1] / "data" / "studies" / "vision_towers.toml", home / "data" / "studies")
    study = load_study("vision_towers")
    for model in study.models:
        config, stem, text = LAYOUTS[model.key.rstrip("2")]
        hub.add(str(model.repo_id), checkpoint_files(with_vision(stem, text), SIZES | config))
    assert fetch_study(study, evidence=True) == {}
    found = study_vectors(study, "hub", evidence=True)
    assert list(found.vectors) == [model.key for model in study.models]
    for vectors in found.vectors.values():
        assert vectors.main_tower == "vision"
        assert vectors.roles["pre_attention"].layers.tolist() == [0, 1]
        assert vectors.rows is not None
        assert vectors.rows.tokens is None
        assert len(vectors.rows.values()) == 2
        assert "its vision tower reads no tokens" in vectors.rows.missing[0]


DISPUTE = f"""
title = "A dispute of tiny models"
about = "A parent, its child, a stranger, and one whose values are packed."
sources = ["hub"]
{MODEL.format("a", "A", "#0b5fa5")}{MODEL.format("b", "B", "#bf4a00")}{MODEL.format("c", "C", "#117733")}
{MODEL.format("d", "D", "#332288")}
[[relations]]
a = "a"
b = "b"
kind = "disputed"
evidence = "Somebody says so."

[[relations]]
a = "b"
b = "d"
kind = "disputed"
evidence = "Both have to do with A."

[[relations]]
a = "a"
b = "d"
kind = "fine_tune"
evidence = "The card says so."

[experiments.15]
models = ["a", "b", "c", "d"]
same_token_ids = false
n_draws = 50
n_permutations = 199
seed = 0
"""


def tiny(seed: int, moved: float = 0.0, order: int | None = None) -> dict[str, np.ndarray]:
    """A Llama of two blocks and 2,000 tokens; `moved` from that of the seed, its channels in another order."""
    rng, noise = np.random.default_rng(seed), np.random.default_rng(100 + seed)
    shapes = {name: one.shape for name, one in llama_tensors(2, 64).items()}
    shapes |= {"model.embed_tokens.weight": (2000, 64)}
    shapes |= {f"model.layers.{n}.self_attn.v_proj.weight": (64, 64) for n in range(2)}
    found = {name: rng.normal(len(shape) == 1, 0.1, shape) for name, shape in sorted(shapes.items())}
    found = {name: one + moved * noise.normal(0, 0.1, one.shape) for name, one in found.items()}
    channels = slice(None) if order is None else np.random.default_rng(order).permutation(64)
    return {name: np.ascontiguousarray(one[..., channels]).astype(np.float32) for name, one in found.items()}


@pytest.mark.slow
def test_a_dispute_is_fetched_with_its_rows_and_report_15_says_what_could_not_be_tested(
    home: Path, hub: HubStandIn
) -> None:
    (home / "data" / "studies" / "dispute.toml").write_text(DISPUTE)
    config = {**LLAMA_CONFIG, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    packed = tiny(1, 0.2)
    for block in range(2):
        packed[f"model.layers.{block}.self_attn.v_proj.weight"] = np.zeros((64, 64), np.uint8)
    models = {"a": tiny(1), "b": tiny(1, 0.3, order=7), "c": tiny(2), "d": packed}
    for name, tensors in models.items():
        hub.add(f"owner/{name}", checkpoint_files(tensors, config) | {"tokenizer.json": byte_level()})
    assert fetch_study(load_study("dispute"), evidence=True) == {}
    notebooks = [n for n in list_notebooks(Path(__file__).parents[1] / "notebooks") if n.number == "15"]
    for folder in ("vectors", "rows"):  # the pair that is shown where the study has none with rows of both kinds
        stored = Path(__file__).parents[1] / "data" / folder / "small_models"
        shutil.copytree(stored, home / "data" / folder / "small_models")
    plan = plan_study("dispute", "hub", notebooks, asked=True)
    (run,) = run_plans([plan], home / "reports", home, {}, 1, 120, lambda name, ended: None)
    assert run.outcomes["15"].error is None
    html = (home / "reports" / "dispute" / "15_beyond_norms.html").read_text("utf-8")
    assert "1 of 1 known to be related, and 0 of 3 of strangers." in html
    assert "U8 of shape [64, 64], expected a matrix of F64" in html

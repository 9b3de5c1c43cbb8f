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


def blocks(stem: str, *norms: str, value: str = "self_attn.v_proj", bias: bool = False) -> dict[str, np.ndarray]:
    """Two blocks of 64 channels under a stem, with these norms and, where there is one, a matrix of values."""
    rng, found = np.random.default_rng(len(stem)), {}
    for block in range(2):
        for norm in norms:
            found |= {
                f"{stem}.{block}.{norm}.{kind}": rng.normal(1, 0.1, 64) for kind in ("weight", "bias")[: 1 + bias]
            }
        if value:
            found[f"{stem}.{block}.{value}.weight"] = rng.normal(0, 0.1, (64, 64))
    return {name: one.astype(np.float32) for name, one in found.items()}


LLAMA = blocks("model.layers", "input_layernorm", "post_attention_layernorm") | {"model.norm.weight": np.ones(64, "f4")}
LATENT = blocks("model.layers", "input_layernorm", "post_attention_layernorm", "self_attn.q_a_layernorm",
                "self_attn.kv_a_layernorm", value="") | {"model.norm.weight": np.ones(64, "f4")}  # fmt: skip
OLMO = blocks("model.layers", "post_attention_layernorm", "post_feedforward_layernorm", "self_attn.q_norm",
              "self_attn.k_norm") | {"model.norm.weight": np.ones(64, "f4")}  # fmt: skip


def vision(stem: str) -> dict[str, np.ndarray]:
    return blocks(f"{stem}encoder.layers", "layer_norm1", "layer_norm2", bias=True)


SIZES = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
TOWER = SIZES | {"model_type": "siglip_vision_model"}
SIGLIP = ({"model_type": "siglip", "text_config": SIZES, "vision_config": TOWER},
          vision("vision_model.") | vision("text_model."))  # fmt: skip
# What the models' own configs say, and how their tensors are called.
LAYOUTS: dict[str, tuple[dict[str, object], dict[str, np.ndarray]]] = {
    "rakuten": ({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"]}, LATENT),
    "v3": ({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"]}, LATENT),
    "v3_base": ({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"]}, LATENT),
    "r1": ({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"]}, LATENT),
    "k2": ({"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"]}, LATENT),
    "pangu": ({"model_type": "PanguProMoE", "architectures": ["PanguProMoEForCausalLM"]}, LLAMA),
    **{key: ({"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}, LLAMA)
       for key in ("qwen14b", "qwen14b_it", "r1_14b")},
    "phi4": ({"model_type": "phi3", "architectures": ["Phi3ForCausalLM"]}, LLAMA),
    "olmo2": ({"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"]}, OLMO),
    "siglip": SIGLIP,
    "siglip2": SIGLIP,
    "paligemma": ({"model_type": "paligemma", "text_config": SIZES | {"model_type": "gemma"}, "vision_config": TOWER},
                  {f"language_model.{name}": one for name, one in LLAMA.items()}
                  | vision("vision_tower.vision_model.")),
    "minicpm": ({"model_type": "minicpmv", "architectures": ["MiniCPMV"], "vision_config": TOWER},
                {f"llm.{name}": one for name, one in LLAMA.items()} | vision("vpm.")
                | {"resampler.ln_q.weight": np.ones(64, "f4"), "resampler.ln_q.bias": np.ones(64, "f4")}),
}  # fmt: skip


@pytest.mark.parametrize("name", ["rakuten_deepseek", "pangu_qwen", "vision_towers"])
def test_every_model_of_another_dispute_is_read_by_its_own_model_type_with_its_rows(
    name: str, hub: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load_study(name)
    shutil.copytree(Path(__file__).parents[1] / "data" / "studies", tmp_path / "data" / "studies")
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    for model in study.models:
        config, tensors = LAYOUTS[model.key]
        hub.add(str(model.repo_id), checkpoint_files(tensors, SIZES | config))
    assert fetch_study(study, evidence=True) == {}
    found = study_vectors(study, "hub", evidence=True)
    assert not found.missing
    for model in study.models:
        vectors = found.vectors[model.key]
        assert vectors.main_tower == (model.tower or "text")
        role = "post_attention" if model.key == "olmo2" else "pre_attention"
        assert vectors.roles[role].layers.tolist() == [0, 1]
        assert vectors.rows is not None
        assert len(vectors.rows.values()) == (0 if name == "rakuten_deepseek" else 2)


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

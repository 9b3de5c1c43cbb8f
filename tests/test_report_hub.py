"""From the Hub's stand-in to reports: a study of another file runs notebooks unchanged, with commit, badge and rows."""

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

ROOT = Path(__file__).parents[1]
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
RELATION = """
[[relations]]
a = "{}"
b = "{}"
kind = "{}"
evidence = "Somebody says so."
"""
LABELS = {
    "one": "One <script>alert(1)</script>",
    "child": "Child",
    "other": "Other",
    "packed": "Packed",
    "shut": "Shut",
}
STUDY = f"""
title = "A dispute of tiny models"
about = "A parent, its child, a stranger, one whose values are packed, and one that is gated."
sources = ["hub"]
{"".join(MODEL.format(key, label, f"#{place}b5fa5") for place, (key, label) in enumerate(LABELS.items()))}
{RELATION.format("one", "child", "disputed")}{RELATION.format("child", "packed", "disputed")}
{RELATION.format("one", "packed", "fine_tune")}
[experiments.01]
model = "one"
roles = ["pre_attention", "pre_mlp"]
models = ["one", "shut"]
baseline_layer = 0
layers = [1]
n_permutations = 99
seed = 0

[experiments.15]
models = ["one", "child", "other", "packed"]
same_token_ids = false
n_draws = 50
n_permutations = 199
seed = 0
"""

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


def with_vision(key: str, seed: int = 0) -> dict[str, bytes]:
    """Two blocks of a vision tower with their values, beside a Llama."""
    rng, (config, stem, text) = np.random.default_rng(seed), LAYOUTS[key]
    found = {text + name: one for name, one in llama_tensors(2, 64).items()}
    for block in (f"{stem}encoder.layers.{number}." for number in range(2)):
        norms = [f"{block}layer_norm{number}.{kind}" for number in (1, 2) for kind in ("weight", "bias")]
        found |= {name: rng.normal(1, 0.1, 64).astype("f4") for name in norms}
        found[f"{block}self_attn.v_proj.weight"] = np.eye(64, dtype="f4")
    return checkpoint_files(found, SIZES | config)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with this study only, and no vectors."""
    (tmp_path / "data" / "studies").mkdir(parents=True)
    (tmp_path / "data" / "studies" / "tiny.toml").write_text(STUDY)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path


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


@pytest.fixture
def stocked(hub: HubStandIn) -> HubStandIn:
    packed = {name: np.zeros((64, 64), np.uint8) for name in tiny(1) if "v_proj" in name}
    models = {"one": tiny(1), "child": tiny(1, 0.3, order=7), "other": tiny(2), "packed": tiny(1, 0.2) | packed}
    for name, tensors in (models | {"shut": tiny(3)}).items():
        files = checkpoint_files(tensors, LLAMA_CONFIG | SIZES) | {"tokenizer.json": byte_level()}
        hub.add(f"owner/{name}", files, gated=name == "shut")
    return hub


@pytest.mark.usefixtures("home")
def test_a_study_is_fetched_once_and_what_could_be_read_is_there_with_its_commit(stocked: HubStandIn) -> None:
    study, told = load_study("tiny"), []
    assert list(fetch_study(study, told.append)) == ["shut"]
    assert told == list(LABELS)
    asked = len(stocked.requests)
    found = study_vectors(study, "hub")
    assert (found.kind, found.vectors["one"].commit, list(found.missing)) == ("hub", COMMIT, ["shut"])
    assert len(stocked.requests) == asked


@pytest.mark.slow
def test_reports_say_hub_commit_and_what_could_not_be_tested_and_ask_nothing_more(
    home: Path, stocked: HubStandIn
) -> None:
    fetch_study(load_study("tiny"), evidence=True)
    asked = len(stocked.requests)
    for folder in ("vectors", "rows"):  # the pair that is shown where the study has none with rows of both kinds
        shutil.copytree(ROOT / "data" / folder / "small_models", home / "data" / folder / "small_models")
    notebooks = [one for one in list_notebooks(ROOT / "notebooks") if one.number in ("01", "15")]
    plan = plan_study("tiny", "hub", notebooks, asked=True)
    (run,) = run_plans([plan], home / "reports", home, {}, 1, 120, lambda name, ended: None)
    assert [run.outcomes[number].error for number in ("01", "15")] == [None, None]
    assert run.agreements()[0].not_compared == "tiny was asked from another source (hub) than was recorded"
    assert (run.source, run.commits["one"], run.commits["packed"]) == ("hub", COMMIT, COMMIT)
    assert "shut" not in run.commits
    html = (home / "reports" / "tiny" / "01_layer0_baseline.html").read_text("utf-8")
    assert "REAL WEIGHTS, from the Hub" in html
    assert COMMIT in html
    assert "python run_all.py --study tiny --source hub --only 01" in html
    assert "<script>alert(1)" not in html
    assert len(stocked.requests) == asked
    html = (home / "reports" / "tiny" / "15_beyond_norms.html").read_text("utf-8")
    assert "1 of 1 known to be related, and 0 of 3 of strangers." in html
    assert "U8 of shape [64, 64], expected a matrix of F64" in html


# By study: what the configs of its models say, by the key of a model or, for all others, by none.
MODEL_TYPES = {
    "rakuten_deepseek": {"": "deepseek_v3", "k2": "kimi_k2"},
    "pangu_qwen": {"": "qwen2", "pangu": "PanguProMoE", "phi4": "phi3", "olmo2": "olmo2"},
}
NORMS = {
    "olmo2": ("post_attention_layernorm", "post_feedforward_layernorm", "self_attn.q_norm", "self_attn.k_norm"),
    "": ("input_layernorm", "post_attention_layernorm"),
}


def text_model(model_type: str) -> dict[str, bytes]:
    """Two blocks of 64 channels; those of the DeepSeek kind have norms of latent values in place of values."""
    latent = model_type in ("deepseek_v3", "kimi_k2")
    parts = NORMS.get(model_type, NORMS[""]) + (("self_attn.kv_a_layernorm",) if latent else ())
    names = [f"model.layers.{block}.{part}.weight" for block in range(2) for part in parts]
    found = dict.fromkeys([*names, "model.norm.weight"], np.ones(64, np.float32))
    if not latent:
        found |= {f"model.layers.{block}.self_attn.v_proj.weight": np.eye(64, dtype=np.float32) for block in range(2)}
    return checkpoint_files(found, SIZES | {"model_type": model_type})


@pytest.mark.parametrize("name", ["rakuten_deepseek", "pangu_qwen", "vision_towers"])
def test_every_model_of_another_dispute_is_read_by_its_own_model_type_with_its_rows(
    name: str, hub: HubStandIn, home: Path
) -> None:
    shutil.copy(ROOT / "data" / "studies" / f"{name}.toml", home / "data" / "studies")
    study, types = load_study(name), MODEL_TYPES.get(name, {})
    for model in study.models:
        files = text_model(types.get(model.key, types[""])) if types else with_vision(model.key.rstrip("2"))
        hub.add(str(model.repo_id), files)
    assert fetch_study(study, evidence=True) == {}
    found = study_vectors(study, "hub", evidence=True)
    assert list(found.vectors) == [model.key for model in study.models]
    for key, vectors in found.vectors.items():
        assert vectors.main_tower == ("text" if types else "vision")
        assert vectors.roles["post_attention" if key == "olmo2" else "pre_attention"].layers.tolist() == [0, 1]
        assert vectors.rows is not None
        assert len(vectors.rows.values()) == (0 if name == "rakuten_deepseek" else 2)
        if not types:
            assert vectors.rows.tokens is None
            assert "its vision tower reads no tokens" in vectors.rows.missing[0]

"""The repos of data/atlas/controls.txt as a Hub would serve them: small models of their families, norms drawn anew.

Three repos are gated, as on the Hub, and one is missing. MultiBERTs are served as safetensors here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
from hub_stand_in import COMMIT, HubStandIn
from safetensors_bytes import checkpoint_files, llama_tensors
from traced_families import TRACED, shapes_of

from lnsim.atlas.store import Wanted
from lnsim.cli_atlas import read_list

CONTROLS = Path(__file__).resolve().parents[1] / "data" / "atlas" / "controls.txt"
MISSING = "EleutherAI/llemma_7b"
GATED = ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "google/paligemma-3b-pt-224")

# By the start of a repo id: the traced model whose norms it has, and its own model type.
FAMILIES = {
    "EleutherAI/": ("gpt_neox", "gpt_neox"),
    "google/multiberts": ("bert", "bert"),
    "google-bert/": ("bert", "bert"),
    "Qwen/": ("qwen2", "qwen2"),
    "allenai/OLMo-2": ("olmo2", "olmo2"),
    "mistralai/": ("mistral", "mistral"),
    "Rakuten/": ("deepseek_v3", "deepseek_v3"),
    "deepseek-ai/": ("deepseek_v3", "deepseek_v3"),
    "moonshotai/": ("deepseek_v3", "kimi_k2"),
    "IntervitensInc/": ("qwen2", "PanguProMoE"),
    "microsoft/phi-4": ("phi3", "phi3"),
    "upstage/Solar-Open": ("solar_open", "solar_open"),
    "zai-org/": ("glm4_moe", "glm4_moe"),
    "PrimeIntellect/": ("glm4_moe", "glm4_moe"),
    "": ("llama", "llama"),
}
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


def stock(hub: HubStandIn) -> list[Wanted]:
    """Serve every repo of the list but the missing one; returns the list."""
    wanted = read_list(CONTROLS)
    for seed, one in enumerate(wanted):
        repo_id, _, branch = one.source.partition("@")
        if repo_id == MISSING:
            continue
        tower = next((key for key in LAYOUTS if key in repo_id.lower()), None)
        files = with_vision(tower, seed) if tower else _text_model(repo_id, seed)
        commit = hashlib.sha1(branch.encode()).hexdigest() if branch else COMMIT
        hub.add(repo_id, files, branch=branch or "main", commit=commit, gated=repo_id in GATED)
    return wanted


def _text_model(repo_id: str, seed: int) -> dict[str, bytes]:
    family, model_type = next(found for start, found in FAMILIES.items() if repo_id.startswith(start))
    rng = np.random.default_rng(seed)
    tensors = {name: rng.normal(1, 0.2, shape).astype("f4") for name, shape in shapes_of(TRACED[family]).items()}
    return checkpoint_files(tensors, TRACED[family]["config"] | {"model_type": model_type})

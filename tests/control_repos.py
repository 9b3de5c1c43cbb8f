"""The repos of data/atlas/controls.txt as a Hub would serve them: names, depths and widths of their families.

Norms are drawn anew for each repo; matrices are there in their places, so that norms are about as far apart as in the
real files. Three repos are gated, as on the Hub, and one is missing. MultiBERTs are served as safetensors here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hub_stand_in import COMMIT, HubStandIn, VirtualFile, virtual_shard
from virtual_dispute import DISPUTE, dispute_files

from lnsim.atlas.store import Wanted
from lnsim.cli_atlas import read_list

CONTROLS = Path(__file__).resolve().parents[1] / "data" / "atlas" / "controls.txt"
MISSING = "EleutherAI/llemma_7b"
GATED = ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B-Instruct", "google/paligemma-3b-pt-224")

_BLOCKS = {
    "llama": ("input_layernorm w", "mlp.down_proj m", "mlp.gate_proj m", "post_attention_layernorm w", "self_attn m"),
    "olmo2": ("mlp m", "post_attention_layernorm w", "post_feedforward_layernorm w", "self_attn.k_proj m"),
    "gpt_neox": ("attention.dense m", "input_layernorm wb", "mlp m", "post_attention_layernorm wb"),
    "bert": ("attention.output.LayerNorm wb", "attention.self m", "intermediate m", "output.LayerNorm wb"),
    "siglip": ("layer_norm1 wb", "layer_norm2 wb", "mlp m", "self_attn m"),
}
_STEMS = {
    "llama": ("model.layers.{}.", "model.norm w"),
    "olmo2": ("model.layers.{}.", "model.norm w"),
    "gpt_neox": ("gpt_neox.layers.{}.", "gpt_neox.final_layer_norm wb"),
    "bert": ("bert.encoder.layer.{}.", "bert.embeddings.LayerNorm wb"),
    "siglip": ("vision_model.encoder.layers.{}.", "vision_model.post_layernorm wb"),
}
_SHAPES = {  # by the start of a repo id: model type, layers, channels, shards
    "EleutherAI/pythia-160m": ("gpt_neox", 12, 768, 1),
    "google/multiberts": ("bert", 12, 768, 1),
    "google-bert/": ("bert", 12, 768, 1),
    "Qwen/Qwen2.5-14B": ("qwen2", 48, 5120, 8),
    "Qwen/Qwen2.5": ("qwen2", 28, 3584, 4),
    "meta-llama/": ("llama", 32, 4096, 4),
    "allenai/OLMo-2": ("olmo2", 32, 4096, 6),
    "codellama/": ("llama", 32, 4096, 2),
    "nvidia/Llama-3.1-Minitron-4B-Depth": ("llama", 16, 4096, 2),
    "nvidia/Llama-3.1-Minitron-4B-Width": ("llama", 32, 3072, 2),
    "mistralai/": ("mistral", 32, 4096, 2),
    "upstage/SOLAR": ("llama", 48, 4096, 5),
    "01-ai/Yi-6B": ("llama", 32, 4096, 2),
    "01-ai/Yi-9B": ("llama", 48, 4096, 4),
    "TencentARC/": ("llama", 40, 4096, 2),
    "Rakuten/": ("deepseek_v3", 61, 7168, 163),
    "deepseek-ai/": ("deepseek_v3", 61, 7168, 163),
    "moonshotai/": ("kimi_k2", 61, 7168, 61),
    "IntervitensInc/": ("PanguProMoE", 48, 5120, 15),
    "microsoft/phi-4": ("phi3", 40, 5120, 6),
    "google/siglip": ("siglip", 27, 1152, 1),
    "google/paligemma": ("paligemma", 27, 1152, 3),
    "openbmb/": ("minicpmv", 27, 1152, 7),
}  # fmt: skip


def stock(hub: HubStandIn) -> list[Wanted]:
    """Serve every repo of the list but the missing one; returns the list."""
    wanted, dispute = read_list(CONTROLS), {family.repo_id: family for family in DISPUTE}
    for one in wanted:
        repo_id, _, branch = one.source.partition("@")
        if repo_id == MISSING:
            continue
        files = dispute_files(dispute[repo_id]) if repo_id in dispute else _files(repo_id, branch)
        commit = hashlib.sha1(branch.encode()).hexdigest() if branch else COMMIT
        hub.add(repo_id, files, branch=branch or "main", commit=commit, gated=repo_id in GATED)
    return wanted


def _files(repo_id: str, branch: str) -> dict[str, bytes | VirtualFile]:
    kind, n_layers, size, n_shards = next(shape for start, shape in _SHAPES.items() if repo_id.startswith(start))
    content = partial(_bytes, repo_id + branch)
    entries = list(_entries(kind, n_layers, size))
    per = -(-len(entries) // n_shards)
    shards = [sorted(entries[first : first + per]) for first in range(0, len(entries), per)]
    names = [f"model-{n + 1:05d}-of-{len(shards):05d}.safetensors" for n in range(len(shards))]
    files: dict[str, bytes | VirtualFile] = {"config.json": json.dumps(_config(kind, n_layers, size)).encode()}
    if len(shards) == 1:
        return files | {"model.safetensors": virtual_shard(shards[0], content)}
    weight_map = {entry[0]: name for name, some in zip(names, shards, strict=True) for entry in some}
    files["model.safetensors.index.json"] = json.dumps({"weight_map": weight_map}).encode()
    return files | {name: virtual_shard(some, content) for name, some in zip(names, shards, strict=True)}


def _config(kind: str, n_layers: int, size: int) -> dict[str, Any]:
    shape = {"num_hidden_layers": n_layers, "hidden_size": size}
    if kind == "siglip":
        return {"model_type": "siglip_vision_model", **shape}
    if kind == "paligemma":
        text = {"model_type": "gemma", "num_hidden_layers": 18, "hidden_size": 2048}
        return {
            "model_type": kind,
            "vision_config": {"model_type": "siglip_vision_model", **shape},
            "text_config": text,
        }
    return {"model_type": kind, **shape}


def _entries(kind: str, n_layers: int, size: int) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    if kind in ("paligemma", "minicpmv"):
        prefix = "vision_tower.vision_model." if kind == "paligemma" else "vpm."
        for name, *rest in _entries("siglip", n_layers, size):
            yield (prefix + name.removeprefix("vision_model."), *rest)
        prefix, depth, width = ("language_model.", 18, 2048) if kind == "paligemma" else ("llm.", 32, 4096)
        for name, *rest in _entries("llama", depth, width):
            yield (prefix + name, *rest)
        return
    family = kind if kind in _BLOCKS else "llama"
    stem, last = _STEMS[family]
    parts = [f"{stem.format(layer)}{part}" for layer in range(n_layers) for part in _BLOCKS[family]]
    for part in (*parts, last):
        name, what = part.split()
        if what == "m":
            yield f"{name}.weight", "BF16", (4 * size, size), 8 * size * size
        else:
            ends = ("bias", "weight") if what == "wb" else ("weight",)
            yield from ((f"{name}.{end}", "BF16", (size,), 2 * size) for end in ends)


def _bytes(repo: str, tensor: str, n_bytes: int) -> bytes:
    seed = int(hashlib.sha256(f"{repo}/{tensor}".encode()).hexdigest()[:12], 16)
    return np.random.default_rng(seed).normal(0.5, 0.1, n_bytes // 2).astype(ml_dtypes.bfloat16).tobytes()

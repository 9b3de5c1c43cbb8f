"""Checkpoints of the size of real ones, of which only the norms have bytes: for tests and benchmarks."""

from __future__ import annotations

import hashlib
import json

import ml_dtypes
import numpy as np
from hub_stand_in import VirtualFile, virtual_shard


def norm_bytes(name: str, n_bytes: int) -> bytes:
    seed = int(hashlib.sha256(name.encode()).hexdigest()[:12], 16)
    return np.random.default_rng(seed).normal(0.3, 0.05, n_bytes // 2).astype(ml_dtypes.bfloat16).tobytes()


def solar_like(n_layers: int = 48, n_shards: int = 42) -> dict[str, bytes | VirtualFile]:
    shards: list[list[tuple[str, str, tuple[int, ...], int]]] = [[] for _ in range(n_shards)]
    for layer in range(n_layers):
        entries = shards[layer * n_shards // n_layers]
        stem = f"model.layers.{layer}"
        entries.append((f"{stem}.input_layernorm.weight", "BF16", (4096,), 8192))
        for expert in range(128):
            for kind in ("down", "gate", "up"):
                name = f"{stem}.mlp.experts.{expert}.{kind}_proj.weight"
                entries.append((name, "BF16", (1408, 4096), 1408 * 4096 * 2))
        entries.append((f"{stem}.post_attention_layernorm.weight", "BF16", (4096,), 8192))
        entries.extend((f"{stem}.self_attn.{k}_proj.weight", "BF16", (4096, 4096), 2 * 4096**2) for k in "kqvo")
    shards[-1].append(("model.norm.weight", "BF16", (4096,), 8192))
    names = [f"model-{i + 1:05d}-of-{n_shards:05d}.safetensors" for i in range(n_shards)]
    files: dict[str, bytes | VirtualFile] = {
        name: virtual_shard(entries, norm_bytes) for name, entries in zip(names, shards, strict=True)
    }
    weight_map = {e[0]: name for name, entries in zip(names, shards, strict=True) for e in entries}
    config = {"model_type": "solar_open", "num_hidden_layers": n_layers, "hidden_size": 4096}
    files["config.json"] = json.dumps(config).encode()
    files["model.safetensors.index.json"] = json.dumps({"weight_map": weight_map}).encode()
    return files

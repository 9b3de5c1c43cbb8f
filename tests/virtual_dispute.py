"""The ten checkpoints of the dispute as a Hub would serve them: true headers over bytes that are made when read.

Tensor names, shapes and dtypes follow the models' public configs. Shards are cut as ``save_pretrained`` cuts them, in
the order of the state dict and at a stated size, and each file lists its tensors by dtype and name, as the format does.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
from hub_stand_in import VirtualFile, virtual_shard

N_BYTES = {"BF16": 2, "F32": 4}
Entry = tuple[str, str, tuple[int, ...], int]


@dataclass(frozen=True)
class Family:
    """What one checkpoint holds.

    ``width`` is that of a dense MLP, 0 where every layer has experts; of those, ``dense_layers`` come before the first.
    Heads have 128 channels. ``attention_bias`` is that of q, k and v; ``mtp`` says that an MTP block follows the last
    layer; at ``shard_bytes`` a shard is closed.
    """

    repo_id: str
    model_type: str
    n_layers: int
    vocabulary: int
    heads: int = 32
    kv_heads: int = 8
    width: int = 0
    experts: int = 0
    expert_width: int = 0
    spelling: str = "llama"
    attention_bias: bool = False
    norm_bias: bool = False
    dense_layers: int = 0
    mtp: bool = False
    shard_bytes: int = 5_000_000_000
    hidden_size: int = field(default=4096, init=False)

    @property
    def config(self) -> dict[str, Any]:
        """What its config.json says, as far as a reader of norms needs it."""
        return {
            "model_type": self.model_type,
            "num_hidden_layers": self.n_layers,
            "hidden_size": self.hidden_size,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "num_nextn_predict_layers": int(self.mtp),
        }


DISPUTE = (
    Family("upstage/Solar-Open-100B", "solar_open", 48, 196_608, heads=64, experts=128, expert_width=1280),
    Family(
        "zai-org/GLM-4.5-Air", "glm4_moe", 46, 151_552, heads=96, width=10_944, experts=128, expert_width=1408,
        attention_bias=True, dense_layers=1, mtp=True,
    ),
    Family(
        "PrimeIntellect/INTELLECT-3", "glm4_moe", 46, 151_552, heads=96, width=10_944, experts=128, expert_width=1408,
        attention_bias=True, dense_layers=1,
    ),
    Family(
        "microsoft/Phi-3.5-MoE-instruct", "phimoe", 32, 32_064, experts=16, expert_width=6400, spelling="mixtral",
        attention_bias=True, norm_bias=True,
    ),
    Family(
        "mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral", 32, 32_000, experts=8, expert_width=14_336,
        spelling="mixtral",
    ),
    Family("mistralai/Mistral-7B-Instruct-v0.3", "mistral", 32, 32_768, width=14_336),
    Family("01-ai/Yi-1.5-6B-Chat", "llama", 32, 64_000, kv_heads=4, width=11_008),
    Family("01-ai/Yi-1.5-9B-Chat", "llama", 48, 64_000, kv_heads=4, width=11_008),
    Family(
        "internlm/internlm2-chat-7b", "internlm2", 32, 92_544, width=14_336, spelling="internlm2",
        shard_bytes=2_000_000_000,
    ),
    Family("Qwen/Qwen1.5-7B-Chat", "qwen2", 32, 151_936, kv_heads=32, width=11_008, attention_bias=True),
)  # fmt: skip


@cache
def dispute_files(family: Family) -> Mapping[str, bytes | VirtualFile]:
    """File name to content of one checkpoint."""
    shards = _cut(list(_tensors(family)), family.shard_bytes)
    names = [f"model-{n + 1:05d}-of-{len(shards):05d}.safetensors" for n in range(len(shards))]
    files: dict[str, bytes | VirtualFile] = {
        # By size of the dtype first, then by name, as the format's own writer orders them.
        name: virtual_shard(sorted(entries, key=lambda e: (-N_BYTES[e[1]], e[0])), partial(dispute_bytes, family))
        for name, entries in zip(names, shards, strict=True)
    }
    weight_map = {entry[0]: name for name, entries in zip(names, shards, strict=True) for entry in entries}
    index = {"metadata": {"total_size": sum(e[3] for shard in shards for e in shard)}, "weight_map": weight_map}
    files["config.json"] = json.dumps(family.config).encode()
    files["model.safetensors.index.json"] = json.dumps(index).encode()
    return MappingProxyType(files)


def dispute_bytes(family: Family, tensor: str, n_bytes: int) -> bytes:
    """The bytes of one of its norms: another for each model and each tensor."""
    seed = int(hashlib.sha256(f"{family.repo_id}/{tensor}".encode()).hexdigest()[:12], 16)
    return np.random.default_rng(seed).normal(0.3, 0.05, n_bytes // 2).astype(ml_dtypes.bfloat16).tobytes()


def _cut(entries: list[Entry], limit: int) -> list[list[Entry]]:
    shards: list[list[Entry]] = [[]]
    size = 0
    for entry in entries:
        if size + entry[3] > limit and shards[-1]:
            shards.append([])
            size = 0
        shards[-1].append(entry)
        size += entry[3]
    return shards


def _entry(name: str, *shape: int, dtype: str = "BF16") -> Entry:
    return name, dtype, shape, math.prod(shape) * N_BYTES[dtype]


def _tensors(family: Family) -> Iterator[Entry]:
    """Every tensor in the order of the state dict."""
    hidden = family.hidden_size
    embedding, head = "model.embed_tokens.weight", "lm_head.weight"
    if family.spelling == "internlm2":
        embedding, head = "model.tok_embeddings.weight", "output.weight"
    yield _entry(embedding, family.vocabulary, hidden)
    for layer in range(family.n_layers + family.mtp):
        stem = f"model.layers.{layer}."
        yield from _block(family, stem, layer)
        if layer == family.n_layers:
            yield _entry(f"{stem}eh_proj.weight", hidden, 2 * hidden)
            yield from (_entry(f"{stem}{name}.weight", hidden) for name in ("enorm", "hnorm", "shared_head.norm"))
    yield from _norm(family, "model.norm.")
    yield _entry(head, family.vocabulary, hidden)


def _block(family: Family, stem: str, layer: int) -> Iterator[Entry]:
    yield from _attention(family, stem)
    yield from _mlp(family, stem, layer)
    as_llama = family.spelling != "internlm2"
    for norm in ("input_layernorm", "post_attention_layernorm") if as_llama else ("attention_norm", "ffn_norm"):
        yield from _norm(family, f"{stem}{norm}.")


def _norm(family: Family, stem: str) -> Iterator[Entry]:
    yield _entry(f"{stem}weight", family.hidden_size)
    if family.norm_bias:
        yield _entry(f"{stem}bias", family.hidden_size)


def _attention(family: Family, stem: str) -> Iterator[Entry]:
    hidden, rows, kv_rows = family.hidden_size, family.heads * 128, family.kv_heads * 128
    if family.spelling == "internlm2":
        yield _entry(f"{stem}attention.wqkv.weight", rows + 2 * kv_rows, hidden)
        yield _entry(f"{stem}attention.wo.weight", hidden, rows)
        return
    for name, count in (("q", rows), ("k", kv_rows), ("v", kv_rows)):
        yield _entry(f"{stem}self_attn.{name}_proj.weight", count, hidden)
        if family.attention_bias:
            yield _entry(f"{stem}self_attn.{name}_proj.bias", count)
    yield _entry(f"{stem}self_attn.o_proj.weight", hidden, rows)


def _mlp(family: Family, stem: str, layer: int) -> Iterator[Entry]:
    hidden = family.hidden_size
    names = {"mixtral": "w1 w2 w3", "internlm2": "w1 w3 w2"}.get(family.spelling, "gate_proj up_proj down_proj")
    if not family.experts or layer < family.dense_layers:
        place = "feed_forward." if family.spelling == "internlm2" else "mlp."
        yield from _matrices(f"{stem}{place}", names, family.width, hidden)
        return
    place = f"{stem}{'block_sparse_moe' if family.spelling == 'mixtral' else 'mlp'}."
    if family.spelling == "mixtral":
        yield _entry(f"{place}gate.weight", family.experts, hidden)
    for expert in range(family.experts):
        yield from _matrices(f"{place}experts.{expert}.", names, family.expert_width, hidden)
    if family.spelling != "mixtral":
        yield _entry(f"{place}gate.weight", family.experts, hidden)
        yield _entry(f"{place}gate.e_score_correction_bias", family.experts, dtype="F32")
        yield from _matrices(f"{place}shared_experts.", names, family.expert_width, hidden)


def _matrices(stem: str, names: str, width: int, hidden: int) -> Iterator[Entry]:
    for name in names.split():
        down = name in ("down_proj", "w2")
        yield _entry(f"{stem}{name}.weight", *((hidden, width) if down else (width, hidden)))

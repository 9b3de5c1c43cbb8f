"""This module says of a GGUF file's metadata what a config would say: model type, blocks, channels and heads.

The tables stand in ``names.toml``; how tensors are called stands in ``families.toml``. Norms are stored as they act:
where a checkpoint stores γ minus one, llama.cpp's converter has added the one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lnsim.checkpoint.families.names import WORDS

_MODEL_TYPES: Mapping[str, str] = WORDS["gguf"]["architectures"]
_KEYS: Mapping[str, str] = WORDS["gguf"]["keys"]


def gguf_config(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The config of a GGUF file, empty where its metadata name no architecture.

    >>> gguf_config({"general.architecture": "qwen3moe", "qwen3moe.block_count": "48"})
    {'model_type': 'qwen3_moe', 'num_hidden_layers': 48}
    """
    architecture = metadata.get("general.architecture")
    if architecture is None:
        return {}
    told = {name: metadata.get(f"{architecture}.{key}", "") for key, name in _KEYS.items()}
    config: dict[str, Any] = {name: int(text) for name, text in told.items() if text.isdecimal()}
    if "num_hidden_layers" in config:  # those for multi-token prediction are counted in
        config["num_hidden_layers"] -= config.get("num_nextn_predict_layers", 0)
    return {"model_type": _MODEL_TYPES.get(architecture, architecture)} | config

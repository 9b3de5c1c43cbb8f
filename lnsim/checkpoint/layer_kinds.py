"""This module reads from a config what kind each layer is, and the switches that change a family's layout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = [
    "has",
    "hybrid_pattern",
    "is_false",
    "jamba_kinds",
    "layer_types",
    "mamba_indices",
    "mllama_kinds",
    "recurrent_kinds",
]

Config = Mapping[str, Any]

HYBRID_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
MAX_LAYERS = 10_000


def has(config: Config, key: str) -> bool:
    """Whether the config sets ``key`` to anything."""
    return config.get(key) is not None


def is_false(config: Config, key: str) -> bool:
    """Whether the config says no; a key that is not there says nothing."""
    return config.get(key) is False


def layer_types(config: Config) -> tuple[str, ...]:
    """The list ``layer_types`` (or its older names), empty where there is none."""
    for key in ("layer_types", "layers_block_type"):
        value = config.get(key)
        if isinstance(value, list) and all(isinstance(kind, str) for kind in value):
            return tuple(value)
    return _split(config, "full_attn_idxs", "full_attention", "conv")  # LFM2's first configs


def hybrid_pattern(config: Config) -> tuple[str, ...]:
    """Nemotron-H: one letter a layer, M for Mamba, * for attention, - for an MLP, E for experts."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return tuple(HYBRID_LETTERS.get(letter, "unknown") for letter in pattern)
    return tuple("attention" if kind == "full_attention" else kind for kind in layer_types(config))


def mamba_indices(config: Config) -> tuple[str, ...]:
    """Bamba: ``attn_layer_indices`` lists the attention layers, the others are Mamba."""
    return _split(config, "attn_layer_indices", "attention", "mamba")


def jamba_kinds(config: Config) -> tuple[str, ...]:
    """Jamba: one attention layer every ``attn_layer_period``, from ``attn_layer_offset``; the others are Mamba."""
    period, offset = config.get("attn_layer_period"), config.get("attn_layer_offset")
    if not isinstance(period, int) or not isinstance(offset, int) or period < 1:
        return ()
    return tuple("attention" if layer % period == offset else "mamba" for layer in range(_count(config)))


def recurrent_kinds(config: Config) -> tuple[str, ...]:
    """RecurrentGemma: ``block_types`` repeated over the layers."""
    types = config.get("block_types") or config.get("_block_types")
    if not isinstance(types, list) or not types or not all(isinstance(kind, str) for kind in types):
        return ()
    return tuple(types[layer % len(types)] for layer in range(_count(config)))


def mllama_kinds(config: Config) -> tuple[str, ...]:
    """Llama 3.2 Vision: ``cross_attention_layers`` look at the image, the others at the text."""
    return _split(config, "cross_attention_layers", "cross", "self")


def _split(config: Config, key: str, listed: str, others: str) -> tuple[str, ...]:
    """The kind ``listed`` for the layers under ``key`` and ``others`` for the rest; empty without such a list."""
    layers = config.get(key)
    if not isinstance(layers, list):
        return ()
    chosen = {layer for layer in layers if isinstance(layer, int)}
    return tuple(listed if layer in chosen else others for layer in range(_count(config)))


def _count(config: Config) -> int:
    count = config.get("num_hidden_layers")
    return count if isinstance(count, int) and 0 <= count <= MAX_LAYERS else 0

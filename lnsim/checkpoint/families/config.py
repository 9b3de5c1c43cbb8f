"""This module reads ``config.json``: the part on one tower, the number and kinds of its blocks, and their layout.

Of a GGUF file it makes the config of the metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lnsim.checkpoint.families.names import WORDS, is_number
from lnsim.errors import RoleError

Config = Mapping[str, Any]
# What the layers under a prefix hold: the first component behind the layer's number, and the first two.
Parts = Mapping[str, Mapping[int, frozenset[str]]]

TEXT_KEYS: Sequence[str] = WORDS["nested"]["text"]
MEDIA_KEYS: Mapping[str, Sequence[str]] = {tower: WORDS["nested"][tower] for tower in ("vision", "audio")}
COMMON: Mapping[str, str] = WORDS["layers"]
_GGUF_TYPES: Mapping[str, str] = WORDS["gguf"]["architectures"]
_GGUF_KEYS: Mapping[str, str] = WORDS["gguf"]["keys"]
MAX_NESTED = 3  # Qwen-Omni: config -> thinker_config -> text_config
HYBRID_LETTERS = {"M": "mixer", "*": "attention", "-": "mlp", "E": "moe"}
MAX_LAYERS = 10_000
MAX_PARTS = 12  # components of a name; the deepest known layer number stands fifth


def nested_configs(config: Config, keys: Sequence[str], depth: int = MAX_NESTED) -> Iterator[Config]:
    """Yield the nested configs under any of ``keys``, outer before inner; a thinker's towers lie one level down."""
    for key in dict.fromkeys((*keys, "thinker_config")):
        inner = config.get(key)
        if isinstance(inner, Mapping) and depth:
            if key in keys:
                yield inner
            yield from nested_configs(inner, keys, depth - 1)


def tower_config(config: Config, tower: str) -> Config:
    """The keys that hold for ``tower``: its nested config, over the outer one for the text towers."""
    if tower in MEDIA_KEYS:
        return next(nested_configs(config, MEDIA_KEYS[tower]), config)
    if tower in ("encoder", "decoder") and isinstance(config.get(tower), Mapping):
        inner = config[tower]
        return {**config, **inner, **_text_config(inner)}
    return {**config, **_text_config(config)}


def _text_config(config: Config) -> Config:
    """The innermost nested text config, flattened over those that hold it; empty where there is none."""
    return {key: value for inner in nested_configs(config, TEXT_KEYS) for key, value in inner.items()}


def block_count(config: Config, keys: Sequence[str]) -> int | None:
    """The number of blocks that the config promises, None where it tells none; RoleError outside of 0 to 10,000."""
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_LAYERS:
            raise RoleError(
                f"in its config '{key}' is {str(value)[:40]!r}; expected a whole number of blocks from 0 to "
                f"{MAX_LAYERS}. Check the repo's config.json."
            )
        return value
    return None


def layer_types(config: Config) -> tuple[str, ...]:
    """The list ``layer_types`` (or its older names), empty where there is none."""
    told = _listed_kinds(config, "layer_types", "layers_block_type")
    return told or _split(config, config.get("full_attn_idxs"), "attention", "mixer")  # LFM2's first configs


def _listed_kinds(config: Config, *keys: str) -> tuple[str, ...]:
    for key in keys:
        value = config.get(key)
        if isinstance(value, list) and all(isinstance(kind, str) for kind in value):
            return tuple(COMMON.get(kind, kind) for kind in value)
    return ()


def hybrid_pattern(config: Config) -> tuple[str, ...]:
    """Nemotron-H: one letter a layer, M for Mamba, * for attention, - for an MLP, E for experts."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str):
        return tuple(HYBRID_LETTERS.get(letter, "unknown") for letter in pattern)
    return layer_types(config)


def recurrent_kinds(config: Config) -> tuple[str, ...]:
    """RecurrentGemma: ``block_types`` repeated over the layers."""
    kinds = _listed_kinds(config, "block_types", "_block_types")
    return tuple(kinds[layer % len(kinds)] for layer in range(_count(config))) if kinds else ()


def kimi_kinds(config: Config) -> tuple[str, ...]:
    """Kimi Linear: ``full_attn_layers`` counts the attention layers from one."""
    linear = next(nested_configs(config, ("linear_attn_config",)), {})
    return _split(config, linear.get("full_attn_layers"), "attention", "mixer", first=1) or layer_types(config)


def kv_sharing(config: Config) -> tuple[str, ...]:
    """Gemma 3n and 4: the last ``num_kv_shared_layers`` take the keys of an earlier layer."""
    shared, count = config.get("num_kv_shared_layers"), _count(config)
    if not isinstance(shared, int) or not 0 <= shared <= count:
        return ()
    return ("own",) * (count - shared) + ("shared",) * shared


def gguf_config(metadata: Mapping[str, str]) -> dict[str, Any]:
    """The config of a GGUF file, empty where its metadata name no architecture.

    Norms are stored as they act: where a checkpoint stores γ minus one, llama.cpp's converter has added the one.

    >>> gguf_config({"general.architecture": "qwen3moe", "qwen3moe.block_count": "48"})
    {'model_type': 'qwen3_moe', 'num_hidden_layers': 48}
    """
    architecture = metadata.get("general.architecture")
    if architecture is None:
        return {}
    told = {name: metadata.get(f"{architecture}.{key}", "") for key, name in _GGUF_KEYS.items()}
    config: dict[str, Any] = {name: int(text) for name, text in told.items() if text.isdecimal()}
    if "num_hidden_layers" in config:  # those for multi-token prediction are counted in
        config["num_hidden_layers"] -= config.get("num_nextn_predict_layers", 0)
    return {"model_type": _GGUF_TYPES.get(architecture, architecture)} | config


def parts_of_layers(paths: Iterable[str]) -> Parts:
    """What each layer holds, by the prefix in front of its number: one pass over all tensor paths."""
    found: dict[str, dict[int, set[str]]] = {}
    for path in paths:
        parts = path.split(".", MAX_PARTS)
        place = next((i for i, part in enumerate(parts) if is_number(part)), None)
        if place is None:
            continue
        inner = found.setdefault(".".join(parts[:place]), {}).setdefault(int(parts[place]), set())
        inner.update((".".join(parts[place + 1 : place + 2]), ".".join(parts[place + 1 : place + 3])))
    return {prefix: {layer: frozenset(held) for layer, held in layers.items()} for prefix, layers in found.items()}


def shown_kinds(marks: str, prefixes: Iterable[str], parts: Parts) -> tuple[str, ...]:
    """The kinds that the layers' own tensors show: an empty text for a layer that shows none, or two."""
    shown: dict[int, set[str]] = {}
    for prefix in prefixes:
        for layer, held in parts.get(prefix, {}).items():
            shown.setdefault(layer, set()).update(
                kind for mark, _, kind in (word.partition("=") for word in marks.split()) if mark in held
            )
    kinds = {layer: next(iter(found)) for layer, found in shown.items() if len(found) == 1}
    return tuple(kinds.get(layer, "") for layer in range(max(kinds, default=-1) + 1))


def _every(config: Config, period: object, place: object = -1) -> tuple[str, ...]:
    """Attention once every ``period`` layers, at a place of it (by default the last), a mixer in the others."""
    if not isinstance(period, int) or not isinstance(place, int) or period < 1:
        return ()
    place = period - 1 if place == -1 else place
    return tuple("attention" if layer % period == place else "mixer" for layer in range(_count(config)))


def _split(config: Config, layers: object, listed: str, others: str, first: int = 0) -> tuple[str, ...]:
    """The kind ``listed`` for these layers, counted from ``first``, ``others`` for the rest; empty without a list."""
    if not isinstance(layers, list):
        return ()
    chosen = {layer - first for layer in layers if isinstance(layer, int)}
    return tuple(listed if layer in chosen else others for layer in range(_count(config)))


def _count(config: Config) -> int:
    count = config.get("num_hidden_layers")
    return count if isinstance(count, int) and 0 <= count <= MAX_LAYERS else 0


def _falcon_norms(config: Config) -> str:
    """How many norms a Falcon block has: ``two``, ``serial`` (two, one after the other) or ``one``."""
    new = config.get("new_decoder_architecture") is True or config.get("model_type") == "RefinedWeb"
    number = config.get("num_ln_in_parallel_attn")
    if new and (number is None or number == 2):
        return "two"
    return "serial" if not new and config.get("parallel_attn") is False else "one"


KINDS: Mapping[str, Callable[[Config], Sequence[str]]] = {
    # Bailing's hybrid: attention in the last layer of each ``layer_group_size``, six where the config is silent.
    "bailing_kinds": lambda c: layer_types(c) or _every(c, c.get("layer_group_size", 6)),
    # Bamba: ``attn_layer_indices`` lists the attention layers, the others are Mamba.
    "bamba_kinds": lambda c: _split(c, c.get("attn_layer_indices"), "attention", "mixer") or layer_types(c),
    "hybrid_pattern": hybrid_pattern,
    # Jamba: one attention layer every ``attn_layer_period``, from ``attn_layer_offset``; the others are Mamba.
    "jamba_kinds": lambda c: _every(c, c.get("attn_layer_period"), c.get("attn_layer_offset")) or layer_types(c),
    "kimi_kinds": kimi_kinds,
    "kv_sharing": kv_sharing,
    "layer_types": layer_types,
    # Llama 3.2 Vision: ``cross_attention_layers`` look at the image, the others at the text.
    "mllama_kinds": lambda c: _split(c, c.get("cross_attention_layers"), "cross", "attention"),
    # Qwen3-Next and 3.5: attention in every fourth layer, as their config class has it where the config is silent.
    "qwen_kinds": lambda c: layer_types(c) or _every(c, c.get("full_attention_interval", 4)),
    "recurrent_kinds": recurrent_kinds,
    # Zamba: a hybrid layer is a block of attention in front of a Mamba layer.
    "zamba_kinds": lambda c: layer_types(c) or _split(c, c.get("hybrid_layer_ids"), "hybrid", "mixer"),
}
"""By name in the table, what tells the kind of each layer from the config."""

CONDITIONS: Mapping[str, Callable[[Config], bool]] = {
    "bailing_rms": lambda c: c.get("use_qk_norm") is not True or c.get("use_rmsnorm") is not False,
    "chatglm_first": lambda c: any(c.get(key) is not None for key in ("inner_hidden_size", "position_encoding_2d")),
    "falcon_serial": lambda c: _falcon_norms(c) == "serial",
    "falcon_two_norms": lambda c: _falcon_norms(c) == "two",
    "hunyuan_first": lambda c: c.get("mamba") is not True and c.get("norm_type") in (None, "rms", "hf_rms"),
    "minimax_prenorm": lambda c: (
        c.get("postnorm") is False or (c.get("model_type") != "minimax" and c.get("postnorm") is None)
    ),
    "not_prenorm": lambda c: c.get("prenorm") is not True,
    "opt_post": lambda c: c.get("do_layer_norm_before") is False,
    "parallel_attention": lambda c: c.get("parallel_attn") is True,
    "parallel_residual": lambda c: c.get("use_parallel_residual") is True,
    "plain_layer_norm": lambda c: c.get("layer_norm_type") in (None, "layer_norm"),
    "residual_after_norm": lambda c: c.get("apply_residual_connection_post_layernorm") is True,
    "rmsnorm_not_false": lambda c: c.get("rmsnorm") is not False,
    "stable_layer_norm": lambda c: c.get("do_stable_layer_norm") is True,
}
"""By name in the table, when a layout is that of a checkpoint."""

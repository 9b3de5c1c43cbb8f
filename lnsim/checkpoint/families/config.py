"""This module finds, in a checkpoint's ``config.json``, the part that speaks of one tower, and its number of blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lnsim.errors import RoleError

__all__ = ["TEXT_KEYS", "block_count", "nested_configs", "tower_config"]

Config = Mapping[str, Any]

TEXT_KEYS = ("text_config", "llm_config", "language_config", "thinker_config", "language_model_config", "decoder")
MEDIA_KEYS = {
    "vision": ("vision_config", "visual_config", "vit_config", "vision_encoder_config"),
    "audio": ("audio_config", "speech_config", "encoder_config", "audio_encoder_config"),
}
MAX_BLOCKS = 10_000
MAX_DEPTH = 3  # Qwen-Omni: config -> thinker_config -> text_config


def nested_configs(config: Config, keys: tuple[str, ...], depth: int = MAX_DEPTH) -> Iterator[Config]:
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
        found = next(nested_configs(config, MEDIA_KEYS[tower]), None)
        return config if found is None else found
    if tower in ("encoder", "decoder") and isinstance(config.get(tower), Mapping):
        inner = config[tower]
        return {**config, **inner, **tower_config_text(inner)}
    return {**config, **tower_config_text(config)}


def tower_config_text(config: Config) -> Config:
    """The innermost nested text config, flattened over those that hold it; empty where there is none."""
    merged: dict[str, Any] = {}
    for inner in nested_configs(config, TEXT_KEYS):
        merged.update(inner)
    return merged


def block_count(config: Config, keys: tuple[str, ...], where: str) -> int | None:
    """The number of blocks that the config promises, or None where it does not tell.

    Raises:
        RoleError: the number is not a whole number from 0 to 10,000.
    """
    for key in keys:
        value = config.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_BLOCKS:
            raise RoleError(
                f"While reading the config of {where}: '{key}' is {str(value)[:40]!r}; expected a whole number of "
                f"blocks from 0 to {MAX_BLOCKS}. Check the repo's config.json."
            )
        return value
    return None

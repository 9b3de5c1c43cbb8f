"""This module recognises an adapter (LoRA and its kin), which changes a model and has no norms of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from lnsim.checkpoint.families.names import norm_names
from lnsim.checkpoint.header import Header
from lnsim.errors import FormatError

__all__ = ["adapter_error", "is_adapter"]

_WORDS = ("lora", "ia3", "oft", "boft", "hada", "lokr", "vera", "prompt_embeddings")
_PART = re.compile(rf"(^|[._])({'|'.join(_WORDS)})([._]|$)", re.IGNORECASE)
_KINDS = {"LORA": "LoRA"}


def is_adapter(headers: Mapping[str, Header]) -> bool:
    """Whether files or tensors have the names of an adapter's, and no tensor that of a norm."""
    shapes = {name: info.shape for header in headers.values() for name, info in header.tensors.items()}
    named = any(shard.startswith("adapter_model") for shard in headers) or _named_as_one(shapes)
    return named and not norm_names(shapes, ())


def _named_as_one(names: Collection[str]) -> bool:
    every = "\n".join(names).lower()  # looked through as one text first: some checkpoints have 100,000 names
    return any(word in every for word in _WORDS) and any(map(_PART.search, names))


def adapter_error(config: Mapping[str, Any] | None, where: str) -> FormatError:
    """The error for an adapter, which names its base model where its own config does."""
    config = config or {}
    kind, base = config.get("peft_type"), config.get("base_model_name_or_path")
    told = f" ({_KINDS.get(kind, kind):.40})" if isinstance(kind, str) else " (LoRA or one of its kin)"
    of = f" of {base:.200}" if isinstance(base, str) and base else ""
    return FormatError(f"Opening {where}: it is an adapter{told}{of}, without norms of its own: name its base model.")

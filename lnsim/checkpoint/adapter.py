"""This module recognises an adapter (LoRA and its kin), which changes a model and has no norms of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lnsim.checkpoint.header import Header
from lnsim.checkpoint.norm_names import norm_names
from lnsim.errors import FormatError

__all__ = ["adapter_error", "is_adapter"]

_PART = re.compile(r"(^|[._])(lora|ia3|oft|boft|hada|lokr|vera|prompt_embeddings)([._]|$)", re.IGNORECASE)
_KINDS = {"LORA": "LoRA"}


def is_adapter(headers: Mapping[str, Header]) -> bool:
    """Whether files or tensors have the names of an adapter's, and no tensor that of a norm."""
    shapes = {name: info.shape for header in headers.values() for name, info in header.tensors.items()}
    named = any(shard.startswith("adapter_model") for shard in headers) or any(map(_PART.search, shapes))
    return named and not norm_names(shapes, ())


def adapter_error(config: Mapping[str, Any] | None, where: str) -> FormatError:
    """The error for an adapter, which names its base model where its own config does."""
    config = config or {}
    kind, base = config.get("peft_type"), config.get("base_model_name_or_path")
    told = f" ({_KINDS.get(kind, kind):.40})" if isinstance(kind, str) else " (LoRA or one of its kin)"
    of = f" of {base:.200}" if isinstance(base, str) and base else ""
    return FormatError(f"Opening {where}: it is an adapter{told}{of}, without norms of its own: name its base model.")

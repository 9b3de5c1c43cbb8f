"""This module writes the config of a packaged model: the package's own, or what its file says of itself.

Only fields that the file fixes are written; nothing is taken from memory. A config made here holds no field that the
package's file does not hold, so it is shorter than the one on the Hub.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from readers.directory import Directory, Entry

from lnsim.errors import FormatError

__all__ = ["config_from_file", "config_from_package"]

Norms = Mapping[str, Entry]

# lnsim's config field <- GGUF key of a llama-like model
GGUF_KEYS = {
    "vocab_size": "llama.vocab_size",
    "hidden_size": "llama.embedding_length",
    "intermediate_size": "llama.feed_forward_length",
    "num_hidden_layers": "llama.block_count",
    "num_attention_heads": "llama.attention.head_count",
    "num_key_value_heads": "llama.attention.head_count_kv",
    "rms_norm_eps": "llama.attention.layer_norm_rms_epsilon",
    "max_position_embeddings": "llama.context_length",
    "rope_theta": "llama.rope.freq_base",
}
E5S1_KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "intermediate_size": "ffn_size",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "max_position_embeddings": "max_positions",
    "type_vocab_size": "type_vocab_size",
    "layer_norm_eps": "eps",
}


def config_from_package(raw: bytes, where: str) -> dict[str, Any]:
    """The package's ``config.json``; raises FormatError when it is not a JSON object."""
    try:
        config = json.loads(raw)
    except ValueError as error:
        raise FormatError(f"Reading {where}: expected JSON, found {error}.") from error
    if not isinstance(config, dict):
        raise FormatError(f"Reading {where}: expected a JSON object, found {type(config).__name__}.")
    return config


def config_from_file(file_format: str, directory: Directory, norms: Norms) -> dict[str, Any]:
    """The fields that a weight file fixes; raises FormatError when its header lacks one."""
    return MAKERS[file_format](directory, norms)


def _from_gguf(directory: Directory, norms: Norms) -> dict[str, Any]:
    architecture = directory.header.get("general.architecture")
    if architecture != "llama":
        raise FormatError(
            f"Reading {directory.where}: general.architecture is '{architecture}', expected 'llama', the only one "
            "that this script has names for."
        )
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama"} | _pick(directory, GGUF_KEYS)


def _from_e5s1(directory: Directory, norms: Norms) -> dict[str, Any]:
    return {"architectures": ["BertModel"], "model_type": "bert"} | _pick(directory, E5S1_KEYS)


def _pick(directory: Directory, keys: Mapping[str, str]) -> dict[str, Any]:
    missing = sorted(key for key in keys.values() if key not in directory.header)
    if missing:
        raise FormatError(f"Reading {directory.where}: its header lacks {', '.join(missing)}.")
    return {field: directory.header[key] for field, key in keys.items()}


def _from_bert_names(directory: Directory, norms: Norms) -> dict[str, Any]:
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": _width(directory, norms),
        "num_hidden_layers": _count(norms, r"encoder\.layer\.(\d+)\."),
    }


def _from_whisper_names(directory: Directory, norms: Norms) -> dict[str, Any]:
    if directory.header["spec"] != "WhisperSpec":
        raise FormatError(
            f"Reading {directory.where}: the spec is '{directory.header['spec']}', expected 'WhisperSpec'."
        )
    decoder_layers = _count(norms, r"model\.decoder\.layers\.(\d+)\.")
    return {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "d_model": _width(directory, norms),
        "encoder_layers": _count(norms, r"model\.encoder\.layers\.(\d+)\."),
        "decoder_layers": decoder_layers,
        "num_hidden_layers": decoder_layers,
    }


def _width(directory: Directory, norms: Norms) -> int:
    widths = {entry.shape for entry in norms.values()}
    if len(widths) != 1 or len(next(iter(widths))) != 1:
        raise FormatError(f"Reading {directory.where}: the norms have shapes {sorted(widths)}, expected one width.")
    return next(iter(widths))[0]


def _count(norms: Norms, pattern: str) -> int:
    """Blocks, counted by their numbers: the highest one plus one."""
    numbers = [int(match.group(1)) for match in (re.match(pattern, name) for name in norms) if match]
    return max(numbers, default=-1) + 1


MAKERS: Mapping[str, Callable[[Directory, Norms], dict[str, Any]]] = {
    "gguf": _from_gguf,
    "e5s1": _from_e5s1,
    "onnx": _from_bert_names,
    "ctranslate2": _from_whisper_names,
}

"""Byte-exact safetensors files for tests, written by hand so that the format itself is the fixture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

_KINDS = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": ml_dtypes.bfloat16, "I8": "i1", "U8": "u1"}
_NAMES = {np.dtype(kind): name for name, kind in _KINDS.items()}


def header_bytes(text: str | bytes, length: int | None = None) -> bytes:
    """A length field and a header, right or wrong."""
    raw = text.encode() if isinstance(text, str) else text
    return (len(raw) if length is None else length).to_bytes(8, "little") + raw


def file_bytes(
    tensors: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str] | None = None, padding: int | None = None
) -> bytes:
    """A whole file; the header is padded with spaces to 8 bytes, or by exactly ``padding``."""
    entries: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    position = 0
    for name, array in tensors.items():
        stop = position + array.nbytes
        entries[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [position, stop]}
        position = stop
    raw = json.dumps(entries, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8 if padding is None else padding)
    return header_bytes(raw) + b"".join(np.ascontiguousarray(array).tobytes() for array in tensors.values())


def checkpoint_files(
    tensors: Mapping[str, npt.NDArray[Any]], config: Mapping[str, Any] | None = None, n_shards: int = 1
) -> dict[str, bytes]:
    """File name to content of a checkpoint, as save_pretrained lays it out."""
    files: dict[str, bytes] = {} if config is None else {"config.json": json.dumps(config).encode()}
    if n_shards == 1:
        return files | {"model.safetensors": file_bytes(tensors, {"format": "pt"})}
    names = list(tensors)
    weight_map: dict[str, str] = {}
    for number in range(n_shards):
        shard = f"model-{number + 1:05d}-of-{n_shards:05d}.safetensors"
        part = {name: tensors[name] for name in names[number::n_shards]}
        files[shard] = file_bytes(part, {"format": "pt"})
        weight_map |= dict.fromkeys(part, shard)
    index = {"metadata": {"total_size": sum(array.nbytes for array in tensors.values())}, "weight_map": weight_map}
    return files | {"model.safetensors.index.json": json.dumps(index).encode()}


def write_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write them to a folder, made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def llama_tensors(
    n_layers: int = 3, hidden_size: int = 16, seed: int = 0, dtype: Any = ml_dtypes.bfloat16, rows: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """Tensors of a tiny Llama: its norms, and some matrices between them, square or of so many rows."""
    shape = (hidden_size if rows is None else rows, hidden_size)
    rng = np.random.default_rng(seed)
    found: dict[str, npt.NDArray[Any]] = {"model.embed_tokens.weight": rng.normal(size=(8, hidden_size)).astype(dtype)}
    for layer in range(n_layers):
        stem = f"model.layers.{layer}"
        found[f"{stem}.input_layernorm.weight"] = rng.normal(1, 0.1, hidden_size).astype(dtype)
        found[f"{stem}.mlp.gate_proj.weight"] = rng.normal(size=shape).astype(dtype)
        found[f"{stem}.post_attention_layernorm.weight"] = rng.normal(1, 0.1, hidden_size).astype(dtype)
        found[f"{stem}.self_attn.q_proj.weight"] = rng.normal(size=shape).astype(dtype)
    return found | {"model.norm.weight": rng.normal(1, 0.1, hidden_size).astype(dtype)}


def norm_bits(tensors: Mapping[str, npt.NDArray[Any]]) -> dict[str, bytes]:
    """The bytes of the norms among these tensors; of those of ``NormVectors.stored``, of all."""
    return {name: array.tobytes() for name, array in tensors.items() if array.ndim == 1}


LLAMA_CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 3, "hidden_size": 16}

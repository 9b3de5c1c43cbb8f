"""This module keeps the replica as extracts, made when first asked for: the same files that a real checkpoint gives.

A file is made again when it is not there or when it came from another calibration file or format. What is made must
have the sha256 that the calibration file gives for it: a machine that makes other bits says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.header import LENGTH_BYTES, Header, parse_header
from lnsim.checkpoint.store import Provenance, StoredTensor, read_provenance, write_extract
from lnsim.errors import HeaderError, StoreError
from studies.replica.values import Calibration, Recipe

__all__ = ["REPLICA_SENTENCE", "cache_key", "is_current", "tensors_sha256", "write_file"]

REPLICA_SENTENCE = (
    "REPLICA: synthetic vectors made from published statistics. They test code and say nothing about the real models."
)
"""Stands in every file of a replica, and wherever something made from one is shown."""

_FORMAT = "lnsim-replica-1"
"""Changes when the code makes other bits or other metadata from the same calibration."""

_SHARD = "none, made by lnsim"
"""Stands where an extract names the file that its bytes were read from."""

Arrays = Mapping[str, npt.NDArray[np.uint16]]


def cache_key(calibration: Calibration) -> str:
    """What a built file depends on: the calibration file and the format."""
    return hashlib.sha256(f"{_FORMAT}:{calibration.digest}".encode()).hexdigest()


def is_current(path: Path, calibration: Calibration) -> bool:
    """True when the file is there and was made from this calibration."""
    if not path.is_file():
        return False
    try:
        provenance = read_provenance(_header(path))
    except HeaderError:
        return False  # cut short, or not ours: it is made again
    return provenance is not None and provenance.extra.get("replica_key") == cache_key(calibration)


def tensors_sha256(arrays: Arrays) -> str:
    """Hash of names, shapes and bits, in their order; the metadata around them do not count."""
    digest = hashlib.sha256()
    for name, bits in arrays.items():
        digest.update(json.dumps([name, list(bits.shape)]).encode())
        digest.update(bits.astype("<u2").tobytes())
    return digest.hexdigest()


def write_file(path: Path, arrays: Arrays, recipe: Recipe, calibration: Calibration) -> Path:
    """Write BF16 tensors as an extract that says everywhere that it is a replica.

    Raises:
        StoreError: when the bits are not those on record, or the disk refuses.
    """
    stem = path.name.removesuffix(".safetensors")
    found, expected = tensors_sha256(arrays), calibration.sha256.get(stem, "none")
    if found != expected:
        raise StoreError(
            f"Making the replica's '{stem}': its tensors should have the sha256 {expected} that its calibration file "
            f"gives under [sha256], found {found}. If the calibration was changed on purpose, put this hash there; "
            f"if not, this machine computes differently, and nothing was written."
        )
    return write_extract(path, list(_tensors(arrays)), _provenance(recipe, calibration))


def _header(path: Path) -> Header:
    with path.open("rb") as file:
        start = file.read(LENGTH_BYTES)
        start += file.read(int.from_bytes(start, "little"))
    return parse_header(start, path.stat().st_size, where=path.name)


def _tensors(arrays: Arrays) -> Iterator[StoredTensor]:
    position = 0
    for name, bits in arrays.items():
        data = bits.astype("<u2").tobytes()
        yield StoredTensor(name, "BF16", bits.shape, data, _SHARD, position, position + len(data))
        position += len(data)


def _provenance(recipe: Recipe, calibration: Calibration) -> Provenance:
    extra = {"replica": "yes", "replica_note": REPLICA_SENTENCE, "replica_key": cache_key(calibration)}
    model_type = str(recipe.config["model_type"])
    return Provenance(f"REPLICA of {recipe.of}", None, None, None, model_type, recipe.config, extra)

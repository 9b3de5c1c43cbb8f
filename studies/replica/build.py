"""This module makes a study's replica where it is not there yet, as extracts: the files that a checkpoint gives.

A file is made again when it is not there or when it came from another calibration file or format. What is made must
have the sha256 that the calibration file gives for it: a machine that makes other bits says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.format.header import LENGTH_BYTES, Header, parse_header
from lnsim.checkpoint.store import Provenance, StoredTensor, read_provenance, write_extract
from lnsim.errors import HeaderError, StoreError
from lnsim.paths import replica_dir
from lnsim.study.catalog import Study
from studies.replica.calibration import Calibration, Recipe, calibration_path, load_calibration
from studies.replica.vectors import all_tensors, matrices_of

__all__ = [
    "REPLICA_SENTENCE",
    "build_projections",
    "build_replica",
    "cache_key",
    "is_current",
    "tensors_sha256",
    "write_file",
]

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


def build_replica(study: Study, folder: Path | None = None) -> Mapping[str, Path]:
    """The extracts of a study's replica by model key, made now where they are not there or not current.

    Args:
        study: as read from its file.
        folder: where they lie, ``data/replica/<study>`` by default.

    Raises:
        StudyError: when the study has no calibration, or anything in it is wrong.
        StoreError: when the bits come out otherwise than on record, or cannot be written.
    """
    calibration = _calibration(study)
    paths = _paths(study, calibration, folder, "")
    if not all(is_current(path, calibration) for path in paths.values()):
        for key, tensors in all_tensors(calibration).items():
            if key in paths:
                write_file(paths[key], tensors, calibration.recipe(key), calibration)
    _write_missing(study, calibration, replica_dir(study.name) if folder is None else folder)
    return paths


def build_projections(study: Study, folder: Path | None = None) -> Mapping[str, Path]:
    """The projection matrices of a study's replica by model key, in extracts of their own; see ``build_replica``."""
    calibration = _calibration(study)
    having = {projection.model for projection in calibration.projections}
    paths = {key: path for key, path in _paths(study, calibration, folder, ".projections").items() if key in having}
    for key, path in paths.items():
        if not is_current(path, calibration):
            write_file(path, matrices_of(calibration, key), calibration.recipe(key), calibration)
    return MappingProxyType(paths)


def _write_missing(study: Study, calibration: Calibration, folder: Path) -> None:
    """By key, why a model of the study is not in its replica; last of all, for whoever reads the replica."""
    here = {recipe.key for recipe in calibration.models}
    unsaid = "Its calibration file does not have this model."
    reasons = {model.key: calibration.missing.get(model.key, unsaid) for model in study.models if model.key not in here}
    path, content = folder / "missing.json", json.dumps(reasons, indent=1)
    if not path.is_file() or path.read_text("utf-8") != content:
        with NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False, encoding="utf-8") as part:
            part.write(content)
        Path(part.name).replace(path)


def _calibration(study: Study) -> Calibration:
    return load_calibration(calibration_path(study.name))


def _paths(study: Study, calibration: Calibration, folder: Path | None, suffix: str) -> Mapping[str, Path]:
    where = replica_dir(study.name) if folder is None else folder
    wanted = {model.key for model in study.models}
    return MappingProxyType(
        {
            recipe.key: where / f"{recipe.key}{suffix}.safetensors"
            for recipe in calibration.models
            if recipe.key in wanted
        }
    )

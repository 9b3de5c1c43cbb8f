"""This module gives a study its projection matrices, opened and not yet read, from the source that was asked for.

They take megabytes where norms take kilobytes, so they lie apart: ``data/weights/<study>/<model key>.safetensors``, an
extract like any other, written by ``fetch_weights`` and not kept in the repo.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.opening import open_checkpoint
from lnsim.checkpoint.source import Checkpoint
from lnsim.checkpoint.store import Provenance, StoredTensor, write_extract
from lnsim.errors import LnsimError, SourceError, StudyError
from lnsim.paths import replica_dir, studies_dir, working_root
from lnsim.report.page import Page
from lnsim.study.catalog import Model, Study
from lnsim.study.vectors import no_replica, source_kind
from studies.projections.matrices import WeightMatrix, find_weights
from studies.projections.sums import pair_sums

__all__ = ["StudyWeights", "fetch_for", "fetch_weights", "page_sums", "study_weights", "weights_path"]

_ROWS_AT_A_TIME = 512
_OF_REPLICA = ".projections.safetensors"


@dataclass(frozen=True, slots=True)
class StudyWeights:
    """The projection matrices of a study's models.

    Args:
        kind: where they come from: ``stored``, ``hub`` or ``replica``.
        opened: the checkpoints by model key, in the order asked for.
        matrices: by model key, the matrices by kind and layer.
        missing: by model key, why there are none.
    """

    kind: str
    opened: Mapping[str, Checkpoint]
    matrices: Mapping[str, Mapping[tuple[str, int], WeightMatrix]]
    missing: Mapping[str, str]

    def __post_init__(self) -> None:
        for name in ("opened", "matrices", "missing"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))


def weights_path(study: str, key: str) -> Path:
    """Where the matrices of a model are kept, whether they are there or not."""
    return working_root() / "data" / "weights" / study / f"{key}.safetensors"


def study_weights(
    study: Study, source: str, keys: Iterable[str], kinds: Sequence[str], layers: Sequence[int]
) -> StudyWeights:
    """The projection matrices of some models of a study, without any network.

    ``auto`` means what it means for the study's vectors, so that real and synthetic numbers are never mixed.

    Args:
        study: as read from its file.
        source: ``auto``, ``stored``, ``hub`` or ``replica``.
        keys: model keys.
        kinds: among ``lnsim.study.catalog.MATRIX_KINDS``.
        layers: zero-based block numbers.

    Raises:
        StudyError: for a source or a model key that the study does not have, or a replica that was not made.
    """
    models = [study.model(key) for key in keys]
    kind = source_kind(study, source)
    if kind == "replica" and not any(replica_dir(study.name).glob(f"*{_OF_REPLICA}")):
        raise no_replica(study, "the projection matrices")
    opened: dict[str, Checkpoint] = {}
    matrices: dict[str, Mapping[tuple[str, int], WeightMatrix]] = {}
    missing: dict[str, str] = {}
    for model in models:
        try:
            found = _open(study, model, kind)
            matrices[model.key] = find_weights(found, kinds, layers)
            opened[model.key] = found
        except LnsimError as error:
            missing[model.key] = str(error)
    return StudyWeights(kind, opened, matrices, missing)


def page_sums(page: Page, keys: Sequence[str], kinds: Sequence[str], layers: Sequence[int]) -> pd.DataFrame:
    """The sums over pairs of matrices for a page, as ``pair_sums`` gives them, models by key.

    Kept ones, of ``data/weights_statistics``, stand in place of matrices that are not kept. They were made from the
    files that the norms came from, which the page's provenance names. Else the matrices are read.

    Raises:
        StudyError: when no model has any.
    """
    kept = studies_dir().parent / "weights_statistics" / f"{page.study.name}.csv"
    if not kept.is_file():
        found = study_weights(page.study, page.source, keys, kinds, layers)
        page.opened(found.kind, found.opened, found.missing, "projection matrices")
        return pair_sums({(key, *place): one for key, all_ in found.matrices.items() for place, one in all_.items()})
    page.load(keys)
    sums = pd.read_csv(kept, comment="#")
    asked = sums.a.isin(keys) & sums.b.isin(keys) & sums.layer_a.isin(layers) & sums.layer_b.isin(layers)
    return sums[asked & sums.kind.isin(kinds)].reset_index(drop=True)


def fetch_weights(
    study: Study,
    keys: Iterable[str],
    kinds: Sequence[str],
    layers: Sequence[int],
    each: Callable[[str], None] = lambda key: None,
) -> dict[str, str]:
    """Read projection matrices from the Hub into ``data/weights``; this uses the network.

    Args:
        study: as read from its file.
        keys: model keys.
        kinds: among ``lnsim.study.catalog.MATRIX_KINDS``.
        layers: zero-based block numbers.
        each: called with a model's key when it was read.

    Returns:
        By model key, why it could not be read; the others were.

    Raises:
        StudyError: when the study's file does not allow the source ``hub``, or has no such model.
    """
    source_kind(study, "hub")
    failed: dict[str, str] = {}
    for model in [study.model(key) for key in keys]:
        try:
            _keep(study.name, model, kinds, layers)
        except LnsimError as error:
            failed[model.key] = str(error)
        each(model.key)
    return failed


def fetch_for(study: Study, numbers: Collection[str], each: Callable[[str], None] = lambda key: None) -> dict[str, str]:
    """Read from the Hub the projection matrices that these notebooks ask for; arguments as ``fetch_weights``.

    Args:
        study: as read from its file.
        numbers: notebook numbers; one that the study does not run, or that asks for no matrices, needs nothing.
        each: called with a model's key when it was read.
    """
    failed: dict[str, str] = {}
    for number, given in study.experiments.items():
        if number in numbers and "kinds" in given and "hub" in study.sources:
            failed |= fetch_weights(study, given["models"], given["kinds"], given["layers"], each)
    return failed


def _open(study: Study, model: Model, kind: str) -> Checkpoint:
    if kind == "replica":
        path = replica_dir(study.name) / f"{model.key}{_OF_REPLICA}"
        lacking = f"The replica of study {study.name} has no projection matrices of this model."
    else:
        path = weights_path(study.name, model.key)
        lacking = f"No projection matrices of this model lie in data/weights/{study.name}."
    if not path.is_file():
        raise SourceError(lacking)
    return open_local(path)


def _keep(study: str, model: Model, kinds: Sequence[str], layers: Sequence[int]) -> Path:
    if model.repo_id is None:
        raise StudyError(f"Reading projection matrices of '{model.key}': the study's file names no repo for it.")
    opened = open_checkpoint(model.repo_id, model.revision)
    tensors = [_tensor(matrix) for matrix in find_weights(opened, kinds, layers).values()]
    config = dict(opened.config or {})
    model_type = str(config.get("model_type", "unknown"))
    provenance = Provenance(opened.source, opened.repo_id, opened.commit, opened.revision, model_type, config, {})
    return write_extract(weights_path(study, model.key), tensors, provenance)


def _tensor(matrix: WeightMatrix) -> StoredTensor:
    """The matrix with the place that it was read from, in ranges of some rows each."""
    header, shard = next(
        (header, shard) for shard, header in matrix.opened.headers.items() if matrix.info.name in header.tensors
    )
    data = b"".join(block.tobytes() for block in matrix.blocks(_ROWS_AT_A_TIME))
    start = header.buffer_start + matrix.info.start
    return StoredTensor(matrix.info.name, matrix.info.dtype, matrix.info.shape, data, shard, start, start + len(data))

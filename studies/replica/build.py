"""This module makes a study's replica where it is not there yet, and says where its files lie."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from lnsim.paths import working_root
from lnsim.study.values import Study
from studies.replica.calibration import calibration_path, load_calibration
from studies.replica.files import is_current, write_file
from studies.replica.projections import matrices_of
from studies.replica.rows import all_tensors
from studies.replica.values import Calibration

__all__ = ["build_projections", "build_replica", "missing_models", "replica_dir"]


def replica_dir(study: str) -> Path:
    """Where a study's replica is kept; git does not see it."""
    return working_root() / "data" / "replica" / study


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


def missing_models(study: Study) -> Mapping[str, str]:
    """By key, why a model of the study is not in its replica."""
    calibration = _calibration(study)
    here = {recipe.key for recipe in calibration.models}
    unsaid = "Its calibration file does not have this model."
    return MappingProxyType(
        {model.key: calibration.missing.get(model.key, unsaid) for model in study.models if model.key not in here}
    )


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

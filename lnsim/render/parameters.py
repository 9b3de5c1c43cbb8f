"""This module settles a notebook's parameters: what was given, else what the study's file says."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from lnsim.errors import StudyError
from lnsim.study.catalog import Study

__all__ = ["settings"]


def settings(study: Study, number: str, given: Mapping[str, Any]) -> SimpleNamespace:
    """Parameters given, else those of the study's file; each must have a value.

    Args:
        study: as read from its file.
        number: the notebook's number, two digits.
        given: the notebook's own parameters; None stands for the study file's value.

    Raises:
        StudyError: when the study does not run this notebook, or a parameter has no value anywhere.
    """
    if number not in study.experiments:
        reason = study.not_run.get(number, "its file has no parameters for it")
        raise StudyError(f"Study '{study.name}' does not run notebook {number}: {reason}.")
    defaults = study.experiments[number]
    values = {name: defaults.get(name) if value is None else value for name, value in given.items()}
    if empty := [name for name, value in values.items() if value is None]:
        raise StudyError(
            f"Study '{study.name}', experiment {number}: parameter '{empty[0]}' has no value. Give it in "
            f"data/studies/{study.name}.toml or with --set {empty[0]}=value."
        )
    return SimpleNamespace(**values)

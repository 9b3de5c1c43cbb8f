"""This module finds, in a study with a record of descent, the models that were trained further from others."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from lnsim.errors import StudyError
from lnsim.study.catalog import Study

__all__ = ["fine_tuned"]

_WORD = "fine-tune"


def fine_tuned(study: Study, parents: Collection[str]) -> Mapping[tuple[str, str], str]:
    """By keys of parent and child, how the child was made, for every child that is a fine-tune of one of `parents`.

    A fine-tune is a child of one parent whose derivation, in the study's file, says so.

    Raises:
        StudyError: when there is none.
    """
    found = {
        (model.parents[0], model.key): model.derivation
        for model in study.models
        if len(model.parents) == 1 and model.parents[0] in parents and _WORD in model.derivation
    }
    if not found:
        raise StudyError(
            f"Study '{study.name}': no model is a {_WORD} of one of {', '.join(parents)}. Name a parent of one."
        )
    return MappingProxyType(found)

"""Do the norm vectors of two checkpoints say anything about a common origin, and how sure can one be?

Data flows one way: a *source* is opened (headers only), its norms get *roles*, their byte ranges become *vectors*,
*measures* compare them and judge the result against a *null*, *studies* say what to compare, *reports* show it.

Importing this package loads nothing else; each name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lnsim.version import __version__ as __version__

if TYPE_CHECKING:
    from lnsim.checkpoint.extract import extract, load
    from lnsim.checkpoint.format.header import Header, parse_header
    from lnsim.checkpoint.vectors import NormVectors, RoleVectors
    from lnsim.errors import HeaderError, LnsimError
    from lnsim.measure.cells import cells, statistics, tests
    from lnsim.measure.metrics import METRICS, pairwise
    from lnsim.measure.nulls import NullResult
    from lnsim.measure.permutation import permutation_test
    from lnsim.paths import stored
    from lnsim.report.pair_view import compare
    from lnsim.study.catalog import load_study

_NAMES = {
    "checkpoint.extract": ("extract", "load"),
    "checkpoint.format.header": ("Header", "parse_header"),
    "checkpoint.vectors": ("NormVectors", "RoleVectors"),
    "errors": ("HeaderError", "LnsimError"),
    "measure.cells": ("cells", "statistics", "tests"),
    "measure.metrics": ("METRICS", "pairwise"),
    "measure.nulls": ("NullResult",),
    "measure.permutation": ("permutation_test",),
    "paths": ("stored",),
    "report.pair_view": ("compare",),
    "study.catalog": ("load_study",),
}
_HOMES = {name: f"lnsim.{home}" for home, names in _NAMES.items() for name in names}

__all__ = [
    "METRICS", "Header", "HeaderError", "LnsimError", "NormVectors", "NullResult", "RoleVectors", "cells", "compare",
    "extract", "load", "load_study", "pairwise", "parse_header", "permutation_test", "statistics", "stored", "tests",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lnsim' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

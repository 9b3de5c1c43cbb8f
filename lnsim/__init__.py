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
    from lnsim.checkpoint.extract import extract as extract
    from lnsim.checkpoint.extract import load as load
    from lnsim.checkpoint.format.header import Header as Header
    from lnsim.checkpoint.format.header import parse_header as parse_header
    from lnsim.checkpoint.vectors import NormVectors as NormVectors
    from lnsim.checkpoint.vectors import RoleVectors as RoleVectors
    from lnsim.errors import HeaderError as HeaderError
    from lnsim.errors import LnsimError as LnsimError
    from lnsim.measure.cells import cells as cells
    from lnsim.measure.cells import statistics as statistics
    from lnsim.measure.cells import tests as tests
    from lnsim.measure.metrics import pairwise as pairwise
    from lnsim.measure.nulls import NullResult as NullResult
    from lnsim.measure.permutation import permutation_test as permutation_test
    from lnsim.report.pair_view import compare as compare
    from lnsim.study.catalog import load_study as load_study

_HOMES = {
    "Header": "lnsim.checkpoint.format.header",
    "HeaderError": "lnsim.errors",
    "LnsimError": "lnsim.errors",
    "NormVectors": "lnsim.checkpoint.vectors",
    "NullResult": "lnsim.measure.nulls",
    "RoleVectors": "lnsim.checkpoint.vectors",
    "cells": "lnsim.measure.cells",
    "compare": "lnsim.report.pair_view",
    "extract": "lnsim.checkpoint.extract",
    "load": "lnsim.checkpoint.extract",
    "load_study": "lnsim.study.catalog",
    "pairwise": "lnsim.measure.metrics",
    "parse_header": "lnsim.checkpoint.format.header",
    "permutation_test": "lnsim.measure.permutation",
    "statistics": "lnsim.measure.cells",
    "tests": "lnsim.measure.cells",
}

__all__ = [
    "Header",
    "HeaderError",
    "LnsimError",
    "NormVectors",
    "NullResult",
    "RoleVectors",
    "cells",
    "compare",
    "extract",
    "load",
    "load_study",
    "pairwise",
    "parse_header",
    "permutation_test",
    "statistics",
    "tests",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lnsim' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

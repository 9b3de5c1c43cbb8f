"""This module lets kernels share compiled modules where Python was told to write none.

Every kernel imports the same libraries. Where neither the installer compiled them nor Python may write its compiled
files beside them, each kernel would compile them anew, four seconds a kernel.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["shared_bytecode"]

_FORBIDS = "PYTHONDONTWRITEBYTECODE"
_PREFIX = "PYTHONPYCACHEPREFIX"
_LARGE_LIBRARY = "matplotlib"


@contextmanager
def shared_bytecode() -> Iterator[None]:
    """While this is open, processes started from here keep compiled modules in one temporary folder, if they must.

    Nothing is changed where compiled files exist or may be written, or where the user chose a folder for them.
    """
    if not os.environ.get(_FORBIDS) or os.environ.get(_PREFIX) or _is_compiled():
        yield
        return
    forbidden = os.environ.pop(_FORBIDS)
    with tempfile.TemporaryDirectory(prefix="lnsim-bytecode-") as folder:
        os.environ[_PREFIX] = folder
        try:
            yield
        finally:
            del os.environ[_PREFIX]
            os.environ[_FORBIDS] = forbidden


def _is_compiled() -> bool:
    found = importlib.util.find_spec(_LARGE_LIBRARY)
    return (
        found is not None and found.origin is not None and Path(importlib.util.cache_from_source(found.origin)).exists()
    )

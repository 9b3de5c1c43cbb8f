"""The command line, run within the test's own process: exit code, stdout, stderr; and run_all.py."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from lnsim.cli import run as run_words


def run(*words: str) -> tuple[int, str, str]:
    """Type the words behind `lnsim`."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run_words(words)
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()


def run_all_program(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """run_all.py as a module; what it sets up in the process it runs in is undone after the test."""
    for name in ("PYTHONPATH", "JUPYTER_PREFER_ENV_PATH", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "rfc3987_syntax", sys.modules.get("rfc3987_syntax"))
    spec = spec_from_file_location("run_all", Path(__file__).parents[1] / "run_all.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""The command line, run within the test's own process: exit code, stdout, stderr; and programs as modules."""

from __future__ import annotations

import contextlib
import io
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

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


def loaded(path: Path) -> ModuleType:
    """A program as a module."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""The command line, run within the test's own process: exit code, stdout, stderr."""

from __future__ import annotations

import contextlib
import io

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

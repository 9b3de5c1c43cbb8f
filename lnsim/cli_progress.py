"""This module draws the progress bars of the command line: on stderr, and nothing where that is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lnsim.checkpoint.source import Progress
from lnsim.text import printable

__all__ = ["bar"]


@contextmanager
def bar(label: str, unit: str = "read") -> Iterator[Progress]:
    """A bar that is told how many steps are done of how many.

    Args:
        label: what is under way.
        unit: what a step is called.
    """
    if not sys.stderr.isatty():
        yield lambda done, planned: None
        return
    from tqdm import tqdm

    with tqdm(desc=printable(label[:60]), unit=unit, leave=False, file=sys.stderr) as drawn:

        def progress(done: int, planned: int) -> None:
            drawn.total = planned
            drawn.n = done
            drawn.refresh()

        yield progress

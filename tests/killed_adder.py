"""Add sources to an atlas two at a time, and be killed (signal 9) at a named point.

    python tests/killed_adder.py FOLDER POINT SOURCE ...

Points: an extract written, before the rows, between the rows of two roles, between rows and journal, within a line of
the journal, after the journal; each in the second batch. ``never`` adds everything.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lnsim.atlas import store
from lnsim.checkpoint import store as extracts

POINTS = ("extract", "before rows", "between roles", "before journal", "within a line", "after journal")


def die(*_: object) -> None:
    """Killed, as by someone else: nothing of Python runs after it."""
    os.kill(os.getpid(), signal.SIGKILL)


def killing(work: Callable[..., Any], nth: int, before: bool) -> Callable[..., Any]:
    """The function, and death at its nth call, before or after it."""
    calls = 0

    def called(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth and before:
            die()
        found = work(*args, **more)
        if calls == nth:
            die()
        return found

    return called


def half_a_line(journal: Path) -> Callable[..., Any]:
    """Write the first half of the line, then die, in the second batch."""
    encode, calls = store.msgspec.json.encode, 0

    def called(entry: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            with journal.open("ab") as file:
                file.write(encode(entry)[:40])
            die()
        return encode(entry)

    return called


def main() -> None:
    """Set the trap, and add."""
    folder, point, *sources = sys.argv[1:]
    store._BATCH = 2
    if point == "extract":
        extracts.write_extract = killing(extracts.write_extract, 3, before=False)
    elif point == "between roles":
        import zarr

        zarr.Array.resize = killing(zarr.Array.resize, 5, before=True)  # three roles a batch
    elif point in ("before rows", "before journal"):
        store.write_rows = killing(store.write_rows, 2, before=point == "before rows")
    elif point == "within a line":
        store.msgspec.json.encode = half_a_line(Path(folder) / "journal.jsonl")
    elif point == "after journal":
        store.os.fsync = killing(os.fsync, 10**9, before=False)
        store.Atlas._write = killing(store.Atlas._write, 2, before=False)
    list(store.Atlas(Path(folder)).add([store.Wanted(source) for source in sources]))


if __name__ == "__main__":
    main()

"""Kill a process that rewrites one extract, again and again, and say what the file held each time.

    python tests/killed_writer.py FOLDER ROUNDS SEED

A script of its own, so that it may fork: it has one thread. Prints JSON: how often the old or the new content stood
there after the kill, how often anything else did, and in how many rounds a half-written temporary file was left.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from lnsim.checkpoint.store import Provenance, StoredTensor, write_extract

NAME = "model.safetensors"
LENGTHS = (200_000, 300_000)


def write(folder: Path, which: int) -> None:
    """Write one of the two contents; they differ in every byte and in length."""
    data = bytes([which + 1]) * LENGTHS[which]
    tensor = StoredTensor("model.norm.weight", "U8", (len(data),), data, "s.safetensors", 0, len(data))
    write_extract(folder / NAME, [tensor], Provenance("o/r", "o/r", "c" * 40, None, "llama", {}))


def rewrite_until_killed(folder: Path, which: int) -> None:
    """The child: one content after the other."""
    while True:
        which = 1 - which
        write(folder, which)


def killed_after(folder: Path, which: int, seconds: float) -> None:
    """Start a child that rewrites the extract, and kill it in the middle of whatever it does."""
    child = os.fork()
    if child == 0:
        rewrite_until_killed(folder, which)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def main() -> None:
    """Run the rounds."""
    folder, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(seed)
    contents = []
    for which in (1, 0):
        write(folder, which)
        contents.append((folder / NAME).read_bytes())
    new, old = contents
    found = {"old": 0, "new": 0, "other": 0, "rounds_with_a_part_left": 0}
    for _ in range(rounds):
        parts = set(folder.glob(".*.part"))
        which = int((folder / NAME).read_bytes() == new)
        killed_after(folder, which, rng.uniform(0.0005, 0.02))
        content = (folder / NAME).read_bytes()
        found["old" if content == old else "new" if content == new else "other"] += 1
        found["rounds_with_a_part_left"] += set(folder.glob(".*.part")) != parts
    print(json.dumps(found))


if __name__ == "__main__":
    main()

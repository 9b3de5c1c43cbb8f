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


def write(path: Path, which: int) -> bytes:
    """Write one of the two contents, which differ in every byte and in length; what the file holds then."""
    data = bytes([which + 1]) * (200_000, 300_000)[which]
    tensor = StoredTensor("model.norm.weight", "U8", (len(data),), data, "s.safetensors", 0, len(data))
    return write_extract(path, [tensor], Provenance("o/r", "o/r", "c" * 40, None, "llama", {})).read_bytes()


def main(folder: str, rounds: str, seed: str) -> None:
    """Run the rounds: each child writes one content after the other, until it is killed in whatever it does."""
    path, rng = Path(folder) / "model.safetensors", random.Random(int(seed))
    contents = {write(path, 1): "new", write(path, 0): "old"}
    found = {"old": 0, "new": 0, "other": 0, "rounds_with_a_part_left": 0}
    for _ in range(int(rounds)):
        parts = set(path.parent.glob(".*.part"))
        which = int(contents[path.read_bytes()] == "new")
        if not (child := os.fork()):
            while True:
                which = 1 - which
                write(path, which)
        time.sleep(rng.uniform(0.0005, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found[contents.get(path.read_bytes(), "other")] += 1
        found["rounds_with_a_part_left"] += set(path.parent.glob(".*.part")) != parts
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

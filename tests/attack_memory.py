"""Let `lnsim` read what is made to take memory, and print what came of it and the peak.

    python attack_memory.py header KIND MEGABYTES FOLDER    a huge header, written to the folder piece by piece
    python attack_memory.py hub                             the repo a/b of the Hub that HF_ENDPOINT names

A process of its own, since only that has a peak of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import lnsim
from lnsim import LnsimError

TENSOR = '"model.layers.{0}.mlp.experts.{0}.down_proj.weight":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}},'


def repeated(head: str, unit: str, tail: str) -> Callable[[int], Iterator[bytes]]:
    """A header of one unit again and again."""

    def make(n_bytes: int) -> Iterator[bytes]:
        count = (n_bytes - len(head.encode()) - len(tail)) // len(unit.encode())
        yield head.encode()
        for start in range(0, count, 50_000):
            yield unit.encode() * min(50_000, count - start)
        yield tail.encode()

    return make


def numbered(head: str, unit: str, tail: str) -> Callable[[int], Iterator[bytes]]:
    """A header of units with a running number, the last one a comma shorter."""

    def make(n_bytes: int) -> Iterator[bytes]:
        yield head.encode()
        written, number = len(head), 0
        while written < n_bytes - 10_000:
            piece = "".join(unit.format(number + more) for more in range(50))
            number += 50
            written += len(piece)
            yield piece.encode()
        yield (unit.format(number)[:-1] + tail).encode()

    return make


KINDS: dict[str, Callable[[int], Iterable[bytes]]] = {
    "spaces": repeated("{}", " ", ""),
    "a metadata text": repeated('{"__metadata__":{"a":"', "x", '"}}'),
    "a metadata text with an emoji": repeated('{"__metadata__":{"a":"😀', "x", '"}}'),
    "a metadata text of escapes": repeated('{"__metadata__":{"a":"', "\\n", '"}}'),
    "metadata keys": numbered('{"__metadata__":{', '"{0}":"",', "}}"),
    "an unknown key with empty objects": repeated('{"a":{"x":[{}', ",{}", "]}}"),
    "lists one in the other": repeated('{"a":', "[", ""),
    "tensors": numbered("{", TENSOR, "}"),
    "tensors in another spelling": numbered("{", '"{0}":["U8",[0],[0,0]],', "}"),
    "one tensor's name": repeated('{"', "x", '":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "one tensor's shape": repeated('{"a":{"dtype":"U8","shape":[0', ",0", '],"data_offsets":[0,0]}}'),
    "zero bytes": repeated("", "\0", ""),
}


def write_header(kind: str, megabytes: str, folder: str) -> None:
    """A file that is all header."""
    path = Path(folder) / "model.safetensors"
    with path.open("wb") as file:
        file.write(bytes(8))
        for piece in KINDS[kind](int(megabytes) * 1_000_000):
            file.write(piece)
        length = file.tell() - 8
        file.seek(0)
        file.write(length.to_bytes(8, "little"))


def main(what: str, *arguments: str) -> None:
    """Read it, and say how it went."""
    if what == "header":
        write_header(*arguments)
    try:
        said = f"{lnsim.extract(arguments[-1] if arguments else 'a/b').n_vectors} vectors"
    except LnsimError as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps({"said": said, "peak": peak()}))


def peak() -> int:
    """Most bytes that this program had in memory; `getrusage` counts those of whoever started it as well."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    main(*sys.argv[1:])

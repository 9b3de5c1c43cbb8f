"""This module guesses how many bytes to ask for first, from the names that an index lists for a shard.

A header is its names and, for each, some eighty bytes of dtype, shape and offsets. One shard's header shows how many it
is in this checkpoint. Where a norm opens the byte buffer, the window takes it along: that saves a request a shard.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lnsim.checkpoint.header import LENGTH_BYTES, Header

__all__ = ["Window"]

_AROUND = 120
"""Bytes around the entries: the length field, braces, ``__metadata__`` as writers fill it, and padding."""

_LEAST = 4096
"""Fewer bytes than this make no request cheaper."""

_MAX_HIDDEN_SIZE = 1 << 16

_LIKE_A_NORM = re.compile(r"(norm|(?:^|[._])ln)[^.]*\.(weight|bias|gamma|beta)$", re.IGNORECASE)
_SMALL_TENSORS = 2048
"""Bytes of small tensors of a wider dtype that writers put before the norms, such as a router's correction bias."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is known of a checkpoint's headers before they are read.

    Args:
        per_entry: bytes of an entry beside its name.
        norm_bytes: of one norm vector; 0 where it is not known.
    """

    per_entry: float = 84.0
    norm_bytes: int = 0

    @classmethod
    def learnt(cls, header: Header) -> Window:
        """What the header of one shard shows about the others'."""
        names = list(header.tensors)
        text = header.buffer_start - LENGTH_BYTES - sum(map(len, names))
        sizes = [info.n_bytes for name, info in header.tensors.items() if _like_a_norm(name)]
        return cls(text / max(1, len(names)) + 1, max(sizes) if sizes else _row_bytes(header))

    def size(self, names: Collection[str]) -> int:
        """Bytes to ask for first of a shard that holds these tensors."""
        header = sum(len(name.encode("utf-8", "surrogatepass")) for name in names) + self.per_entry * len(names)
        return max(_LEAST, int(header) + _AROUND + self._norms_in_front(sorted(names)))

    def _norms_in_front(self, names: Iterable[str]) -> int:
        """Bytes of the norms that come first, in the order of the names that writers use within a dtype."""
        count = 0
        for name in names:
            if not _like_a_norm(name):
                break
            count += 1
        return count * self.norm_bytes + _SMALL_TENSORS if count and self.norm_bytes else 0


def _row_bytes(header: Header) -> int:
    """Bytes of a vector of the hidden size, which is a side of nearly every matrix; 0 where there is no matrix."""
    matrices = [info for info in header.tensors.values() if len(info.shape) == 2 and info.n_bytes]
    sides = Counter(side for info in matrices for side in info.shape)
    if not matrices:
        return 0
    hidden_size = max(sides, key=lambda side: (sides[side], side))
    widest = max(info.n_bytes // (info.shape[0] * info.shape[1]) for info in matrices)
    return min(hidden_size, _MAX_HIDDEN_SIZE) * max(1, widest)


def _like_a_norm(name: str) -> bool:
    lower = name.lower()  # the pattern alone takes 4 us a name, and some checkpoints have 100,000
    return ("norm" in lower or "ln" in lower) and _LIKE_A_NORM.search(name) is not None

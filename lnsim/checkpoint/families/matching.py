"""This module looks norm-like names up in the patterns of a family's towers: dictionary look-ups, one a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lnsim.checkpoint.families.names import NormName
from lnsim.checkpoint.families.table import Pattern, Stack
from lnsim.errors import RoleError

MTP_MARKS = ("enorm", "hnorm", "shared_head.norm")
MAX_MTP_BLOCKS = 16
PER_HEAD_ROLES = ("q_norm", "k_norm")
UNKNOWN_KIND = "a layer of a kind that nothing tells"


@dataclass(frozen=True, slots=True)
class Tower:
    """A stack of a family together with what this checkpoint's config says of it."""

    stack: Stack
    config: Mapping[str, Any]
    n_blocks: int | None
    n_mtp: int | None = None
    kinds: tuple[str, ...] = ()

    def kind(self, layer: int) -> str:
        """The kind of a layer, an empty text where nothing tells it."""
        return self.kinds[layer] if layer < len(self.kinds) else ""

    def is_mtp(self, layer: int, marked: frozenset[int]) -> bool:
        """Whether the block is a multi-token-prediction block stored behind the tower's own blocks."""
        if not self.stack.mtp:
            return False
        if self.n_blocks is None:
            return layer in marked
        limit = MAX_MTP_BLOCKS if self.n_mtp is None else self.n_mtp
        return self.n_blocks <= layer < self.n_blocks + limit


@dataclass(frozen=True, slots=True)
class Match:
    """A norm-like name and the line that it matches; ``pattern`` is None where none does, ``why`` says why."""

    norm: NormName
    tower: Tower | None = None
    pattern: Pattern | None = None
    layer: int = -1
    mtp: bool = False
    root: str = ""
    why: str = "no pattern"


@dataclass(frozen=True, slots=True)
class _Line:
    """A pattern under one of its stack's prefixes, with the numbers of its path."""

    pattern: Pattern
    root: str
    slots: tuple[str, ...]
    sub_blocks: int

    def layer(self, numbers: tuple[int, ...]) -> int | None:
        """The layer that ``numbers`` name, -1 outside the blocks, None where a fixed number differs."""
        layer, sub_block = -1, 0
        for slot, number in zip(self.slots, numbers, strict=True):
            if slot == "*":
                layer = number * self.sub_blocks
            elif slot == "&" and number < self.sub_blocks:
                sub_block = number
            elif slot != "#" and slot != str(number):
                return None
        return layer + sub_block


Lines = Mapping[str, Sequence[_Line]]  # every full path that a stack's patterns allow, with numbers as ``*``


# A file without a config is held against every family: their paths are put together once, not for each file.
@cache
def _lines(stack: Stack) -> Lines:
    lines: dict[str, list[_Line]] = {}
    for root in stack.roots:
        for pattern in stack.patterns:
            absolute = pattern.path.startswith("/")
            parts = (pattern.path[1:] if absolute else root + pattern.path).split(".")
            slots = tuple(part for part in parts if part in "*#&" or part.isdigit())
            key = ".".join("*" if part in slots else part for part in parts)
            lines.setdefault(key, []).append(_Line(pattern, root, slots, stack.sub_blocks))
    return lines


def count_block_names(templates: Counter[str], towers: Iterable[Tower]) -> int:
    """How many of the names, counted by their template, are those of norms in a block of one of the towers."""
    known = [_block_paths(tower.stack) for tower in towers]
    return sum(number for name, number in templates.items() if any(name in paths for paths in known))


@cache
def _block_paths(stack: Stack) -> frozenset[str]:
    return frozenset(path for path, lines in _lines(stack).items() if any(one.pattern.in_block for one in lines))


def match_norms(norms: Sequence[NormName], towers: Sequence[Tower], *, partial: bool = False) -> list[Match]:
    """Match every norm-like name, in order; a two-dimensional tensor that is no per-head norm is dropped.

    A norm outside the blocks stands at their prefix; with ``partial`` also where the tower has no blocks. Raises
    RoleError where one tower's blocks appear under two prefixes, or two norms claim one place.
    """
    index = [(tower, _lines(tower.stack)) for tower in towers]
    # The blocks that carry a norm only multi-token-prediction blocks have.
    marked = frozenset(n.numbers[0] for n in norms if len(n.numbers) == 1 and n.template.endswith(MTP_MARKS))
    first = [_look_up(norm, index, marked, None) for norm in norms]
    roots = _block_roots(first)
    matches = []
    for norm, match in zip(norms, first, strict=True):
        if match.pattern is not None and not match.pattern.in_block and not (partial and id(match.tower) not in roots):
            match = _look_up(norm, index, marked, roots)
        if len(norm.shape) == 1 or match.pattern is not None:
            matches.append(match)
    _check_places(matches)
    return matches


def _check_places(matches: Iterable[Match]) -> None:
    places: dict[tuple[object, ...], str] = {}
    for match in matches:
        if match.pattern is None or match.pattern.role == "other" or "#" in match.pattern.path:
            continue
        place = (id(match.tower), match.mtp, match.layer, match.pattern.role, match.norm.kind)
        first = places.setdefault(place, match.norm.name)
        if first != match.norm.name:
            raise RoleError(
                f"'{first}' and '{match.norm.name}' would both be the {match.pattern.role} {match.norm.kind} of layer "
                f"{match.layer}; expected one. Read a checkpoint that holds one model, or pass the model_type that "
                f"fits its blocks."
            )


def _look_up(
    norm: NormName, index: Iterable[tuple[Tower, Lines]], marked: frozenset[int], roots: Mapping[int, str] | None
) -> Match:
    best = Match(norm)
    for tower, line in ((tower, line) for tower, lines in index for line in lines.get(norm.template, ())):
        if roots is not None and roots.get(id(tower)) != line.root:
            continue
        if len(norm.shape) == 2 and line.pattern.role not in PER_HEAD_ROLES:
            continue
        layer = line.layer(norm.numbers)
        if layer is None:
            continue
        found = _place(norm, tower, line, layer, marked)
        if found.pattern is not None:
            return found
        best = found
    return best


def _place(norm: NormName, tower: Tower, line: _Line, layer: int, marked: frozenset[int]) -> Match:
    """Check the layer against the tower's number of blocks and the line's kinds of layer."""
    pattern = line.pattern
    if not pattern.in_block:
        return Match(norm, tower, pattern, root=line.root)
    mtp = tower.is_mtp(layer, marked)
    if not mtp and tower.n_blocks is not None and layer >= tower.n_blocks:
        return Match(norm, tower, why=f"beyond the {tower.n_blocks} blocks of the config")
    kind = "mtp" if mtp else tower.kind(layer)
    if pattern.kinds and kind not in pattern.kinds:
        return Match(norm, tower, layer=layer, why=f"a layer of kind {kind[:40]!r}" if kind else UNKNOWN_KIND)
    return Match(norm, tower, pattern, layer, mtp, line.root)


def _block_roots(matches: Iterable[Match]) -> dict[int, str]:
    """The one prefix of each tower's blocks, by the tower's identity."""
    roots: dict[int, str] = {}
    for match in matches:
        if match.pattern is None or not match.pattern.in_block or match.pattern.path.startswith("/"):
            continue
        known = roots.setdefault(id(match.tower), match.root)
        if known != match.root:
            raise RoleError(
                f"the {match.tower.stack.tower if match.tower else ''} blocks appear twice, under '{known}' and under "
                f"'{match.root}'; expected one set of blocks a tower. Read a checkpoint that holds one model."
            )
    return roots

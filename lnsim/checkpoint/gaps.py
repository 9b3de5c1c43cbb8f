"""This module counts the blocks of each tower and names the layers that lack a norm their table promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lnsim.checkpoint.families.matching import Match, Tower
from lnsim.checkpoint.families.table import Pattern

__all__ = ["block_counts", "find_gaps"]

Key = tuple[str, str]  # (tower, role)


def block_counts(towers: Sequence[Tower], matches: Sequence[Match]) -> dict[str, int]:
    """The number of blocks of each tower, from the config where it tells, else from the highest layer found."""
    counts: dict[str, int] = {}
    for tower in towers:
        own = [match.layer for match in matches if match.tower is tower and match.pattern and not match.mtp]
        found = max(own, default=-1) + 1
        n_blocks = found if tower.n_blocks is None else tower.n_blocks
        if n_blocks:
            counts[tower.stack.tower] = max(n_blocks, counts.get(tower.stack.tower, 0))
        mtp = {match.layer for match in matches if match.tower is tower and match.mtp}
        if tower.stack.mtp and (mtp or tower.n_mtp):
            counts["mtp"] = tower.n_mtp or len(mtp)
    return counts


def find_gaps(towers: Sequence[Tower], matches: Sequence[Match], counts: dict[str, int]) -> dict[Key, tuple[int, ...]]:
    """The layers without a weight of a role that is promised, or found in some other layer; -1 outside the blocks."""
    gaps: dict[Key, tuple[int, ...]] = {}
    for tower in towers:
        own = [m for m in matches if m.tower is tower and m.pattern and m.norm.kind == "weight"]
        for key, patterns in _by_role(tower).items():
            of_mtp = tower.stack.mtp and key[0] == "mtp"
            here = [m for m in own if m.pattern in patterns and m.mtp == of_mtp]
            have, found = {m.layer for m in here}, {m.pattern for m in here}
            promising = [pattern for pattern in patterns if pattern in found or _is_promised(pattern, tower)]
            missing = tuple(layer for layer in _promised(tower, key[0], promising, counts) if layer not in have)
            if missing:
                gaps[key] = missing
    return gaps


def _is_promised(pattern: Pattern, tower: Tower) -> bool:
    """Whether the norm is there in every such model; where a key of the config decides, whether it says so."""
    return tower.config.get(pattern.key) is True if pattern.key else not pattern.optional


def _by_role(tower: Tower) -> dict[Key, list[Pattern]]:
    """The tower's lines by role; those of the multi-token-prediction blocks apart."""
    roles: dict[Key, list[Pattern]] = {}
    for pattern in tower.stack.patterns:
        if pattern.role == "other":
            continue
        if pattern.kinds != ("mtp",):
            roles.setdefault((tower.stack.tower, pattern.role), []).append(pattern)
        if tower.stack.mtp and pattern.in_block and (not pattern.kinds or "mtp" in pattern.kinds):
            roles.setdefault(("mtp", pattern.role), []).append(pattern)
    return roles


def _promised(tower: Tower, name: str, patterns: Sequence[Pattern], counts: dict[str, int]) -> Iterator[int]:
    if any(not pattern.in_block for pattern in patterns):
        yield from (-1,) if counts.get(name) else ()
    elif name == "mtp" and tower.stack.mtp:
        start = counts.get(tower.stack.tower, 0)
        yield from range(start, start + counts.get("mtp", 0)) if patterns else ()
    else:
        for layer in range(counts.get(tower.stack.tower, 0)):
            kind = tower.kind(layer)
            if any((not p.kinds or not kind or kind in p.kinds) and kind not in p.free for p in patterns):
                yield layer

"""This module tells what a reader of the roles must know: blocks counted, layers missing, one sentence a fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lnsim.checkpoint.families.choice import Choice
from lnsim.checkpoint.families.matching import PER_HEAD_ROLES, Match, Tower
from lnsim.checkpoint.families.names import NormName, collapse
from lnsim.checkpoint.families.table import Pattern

__all__ = ["block_counts", "has_blocks", "missing_layers", "notes_for"]

MAX_REASONS = 8
Key = tuple[str, str]  # (tower, role)


def has_blocks(tower: Tower, matches: Iterable[Match]) -> bool:
    """Whether any norm was placed in a block of the tower."""
    return any(match.tower is tower and match.pattern and match.layer >= 0 for match in matches)


def notes_for(choice: Choice, matches: Sequence[Match]) -> Iterator[str]:
    """The notes of a role map: the choice's own, then those on blocks, heads and norms left as other."""
    yield from choice.notes
    wrappers = dict.fromkeys(wrapper for match in matches for wrapper in match.norm.wrappers)
    if wrappers:
        yield f"Left out of the names when they were matched: {', '.join(wrappers)}."
    if choice.family.note:
        yield choice.family.note
    for tower in choice.every_tower:
        yield from _tower_notes(tower, [match for match in matches if match.tower is tower and match.pattern])
    for tower in choice.beside:
        if not has_blocks(tower, matches):
            yield f"The config tells of a {tower.stack.tower} tower; no blocks of it were found under a known prefix."
    if any(_is_per_head(match) for match in matches):
        yield "The query or key norms are stored a head at a time: several vectors a layer."
    yield from _other_notes(matches)


def _tower_notes(tower: Tower, own: Sequence[Match]) -> Iterator[str]:
    in_blocks = [match for match in own if match.layer >= 0]
    if in_blocks and tower.n_blocks is None:
        yield f"The config does not tell the number of {tower.stack.tower} blocks: counted from the names."
    if tower.stack.bias is False and any(match.norm.kind == "bias" for match in in_blocks):
        yield f"The {tower.stack.tower} norms carry biases that this family does not have: added by a converter?"


def _is_per_head(match: Match) -> bool:
    if match.pattern is None or match.pattern.role not in PER_HEAD_ROLES:
        return False
    return len(match.norm.shape) == 2 or "#" in match.pattern.path


def _other_notes(matches: Iterable[Match]) -> Iterator[str]:
    """One sentence for each reason why norms have no role."""
    reasons: dict[str, list[NormName]] = {}
    for match in matches:
        if match.pattern is None:
            reasons.setdefault(match.why, []).append(match.norm)
    for why, norms in list(reasons.items())[:MAX_REASONS]:
        yield f"Read as other ({why}): {', '.join(collapse(norms))}."
    if len(reasons) > MAX_REASONS:
        yield f"Read as other for {len(reasons) - MAX_REASONS} more reasons."


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


def missing_layers(
    towers: Sequence[Tower], matches: Sequence[Match], counts: dict[str, int]
) -> dict[Key, tuple[int, ...]]:
    """The layers without a weight of a role that is promised, or found in some other layer; -1 outside the blocks."""
    gaps: dict[Key, tuple[int, ...]] = {}
    for tower in towers:
        own = [m for m in matches if m.tower is tower and m.pattern and m.norm.kind == "weight"]
        for key, patterns in _by_role(tower).items():
            of_mtp = tower.stack.mtp and key[0] == "mtp"
            here = [m for m in own if m.pattern in patterns and m.mtp == of_mtp]
            have, found = {m.layer for m in here}, {m.pattern for m in here}
            # A norm is promised where every such model has it; where a key of the config decides, where that says so.
            config = tower.config
            promising = [p for p in patterns if p in found or (config.get(p.key) is True if p.key else not p.optional)]
            missing = tuple(layer for layer in _promised(tower, key[0], promising, counts) if layer not in have)
            if missing:
                gaps[key] = missing
    return gaps


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

"""This module writes what a reader of the roles must know: one sentence a fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lnsim.checkpoint.families.evidence import Choice
from lnsim.checkpoint.families.matching import PER_HEAD_ROLES, Match, Tower
from lnsim.checkpoint.families.names import NormName, collapse

__all__ = ["has_blocks", "notes_for"]

MAX_REASONS = 8


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
    for tower in (*choice.towers, *choice.beside):
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

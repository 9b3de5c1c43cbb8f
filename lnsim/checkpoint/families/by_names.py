"""This module chooses a family where there is no config: by the complete set of norm names, exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lnsim.checkpoint.families.evidence import Choice, Evidence, towers_of, unknown_family, without_table
from lnsim.checkpoint.families.matching import Match, Tower, match_norms
from lnsim.checkpoint.families.names import NormName
from lnsim.checkpoint.families.table import FAMILIES, Family
from lnsim.errors import RoleError

__all__ = ["choose_by_names", "choose_by_type", "tower_alone"]

Meanings = Mapping[str, tuple[object, ...]]

MAX_FORMS = 1_000  # forms of names, all layers of one counted once; no family has a tenth of it


def choose_by_names(evidence: Evidence) -> Choice:
    """The family of a bare file: the complete set of names must fit, and every family that fits must agree.

    Raises:
        RoleError: no family fits, or those that do disagree.
    """
    norms, where = evidence.norms, evidence.where
    distinct = _distinct(norms)
    if len(distinct) > MAX_FORMS:
        raise unknown_family(norms, where, f"there is no config, and {len(distinct)} different names fit no table")
    fitting = list(_fitting(evidence))
    if not fitting:
        raise unknown_family(norms, where, "there is no config, and no table has exactly these names")
    names = ", ".join(dict.fromkeys(family.name for family, _, _ in fitting))
    if any(roles != fitting[0][2] for _, _, roles in fitting):
        raise unknown_family(norms, where, f"there is no config, and the tables with these names disagree: {names}")
    notes = [f"No config: roles from names alone; families with exactly these names: {names}."]
    both = len({tower.stack.offset for _, towers, _ in fitting for tower in towers}) > 1
    family, towers, _ = fitting[0]
    return Choice(family, "", towers, notes=tuple(notes), both_offsets=both)


def _fitting(evidence: Evidence) -> Iterator[tuple[Family, tuple[Tower, ...], Meanings]]:
    """Every family whose names these are, as a whole or as one of its towers saved without its prefix."""
    for family in FAMILIES:
        if not family.by_name:
            continue
        towers = tuple(Tower(stack, {}, None, kinds=_mixed(evidence.kinds(stack))) for stack in family.stacks)
        if roles := _fit(towers, evidence):
            yield family, towers, roles
        for tower in towers if len(towers) > 1 else ():
            bare = tower_alone(tower, evidence)
            if bare and (roles := _fit((bare,), evidence)):
                yield family, (bare,), roles


def _mixed(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of a stack that is not attention throughout: such a one is no hybrid by its names."""
    return kinds if set(kinds) - {"", "attention"} else ()


def tower_alone(tower: Tower, evidence: Evidence) -> Tower | None:
    """The tower without any prefix, where the checkpoint's names are exactly its own; else None."""
    if tower.stack.tower == "mtp" or "" in tower.stack.roots:
        return None
    stack = replace(tower.stack, roots=("",))
    kinds = tower.kinds or evidence.kinds(stack)
    return replace(tower, stack=stack, kinds=kinds) if _fit((Tower(stack, {}, None, kinds=kinds),), evidence) else None


def choose_by_type(evidence: Evidence, model_type: str) -> Choice:
    """The family of a model type without its config: where the config would decide, the block norms must.

    Raises:
        RoleError: the model type has no table, or its block norms fit several layouts.
    """
    norms, where = evidence.norms, evidence.where
    variants = [family for family in FAMILIES if model_type in family.model_types]
    if not variants:
        raise unknown_family(norms, where, f"the model type {model_type[:60]!r} has no table")
    if len(variants) > 1:
        layouts = [family for family in variants if _fit(tuple(towers_of(family, {}, evidence)), evidence, whole=False)]
        if len(layouts) != 1:
            raise unknown_family(
                norms, where, f"{model_type!r} has several layouts, and there is no config to tell which"
            )
        variants = layouts
    if not variants[0].stacks:
        raise without_table(variants[0], model_type, where)
    return Choice(variants[0], model_type, tuple(towers_of(variants[0], {}, evidence)))


def _distinct(norms: Sequence[NormName]) -> list[NormName]:
    """One name for all layers: the layer is the first number of a name."""
    return list({(norm.template, norm.numbers[1:], norm.kind): norm for norm in norms}.values())


def _fit(towers: Sequence[Tower], evidence: Evidence, whole: bool = True) -> Meanings | None:
    """What the towers say of each name, or None unless the checkpoint's blocks are exactly those of one or more.

    With ``whole`` the norms outside the blocks count too.
    """
    norms = evidence.norms if any(tower.kinds for tower in towers) else _distinct(evidence.norms)
    try:
        matches = match_norms(norms, towers, evidence.where)
    except RoleError:
        return None
    blocks = [match for match in matches if match.norm.numbers]
    if not blocks or any(match.pattern is None for match in blocks):
        return None
    roots = tuple({match.root for match in blocks if match.root})
    if whole and roots and any(match.pattern is None and match.norm.template.startswith(roots) for match in matches):
        return None  # one more norm beside the blocks: another family
    present = [tower for tower in towers if any(match.tower is tower and match.pattern for match in matches)]
    if not all(_is_complete(tower, matches, whole) for tower in present):
        return None
    return {match.norm.name: _meaning(match) for match in matches}


def _is_complete(tower: Tower, matches: Sequence[Match], whole: bool) -> bool:
    stack = tower.stack
    own = [match for match in matches if match.tower is tower and match.pattern]
    weights = {match.pattern for match in own if match.norm.kind == "weight"}
    biases = {match.pattern for match in own if match.norm.kind == "bias"}
    lines = (pattern for pattern in stack.patterns if whole or pattern.in_block)
    promised = {pattern for pattern in lines if not pattern.optional and not pattern.key}
    promised = {pattern for pattern in promised if not pattern.kinds or set(pattern.kinds) & set(tower.kinds)}
    promised = {pattern for pattern in promised if pattern.role != "other"}
    if not promised <= weights:
        return False
    return stack.bias is None or (promised <= biases if stack.bias else not biases)


def _meaning(match: Match) -> tuple[object, ...]:
    if match.tower is None or match.pattern is None:
        return ("other",)
    pattern, stack = match.pattern, match.tower.stack
    return (stack.tower, pattern.role, pattern.shared, pattern.norm_type or stack.norm_type, match.mtp)

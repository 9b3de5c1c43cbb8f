"""This module chooses a family where there is no config: by the complete set of norm names, exactly."""

from __future__ import annotations

from collections.abc import Sequence

from lnsim.checkpoint.families import Family, Stack
from lnsim.checkpoint.family_table import FAMILIES, Choice, towers_of, unknown_family, without_table
from lnsim.checkpoint.matching import Match, Tower, match_norms
from lnsim.checkpoint.norm_names import NormName
from lnsim.errors import RoleError

__all__ = ["choose_by_names", "choose_by_type"]

MAX_FORMS = 1_000  # forms of names, all layers of one counted once; no family has a tenth of it


def choose_by_names(norms: Sequence[NormName], where: str) -> Choice:
    """The family of a bare file: the complete set of names must fit, and every family that fits must agree.

    Raises:
        RoleError: no family fits, or those that do disagree.
    """
    distinct = _distinct(norms)
    if len(distinct) > MAX_FORMS:
        raise unknown_family(norms, where, f"there is no config, and {len(distinct)} different names fit no table")
    fitting = [(family, roles) for family in FAMILIES if family.by_name and (roles := _fit(family, distinct, where))]
    if not fitting:
        raise unknown_family(norms, where, "there is no config, and no table has exactly these names")
    names = ", ".join(dict.fromkeys(family.name for family, _ in fitting))
    if any(roles != fitting[0][1] for _, roles in fitting):
        raise unknown_family(norms, where, f"there is no config, and the tables with these names disagree: {names}")
    notes = [f"No config: roles from names alone; families with exactly these names: {names}."]
    both = len({tower.offset for family, _ in fitting for tower in family.stacks}) > 1
    family = fitting[0][0]
    towers = tuple(Tower(stack, {}, None) for stack in family.stacks)
    return Choice(family, "", towers, notes=tuple(notes), both_offsets=both)


def choose_by_type(norms: Sequence[NormName], model_type: str, where: str) -> Choice:
    """The family of a model type without its config: where the config would decide, the block norms must.

    Raises:
        RoleError: the model type has no table, or its block norms fit several layouts.
    """
    variants = [family for family in FAMILIES if model_type in family.model_types]
    if not variants:
        raise unknown_family(norms, where, f"the model type {model_type[:60]!r} has no table")
    if len(variants) > 1:
        layouts = [family for family in variants if _fit(family, _distinct(norms), where, whole=False)]
        if len(layouts) != 1:
            raise unknown_family(
                norms, where, f"{model_type!r} has several layouts, and there is no config to tell which"
            )
        variants = layouts
    if not variants[0].stacks:
        raise without_table(variants[0], model_type, where)
    return Choice(variants[0], model_type, tuple(towers_of(variants[0], {}, where)))


def _distinct(norms: Sequence[NormName]) -> list[NormName]:
    """One name for all layers: the layer is the first number of a name."""
    return list({(norm.template, norm.numbers[1:], norm.kind): norm for norm in norms}.values())


def _fit(
    family: Family, norms: Sequence[NormName], where: str, whole: bool = True
) -> dict[str, tuple[object, ...]] | None:
    """What the family says of each name, or None unless its blocks are exactly the checkpoint's.

    With ``whole`` the norms outside the blocks count too.
    """
    towers = [Tower(stack, {}, None) for stack in family.stacks]
    try:
        matches = match_norms(norms, towers, where)
    except RoleError:
        return None
    blocks = [match for match in matches if match.norm.numbers]
    if not blocks or any(match.pattern is None for match in blocks):
        return None
    roots = tuple({match.root for match in blocks if match.root})
    if whole and roots and any(match.pattern is None and match.norm.template.startswith(roots) for match in matches):
        return None  # one more norm beside the blocks: another family
    if not all(_is_complete(stack, matches, whole) for stack in family.stacks):
        return None
    return {match.norm.name: _meaning(match) for match in matches}


def _is_complete(stack: Stack, matches: Sequence[Match], whole: bool) -> bool:
    own = [match for match in matches if match.tower is not None and match.tower.stack is stack and match.pattern]
    weights = {match.pattern for match in own if match.norm.kind == "weight"}
    biases = {match.pattern for match in own if match.norm.kind == "bias"}
    lines = (pattern for pattern in stack.patterns if whole or pattern.in_block)
    promised = {pattern for pattern in lines if not pattern.optional and "mtp" not in pattern.kinds}
    promised = {pattern for pattern in promised if pattern.role != "other"}
    if not promised <= weights:
        return False
    return stack.bias is None or (promised <= biases if stack.bias else not biases)


def _meaning(match: Match) -> tuple[object, ...]:
    if match.tower is None or match.pattern is None:
        return ("other",)
    pattern, stack = match.pattern, match.tower.stack
    return (stack.tower, pattern.role, pattern.shared, pattern.norm_type or stack.norm_type, match.mtp)

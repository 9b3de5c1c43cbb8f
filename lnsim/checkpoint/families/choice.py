"""This module chooses the family whose tables read a checkpoint: by its config, or by names where there is none.

Without a config the complete set of norm names must fit a table exactly, and every table that fits must agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lnsim.checkpoint.families.config import (
    MEDIA_KEYS,
    TEXT_KEYS,
    Config,
    Parts,
    block_count,
    nested_configs,
    shown_kinds,
    tower_config,
)
from lnsim.checkpoint.families.matching import Match, Tower, count_block_names, match_norms
from lnsim.checkpoint.families.names import NormName, collapse
from lnsim.checkpoint.families.table import CLASSES, FAMILIES, Family, Stack
from lnsim.errors import RoleError

# In the config of an extract: a tower's kinds of layer, where tensors showed them that the extract does not hold.
KINDS_KEY = "lnsim_layer_kinds"
MTP_COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
MAX_FORMS = 1_000  # forms of names, all layers of one counted once; no family has a tenth of it
MEDIA_WORDS = ("vision", "visual", "audio", "speech", "image")
HOW_TO_ADD = (
    "Add an entry to lnsim/checkpoint/families/families.toml (its top says how), or pass the model_type of "
    "a family with the same blocks."
)

Meanings = Mapping[str, tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class Choice:
    """The family of a checkpoint, with what its config says of each tower."""

    family: Family
    model_type: str
    towers: tuple[Tower, ...]
    beside: tuple[Tower, ...] = ()  # of other families: vision and audio
    notes: tuple[str, ...] = ()
    both_offsets: bool = False  # families which store gamma and others which store it minus one have these names

    @property
    def every_tower(self) -> tuple[Tower, ...]:
        """Its own towers, then those beside them."""
        return (*self.towers, *self.beside)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a checkpoint's tensors show."""

    norms: Sequence[NormName]
    parts: Callable[[], Parts]  # what its layers hold, read only where it is needed
    told: Mapping[str, Any]  # kinds of layer that an extract has on record, by tower

    def kinds(self, stack: Stack) -> tuple[str, ...]:
        """The kind of each layer of a stack, empty where its tensors show none."""
        if not stack.marks:
            return ()
        told = self.told.get(stack.tower)
        if isinstance(told, list) and all(isinstance(kind, str) for kind in told):
            return tuple(told)
        blocks = dict.fromkeys(p.path.split(".*")[0] for p in stack.patterns if p.in_block)
        return shown_kinds(stack.marks, [f"{root}{block}" for root in stack.roots for block in blocks], self.parts())


def choose(evidence: Evidence, config: Config | None, model_type: str | None) -> Choice:
    """The family of a checkpoint; RoleError, with the norm-like names, for no table or several that disagree."""
    named = model_type or (config and (config.get("model_type") or config.get("architectures")))
    if config is None or not (named or any(True for _ in nested_configs(config, TEXT_KEYS))):
        if model_type is None:  # an extract of a bare file has a config that says nothing of the model
            return _by_names(evidence)
        return _as_saved(_by_type(evidence, model_type), {}, evidence)
    for name, part in _declared(config, model_type):
        family = _variant(name, {**config, **tower_config(part, "text")})
        if family is not None:
            part = part if part.get("model_type") == name else config
            choice = _chosen(family, name, part, evidence)
            return _as_saved(replace(choice, beside=tuple(_media(config, family, evidence))), part, evidence)
    declared = model_type or config.get("model_type")
    raise unknown_family(evidence.norms, f"the model type {str(declared)[:60]!r} has no table")


def _as_saved(choice: Choice, config: Config, evidence: Evidence) -> Choice:
    """The choice as it is where the file has its names, else with those of the first release or of one tower alone."""
    every = choice.every_tower
    templates = Counter(norm.template for norm in evidence.norms)  # a model has many norms and few templates
    known = count_block_names(templates, every)
    for family in (one for one in FAMILIES if choice.model_type in one.native):
        towers = _towers_of(family, config, evidence)
        towers = tuple(tower for tower in towers if count_block_names(templates, [tower]))
        if (number := count_block_names(templates, towers)) > known:
            known, own = number, {tower.stack.tower for tower in towers}
            beside = tuple(tower for tower in choice.beside if tower.stack.tower not in own)
            note = f"The names are those of another release or format of the model: read by the table {family.name!r}."
            choice = replace(choice, family=family, towers=towers, beside=beside, notes=(note,))
    if known:
        return choice
    alone = {tower.stack.tower: bare for tower in every if (bare := _alone(tower, evidence))}
    if len(alone) != 1:
        return choice
    note = f"One tower saved alone, without its prefix: its names are those of the {next(iter(alone))} tower."
    towers = tuple(alone.get(tower.stack.tower, tower) for tower in every)
    return replace(choice, towers=towers, beside=(), notes=(*choice.notes, note))


def _declared(config: Config, model_type: str | None) -> Iterator[tuple[str, Config]]:
    """Model types to try, the most particular first, each with the config that declares it."""
    if model_type is not None:
        yield model_type, config
        return
    nested = [config, *nested_configs(config, TEXT_KEYS)]
    for part in nested:
        if isinstance(part.get("model_type"), str):
            yield part["model_type"], part
    architectures = config.get("architectures")
    for name in architectures if isinstance(architectures, list) else ():
        if isinstance(name, str) and name in CLASSES:
            yield CLASSES[name], config


def _variant(model_type: str, config: Config) -> Family | None:
    return next((f for f in FAMILIES if model_type in f.model_types and (f.when is None or f.when(config))), None)


def _media(config: Config, family: Family, evidence: Evidence) -> Iterator[Tower]:
    """Vision and audio towers beside a text tower, where their own model type has a table."""
    own = {stack.tower for stack in family.stacks}
    for tower, keys in MEDIA_KEYS.items():
        if tower in own:
            continue
        for part in nested_configs(config, keys):
            found = _variant(str(part.get("model_type")), part)
            for stack in found.stacks if found else ():
                if stack.tower == tower:
                    # A prefix that names the tower cannot mean the text decoder beside it.
                    roots = (root for root in stack.roots if any(word in root for word in MEDIA_WORDS))
                    yield _tower_of(replace(stack, roots=tuple(roots)), part, evidence)


def _by_names(evidence: Evidence) -> Choice:
    """The family of a bare file; RoleError where none has exactly these names, or those that do disagree."""
    norms = evidence.norms
    distinct = _distinct(norms)
    if len(distinct) > MAX_FORMS:
        raise unknown_family(norms, f"there is no config, and {len(distinct)} different names fit no table")
    fitting = list(_fitting(evidence))
    if not fitting:
        raise unknown_family(norms, "there is no config, and no table has exactly these names")
    names = ", ".join(dict.fromkeys(family.name for family, _, _ in fitting))
    if any(roles != fitting[0][2] for _, _, roles in fitting):
        raise unknown_family(norms, f"there is no config, and the tables with these names disagree: {names}")
    note = f"No config: roles from names alone; families with exactly these names: {names}."
    both = len({tower.stack.offset for _, towers, _ in fitting for tower in towers}) > 1
    family, towers, _ = fitting[0]
    return Choice(family, "", towers, notes=(note,), both_offsets=both)


def _fitting(evidence: Evidence) -> Iterator[tuple[Family, tuple[Tower, ...], Meanings]]:
    """Every family whose names these are, as a whole or as one of its towers saved without its prefix."""
    for family in FAMILIES:
        if not family.by_name:
            continue
        # A stack that is attention throughout is no hybrid by its names.
        shown = map(evidence.kinds, family.stacks)
        mixed = [kinds if set(kinds) - {"", "attention"} else () for kinds in shown]
        towers = tuple(Tower(stack, {}, None, kinds=kinds) for stack, kinds in zip(family.stacks, mixed, strict=True))
        if roles := _fit(towers, evidence):
            yield family, towers, roles
        for tower in towers if len(towers) > 1 else ():
            bare = _alone(tower, evidence)
            if bare and (roles := _fit((bare,), evidence)):
                yield family, (bare,), roles


def _alone(tower: Tower, evidence: Evidence) -> Tower | None:
    """The tower without any prefix, where the checkpoint's names are exactly its own; else None."""
    if tower.stack.tower == "mtp" or "" in tower.stack.roots:
        return None
    stack = replace(tower.stack, roots=("",))
    kinds = tower.kinds or evidence.kinds(stack)
    return replace(tower, stack=stack, kinds=kinds) if _fit((Tower(stack, {}, None, kinds=kinds),), evidence) else None


def _by_type(evidence: Evidence, model_type: str) -> Choice:
    """The family of a model type without its config; RoleError where its block norms fit several layouts."""
    norms = evidence.norms
    variants = [family for family in FAMILIES if model_type in family.model_types]
    if not variants:
        raise unknown_family(norms, f"the model type {model_type[:60]!r} has no table")
    if len(variants) > 1:
        variants = [family for family in variants if _fit(_towers_of(family, {}, evidence), evidence, whole=False)]
        if len(variants) != 1:
            raise unknown_family(norms, f"{model_type!r} has several layouts, and there is no config to tell which")
    return _chosen(variants[0], model_type, {}, evidence)


def _chosen(family: Family, model_type: str, config: Config, evidence: Evidence) -> Choice:
    if not family.stacks:
        raise RoleError(f"'{model_type}' has no table. {family.note}.")
    return Choice(family, model_type, _towers_of(family, config, evidence))


def _distinct(norms: Sequence[NormName]) -> list[NormName]:
    """One name for all layers: the layer is the first number of a name."""
    return list({(norm.template, norm.numbers[1:], norm.kind): norm for norm in norms}.values())


def _fit(towers: Sequence[Tower], evidence: Evidence, whole: bool = True) -> Meanings | None:
    """What the towers say of each name, or None unless the checkpoint's blocks are exactly those of one or more.

    With ``whole`` the norms outside the blocks count too.
    """
    norms = evidence.norms if any(tower.kinds for tower in towers) else _distinct(evidence.norms)
    try:
        matches = match_norms(norms, towers)
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
    promised = {
        pattern
        for pattern in stack.patterns
        if (whole or pattern.in_block)
        and not (pattern.optional or pattern.key or pattern.role == "other")
        and (not pattern.kinds or set(pattern.kinds) & set(tower.kinds))
    }
    return promised <= weights and (stack.bias is None or (promised <= biases if stack.bias else not biases))


def _meaning(match: Match) -> tuple[object, ...]:
    if match.tower is None or match.pattern is None:
        return ("other",)
    pattern, stack = match.pattern, match.tower.stack
    return (stack.tower, pattern.role, pattern.shared, pattern.norm_type or stack.norm_type, match.mtp)


def _towers_of(family: Family, config: Config, evidence: Evidence) -> tuple[Tower, ...]:
    """The towers of a family, with the number and the kinds of their blocks."""
    return tuple(_tower_of(stack, tower_config(config, stack.tower), evidence) for stack in family.stacks)


def _tower_of(stack: Stack, part: Config, evidence: Evidence) -> Tower:
    """One tower; its kinds of layer are those of its part of the config, else those that the tensors show."""
    kinds = tuple(stack.kinds(part)) if stack.kinds else ()
    count = block_count(part, stack.counts)
    n_blocks = None if count is None else count * stack.sub_blocks
    return Tower(stack, part, n_blocks, block_count(part, MTP_COUNTS), kinds or evidence.kinds(stack))


def unknown_family(norms: Sequence[NormName], found: str) -> RoleError:
    """The error for a checkpoint that no table reads."""
    names = collapse(norms)
    listed = f"Its norm-like names: {', '.join(names)}." if names else "It has no norm-like names at all."
    return RoleError(f"expected a family that lnsim knows, but {found}. {listed} {HOW_TO_ADD}")

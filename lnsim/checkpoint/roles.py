"""This module gives each norm of a checkpoint its tower, layer and role, from tensor names and config.

The rule above all: an unknown family is an error and an unknown norm is ``other``; a role is never guessed.
Pure: names, shapes and a parsed ``config.json`` in, a ``RoleMap`` out. The table is ``families/families.toml``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lnsim.checkpoint.families.choice import KINDS_KEY, Choice, Evidence, choose, unknown_family
from lnsim.checkpoint.families.config import parts_of_layers
from lnsim.checkpoint.families.matching import PER_HEAD_ROLES, UNKNOWN_KIND, Match, Tower, match_norms
from lnsim.checkpoint.families.names import WORDS, NormName, adapter_kind, collapse, norm_names, unwrap
from lnsim.checkpoint.families.offset import decide_offset, offset_sentence
from lnsim.checkpoint.families.table import FAMILIES, Pattern
from lnsim.checkpoint.store import FORMAT
from lnsim.checkpoint.vectors import Offset, key_of
from lnsim.errors import RoleError, named

LEAVES = frozenset(
    next(part for part in reversed(pattern.path.split(".")) if part not in "*#&" and not part.isdigit())
    for family in FAMILIES
    for stack in family.stacks
    for pattern in stack.patterns
)
MAX_REASONS = 8  # why norms have no role, a sentence each
MAX_CHANNELS = 1 << 20  # values of one norm; the widest known model has 16,384 channels
MAX_VALUES = 1 << 24  # of all norms of a checkpoint, three times those of the largest known one
TELLTALES = tuple(WORDS["telltales"])
TOWER_WORDS: Mapping[str, Sequence[str]] = WORDS["towers"]


@dataclass(frozen=True, slots=True)
class NormTensor:
    """One norm parameter: where it sits and how its stored bytes become the effective gamma or beta."""

    name: str
    tower: str
    layer: int  # zero-based, -1 outside the blocks
    role: str
    kind: str
    norm_type: str
    offset: float  # added to a stored weight for the effective gamma
    shared: bool  # it feeds attention and MLP at once


@dataclass(frozen=True, slots=True)
class RoleMap:
    """The norms of a checkpoint with their roles."""

    family: str
    model_type: str
    main_tower: str
    norm_type: str
    tensors: tuple[NormTensor, ...]
    n_layers: Mapping[str, int]  # blocks of each tower, from the config where it tells, else counted
    missing_layers: Mapping[str, tuple[int, ...]]  # by role key, those that lack its weight; -1 outside the blocks
    notes: tuple[str, ...]  # sentences for the reader
    shown: Mapping[str, Any] = field(default_factory=dict)  # kinds of layer that only tensors show, for an extract
    offset: Offset = field(default_factory=Offset)
    told: bool = False  # a person named the family

    def key(self, tensor: NormTensor) -> str:
        """The role as the user writes it: bare in the main tower, else ``tower/role``."""
        return key_of(f"{tensor.tower}/{tensor.role}", self.main_tower)


def map_roles(
    shapes: Mapping[str, tuple[int, ...]],
    config: Mapping[str, Any] | None,
    *,
    where: str,
    model_type: str | None = None,
    main_tower: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> RoleMap:
    """Map every norm of a checkpoint to its tower, layer and role.

    ``shapes`` are those of all tensors, by name; ``config`` is None for a bare file. The checkpoint is read as the
    family of ``model_type``, whatever the config says, and ``main_tower`` is the main one if any of its norms is there.
    ``metadata`` are the free texts of the files. Raises RoleError where no table reads this family, none of its block
    norms is there, or the names contradict the table.
    """
    with named(RoleError, f"While giving roles to the norms of {where}"):
        if config is not None and not isinstance(config, Mapping):
            found = type(config).__name__
            raise RoleError(f"expected a JSON object as its config, found {found}. Check the repo's config.json.")
        base, metadata = (config or {}).get("base_model_name_or_path"), metadata or {}
        norms, adapter = norm_names(shapes, LEAVES), adapter_kind(shapes)
        _check_wrappers(norms)
        try:
            choice = choose(_evidence(norms, shapes, config), config, model_type)
        except RoleError as error:
            raise (_adapter_error(adapter, norms, base) if adapter else error) from None
        chosen = metadata.get("format") == FORMAT
        matches = match_norms(norms, choice.every_tower, partial=chosen)
        _check_sizes(matches)
        _check_kinds(matches)
        _check_layout(choice, matches)
        main = _main_tower(choice, matches, main_tower, lowest=-1 if chosen else 0)
        without_blocks = main is None
        if without_blocks and adapter:
            matches = match_norms(norms, choice.every_tower, partial=True)
            main = _main_tower(choice, matches, main_tower, lowest=-1)
        if main is None and adapter:
            raise _adapter_error(adapter, norms, base)
        if main is None:
            lacking = f"none of the block norms of {choice.family.name!r} is there. {choice.family.note}".rstrip(". ")
            raise unknown_family([match.norm for match in matches], lacking)
        told = model_type is not None
        roles = _role_map(choice, matches, main, decide_offset(choice, shapes, metadata, told=told), told)
        if not adapter or not (without_blocks or roles.missing_layers):
            return roles
        # What an adapter lacks is no gap: its base model has it.
        note = f"An adapter ({adapter}) of {str(base or 'a base model')[:200]}, which has the norms that are not here."
        return replace(roles, missing_layers={}, notes=(*roles.notes, note))


def _role_map(choice: Choice, matches: Sequence[Match], main: str, offset: Offset, told: bool) -> RoleMap:
    towers = (*choice.towers, *(tower for tower in choice.beside if _has_blocks(tower, matches)))
    biased = frozenset(match.norm.template for match in matches if match.norm.kind == "bias")
    counts = _block_counts(towers, matches)
    gaps = _missing_layers(towers, matches, counts)
    notes = [*_notes_for(choice, matches)]
    if shown := _shown(towers):
        notes.append("The config does not tell the kinds of the layers: taken from the other tensors that they hold.")
    notes.append(offset_sentence(offset))
    if main != (usual := choice.family.stacks[0].tower):
        notes.append(f"Roles without a tower's name are those of the {main} tower, not of the {usual} tower.")
    return RoleMap(
        family=choice.family.name,
        model_type=choice.model_type,
        main_tower=main,
        norm_type=next(t.stack.norm_type for t in choice.every_tower if t.stack.tower == main),
        tensors=tuple(_tensor(match, main, biased, offset) for match in matches),
        n_layers=counts,
        missing_layers={key_of("/".join(key), main): layers for key, layers in gaps.items()},
        notes=tuple(filter(None, notes)),
        shown=shown,
        offset=offset,
        told=told,
    )


def _has_blocks(tower: Tower, matches: Iterable[Match]) -> bool:
    return any(match.tower is tower and match.pattern and match.layer >= 0 for match in matches)


def _notes_for(choice: Choice, matches: Sequence[Match]) -> Iterator[str]:
    """The notes of a role map: the choice's own, then those on blocks, heads and norms left as other."""
    yield from choice.notes
    wrappers = dict.fromkeys(wrapper for match in matches for wrapper in match.norm.wrappers)
    if wrappers:
        yield f"Left out of the names when they were matched: {', '.join(wrappers)}."
    if choice.family.note:
        yield choice.family.note
    for tower in choice.every_tower:
        in_blocks = [match for match in matches if match.tower is tower and match.pattern and match.layer >= 0]
        if in_blocks and tower.n_blocks is None:
            yield f"The config does not tell the number of {tower.stack.tower} blocks: counted from the names."
        if tower.stack.bias is False and any(match.norm.kind == "bias" for match in in_blocks):
            yield f"The {tower.stack.tower} norms carry biases that this family does not have: added by a converter?"
    for tower in choice.beside:
        if not _has_blocks(tower, matches):
            yield f"The config tells of a {tower.stack.tower} tower; no blocks of it were found under a known prefix."
    heads = [(m.norm, m.pattern) for m in matches if m.pattern and m.pattern.role in PER_HEAD_ROLES]
    if any(len(norm.shape) == 2 or "#" in pattern.path for norm, pattern in heads):
        yield "The query or key norms are stored a head at a time: several vectors a layer."
    yield from _other_notes(matches)


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


def _block_counts(towers: Sequence[Tower], matches: Sequence[Match]) -> dict[str, int]:
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


def _missing_layers(
    towers: Sequence[Tower], matches: Sequence[Match], counts: dict[str, int]
) -> dict[tuple[str, str], tuple[int, ...]]:
    """The layers without a weight of a role that is promised, or found in some other layer; -1 outside the blocks."""
    gaps: dict[tuple[str, str], tuple[int, ...]] = {}
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


def _by_role(tower: Tower) -> dict[tuple[str, str], list[Pattern]]:
    """The tower's lines by role; those of the multi-token-prediction blocks apart."""
    roles: dict[tuple[str, str], list[Pattern]] = {}
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


def _adapter_error(kind: str, norms: Sequence[NormName], base: object) -> RoleError:
    of = f" ({str(base)[:200]})" if base else ""
    if not norms:
        return RoleError(
            f"expected a model, found an adapter ({kind}), which holds changes of other weights and no norms of its "
            f"own. Name its base model{of}, whose norms it uses."
        )
    return RoleError(
        f"expected the names of a family's blocks, found an adapter ({kind}) with some trained norms: "
        f"{', '.join(collapse(norms))}. Pass the model_type of its base model{of} to read them."
    )


def _evidence(norms: Sequence[NormName], shapes: Iterable[str], config: Mapping[str, Any] | None) -> Evidence:
    told = (config or {}).get(KINDS_KEY)
    parts = functools.cache(lambda: parts_of_layers(unwrap(name)[0] for name in shapes))
    vectors = [norm for norm in norms if len(norm.shape) == 1]
    return Evidence(vectors, parts, told if isinstance(told, Mapping) else {})


def _shown(towers: Iterable[Tower]) -> dict[str, Any]:
    kinds = {
        tower.stack.tower: list(tower.kinds)
        for tower in towers
        if tower.stack.marks and tower.kinds and not (tower.stack.kinds and tower.stack.kinds(tower.config))
    }
    return {KINDS_KEY: kinds} if kinds else {}


def _check_kinds(matches: Iterable[Match]) -> None:
    """Raise RoleError for a norm whose role depends on the kind of its layer, where nothing tells that kind."""
    unknown = [match for match in matches if match.why == UNKNOWN_KIND and match.pattern is None]
    if unknown:
        layers = ", ".join(str(layer) for layer in sorted({match.layer for match in unknown})[:12])
        raise RoleError(
            f"what {unknown[0].norm.name!r:.120} feeds depends on the kind of its layer; expected the config (such as "
            f"its 'layer_types') or the layer's other tensors to tell it, found neither for layers {layers}. Put the "
            f"model's config.json beside the file."
        )


def _check_wrappers(norms: Iterable[NormName]) -> None:
    """Raise RoleError for two norms that differ only in what wraps them, as a trained one beside its original."""
    paths: dict[tuple[object, ...], NormName] = {}
    for norm in norms:
        first = paths.setdefault((norm.template, norm.numbers, norm.kind), norm)
        if first is not norm and (first.wrappers or norm.wrappers):
            raise RoleError(
                f"expected one norm a place, found {first.name!r:.160} and {norm.name!r:.160}, which differ only in "
                f"what wraps them. Save the model unwrapped (or merged), so that one is left."
            )


def _check_sizes(matches: Iterable[Match]) -> None:
    """Raise RoleError for what no norm is, before it is read: a vector of a billion channels would be gigabytes."""
    total = 0
    for match in matches:
        size = math.prod(match.norm.shape)
        total += size
        if size > MAX_CHANNELS or total > MAX_VALUES:
            raise RoleError(
                f"expected at most {MAX_CHANNELS:,} values in a norm and {MAX_VALUES:,} in all, found "
                f"{match.norm.name!r:.120} of shape {list(match.norm.shape)!s:.60}."
            )


def _main_tower(choice: Choice, matches: Sequence[Match], wanted: str | None, lowest: int) -> str | None:
    """The tower wanted, else the first with block norms (``lowest`` -1, for an extract: with any); None for none."""
    if lowest < 0 and any(tower.stack.tower == wanted for tower in choice.every_tower):
        return wanted
    present = {m.tower.stack.tower for m in matches if m.pattern and m.tower and m.layer >= lowest and not m.mtp}
    if wanted in present:
        return wanted
    towers = (tower.stack.tower for tower in choice.every_tower)
    return next((tower for tower in towers if tower in present), None)


def _check_layout(choice: Choice, matches: Iterable[Match]) -> None:
    """Raise RoleError where unmatched names show that the file has other blocks than its family."""
    strange = [m.norm for m in matches if m.pattern is None and m.norm.numbers and m.norm.template.endswith(TELLTALES)]
    if strange and not any(word in strange[0].template for words in TOWER_WORDS.values() for word in words):
        raise unknown_family(strange, f"the file has norms that the blocks of {choice.family.name!r} do not have")


def _tensor(match: Match, main: str, biased: frozenset[str], decided: Offset) -> NormTensor:
    norm, pattern, tower = match.norm, match.pattern, match.tower
    if pattern is None or tower is None:
        # Nothing but a bias tells the type of a norm without a table.
        norm_type = "layernorm" if norm.template in biased else "rmsnorm"
        return NormTensor(norm.name, _tower_of(norm, match, main), -1, "other", norm.kind, norm_type, 0.0, False)
    name = "mtp" if match.mtp else tower.stack.tower
    minus_one = tower.stack.offset and not pattern.plain and norm.kind == "weight"
    offset = decided.value if minus_one else 0.0
    norm_type = pattern.norm_type or tower.stack.norm_type
    return NormTensor(norm.name, name, match.layer, pattern.role, norm.kind, norm_type, offset, pattern.shared)


def _tower_of(norm: NormName, match: Match, main: str) -> str:
    """The tower of a norm without a pattern: by the words of its name, else the main one."""
    words = norm.template.lower().replace("_", ".").split(".")
    for tower, names in TOWER_WORDS.items():
        if any(name in words for name in names):
            return tower
    return match.tower.stack.tower if match.tower else main

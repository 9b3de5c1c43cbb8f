"""This module joins the tables of all families and sets up the towers of the one that reads a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lnsim.checkpoint.families.config import block_count, tower_config
from lnsim.checkpoint.families.layer_kinds import Parts, shown_kinds
from lnsim.checkpoint.families.matching import Tower
from lnsim.checkpoint.families.names import NormName, collapse
from lnsim.checkpoint.families.table import FAMILIES, Family, Stack
from lnsim.errors import RoleError

__all__ = [
    "KINDS_KEY",
    "Choice",
    "Evidence",
    "known_model_types",
    "tower_of",
    "towers_of",
    "unknown_family",
    "without_table",
]

Config = Mapping[str, Any]

KINDS_KEY = "lnsim_layer_kinds"
"""In the config of an extract: a tower's kinds of layer, where tensors showed them that the extract does not hold."""
MTP_COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
HOW_TO_ADD = (
    "Add an entry to lnsim/checkpoint/families/families.toml (table.py beside it says how), or pass the model_type of "
    "a family with the same blocks."
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The family, its towers with this checkpoint's config, towers that stand beside it, and sentences.

    ``both_offsets`` says that families which store gamma and others which store it minus one have exactly these names.
    """

    family: Family
    model_type: str
    towers: tuple[Tower, ...]
    beside: tuple[Tower, ...] = ()
    notes: tuple[str, ...] = ()
    both_offsets: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a checkpoint's tensors show: its norm-like names, and what its layers hold (read only where it is needed).

    ``told`` are kinds of layer that an extract has on record, by tower.
    """

    norms: Sequence[NormName]
    parts: Callable[[], Parts]
    told: Mapping[str, Any]
    where: str

    def kinds(self, stack: Stack) -> tuple[str, ...]:
        """The kind of each layer of a stack, empty where its tensors show none."""
        if not stack.marks:
            return ()
        told = self.told.get(stack.tower)
        if isinstance(told, list) and all(isinstance(kind, str) for kind in told):
            return tuple(told)
        blocks = dict.fromkeys(p.path.split(".*")[0] for p in stack.patterns if p.in_block)
        return shown_kinds(stack.marks, [f"{root}{block}" for root in stack.roots for block in blocks], self.parts())


def known_model_types() -> tuple[str, ...]:
    """Every model type with a table, sorted."""
    return tuple(sorted({name for family in FAMILIES for name in family.model_types}))


def towers_of(family: Family, config: Config, evidence: Evidence) -> Iterator[Tower]:
    """The towers of a family, with the number and the kinds of their blocks."""
    return (tower_of(stack, tower_config(config, stack.tower), evidence) for stack in family.stacks)


def tower_of(stack: Stack, part: Config, evidence: Evidence) -> Tower:
    """One tower; its kinds of layer are those of its part of the config, else those that the tensors show."""
    kinds = tuple(stack.kinds(part)) if stack.kinds else ()
    count = block_count(part, stack.counts, evidence.where)
    return Tower(
        stack,
        part,
        None if count is None else count * stack.sub_blocks,
        block_count(part, MTP_COUNTS, evidence.where),
        kinds or evidence.kinds(stack),
    )


def unknown_family(norms: Sequence[NormName], where: str, found: str) -> RoleError:
    """The error for a checkpoint that no table reads."""
    names = collapse(norms)
    listed = f"Its norm-like names: {', '.join(names)}." if names else "It has no norm-like names at all."
    return RoleError(
        f"While giving roles to the norms of {where}: expected a family that lnsim knows, but {found}. "
        f"{listed} {HOW_TO_ADD}"
    )


def without_table(family: Family, model_type: str, where: str) -> RoleError:
    """The error for a family that is known and cannot have a table; its note says why."""
    return RoleError(f"While giving roles to the norms of {where}: '{model_type}' has no table. {family.note}.")

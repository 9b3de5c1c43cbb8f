"""This module joins the tables of all families and sets up the towers of the one that reads a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lnsim.checkpoint.families import Family
from lnsim.checkpoint.families_encoder import ENCODERS
from lnsim.checkpoint.families_layernorm import LN_DECODERS
from lnsim.checkpoint.families_media import MEDIA
from lnsim.checkpoint.families_rms import RMS_DECODERS
from lnsim.checkpoint.matching import Tower
from lnsim.checkpoint.norm_names import NormName, collapse
from lnsim.checkpoint.tower_config import block_count, tower_config
from lnsim.errors import RoleError

__all__ = ["FAMILIES", "Choice", "known_model_types", "towers_of", "unknown_family", "without_table"]

Config = Mapping[str, Any]

FAMILIES: tuple[Family, ...] = (*RMS_DECODERS, *LN_DECODERS, *ENCODERS, *MEDIA)

MTP_COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
HOW_TO_ADD = (
    "Add 3-6 lines to a table in lnsim/checkpoint/families_rms.py, families_layernorm.py, families_encoder.py or "
    "families_media.py (families.py says how), or pass the model_type of a family with the same blocks."
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


def known_model_types() -> tuple[str, ...]:
    """Every model type with a table, sorted."""
    return tuple(sorted({name for family in FAMILIES for name in family.model_types}))


def towers_of(family: Family, config: Config, where: str) -> Iterator[Tower]:
    """The towers of a family, with the number and the kinds of their blocks as far as the config tells."""
    for stack in family.stacks:
        part = tower_config(config, stack.tower)
        kinds = tuple(stack.kinds(part)) if stack.kinds else ()
        n_mtp = block_count(part, MTP_COUNTS, where)
        yield Tower(stack, part, block_count(part, stack.counts, where), n_mtp, kinds)


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

"""This module chooses the family whose tables read a checkpoint: by config, else by the complete set of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lnsim.checkpoint.families import Family, Stack
from lnsim.checkpoint.families_encoder import ENCODERS
from lnsim.checkpoint.families_layernorm import LN_DECODERS
from lnsim.checkpoint.families_media import MEDIA
from lnsim.checkpoint.families_rms import RMS_DECODERS
from lnsim.checkpoint.matching import Match, Tower, match_norms
from lnsim.checkpoint.norm_names import NormName, collapse
from lnsim.checkpoint.tower_config import MEDIA_KEYS, TEXT_KEYS, block_count, nested_configs, tower_config
from lnsim.errors import RoleError

__all__ = ["FAMILIES", "Choice", "choose", "known_model_types", "unknown_family"]

Config = Mapping[str, Any]

FAMILIES: tuple[Family, ...] = (*RMS_DECODERS, *LN_DECODERS, *ENCODERS, *MEDIA)

# Repos with remote code may name a model type of their own and one of these classes.
CLASSES = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "Glm4MoeForCausalLM": "glm4_moe",
    "GPT2LMHeadModel": "gpt2",
    "BertModel": "bert",
    "BertForMaskedLM": "bert",
    "RobertaForMaskedLM": "roberta",
    "XLMRobertaModel": "xlm-roberta",
}
MTP_COUNTS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
HOW_TO_ADD = (
    "Add 3-6 lines to a table in lnsim/checkpoint/families_rms.py, families_layernorm.py, families_encoder.py or "
    "families_media.py (families.py says how), or pass the model_type of a family with the same blocks."
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The family, its towers with this checkpoint's config, towers that stand beside it, and sentences."""

    family: Family
    model_type: str
    towers: tuple[Tower, ...]
    beside: tuple[Tower, ...] = ()
    notes: tuple[str, ...] = ()


def known_model_types() -> tuple[str, ...]:
    """Every model type with a table, sorted."""
    return tuple(sorted({name for family in FAMILIES for name in family.model_types}))


def choose(norms: Sequence[NormName], config: Config | None, model_type: str | None, where: str) -> Choice:
    """Choose the family of a checkpoint.

    Raises:
        RoleError: no table, or several that disagree; the message lists the norm-like names.
    """
    if config is None:
        return _by_names(norms, where) if model_type is None else _by_type(norms, model_type, where)
    for name, part in _declared(config, model_type):
        family = _variant(name, {**config, **tower_config(part, "text")})
        if family is not None and not family.stacks:
            raise _without_table(family, name, where)
        if family is not None:
            towers = _towers(family, part if part.get("model_type") == name else config, where)
            return Choice(family, name, tuple(towers), tuple(_media(config, family, where)))
    declared = model_type or config.get("model_type")
    raise unknown_family(norms, where, f"the model type {str(declared)[:60]!r} has no table")


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
    """The first family of a model type whose ``when`` holds."""
    return next((f for f in FAMILIES if model_type in f.model_types and (f.when is None or f.when(config))), None)


def _towers(family: Family, config: Config, where: str) -> Iterator[Tower]:
    for stack in family.stacks:
        part = tower_config(config, stack.tower)
        kinds = tuple(stack.kinds(part)) if stack.kinds else ()
        n_mtp = block_count(part, MTP_COUNTS, where)
        yield Tower(stack, part, block_count(part, stack.counts, where), n_mtp, kinds)


def _media(config: Config, family: Family, where: str) -> Iterator[Tower]:
    """Vision and audio towers beside a text tower, where their own model type has a table."""
    own = {stack.tower for stack in family.stacks}
    for tower, keys in MEDIA_KEYS.items():
        if tower in own:
            continue
        for part in nested_configs(config, keys):
            found = _variant(str(part.get("model_type")), part)
            stacks = found.stacks if found else ()
            for stack in stacks:
                if stack.tower == tower:
                    inner = replace(stack, roots=tuple(root for root in stack.roots if _is_media_root(root)))
                    yield Tower(inner, part, block_count(part, stack.counts, where))


def _is_media_root(root: str) -> bool:
    """Whether a prefix names the tower, so that it cannot mean the text decoder beside it."""
    return any(word in root for word in ("vision", "visual", "audio", "speech", "image"))


# Without a config


def _by_names(norms: Sequence[NormName], where: str) -> Choice:
    distinct = _distinct(norms)
    fitting = [(family, roles) for family in FAMILIES if family.by_name and (roles := _fit(family, distinct, where))]
    if not fitting:
        raise unknown_family(norms, where, "there is no config, and no table has exactly these names")
    names = ", ".join(dict.fromkeys(family.name for family, _ in fitting))
    if any(roles != fitting[0][1] for _, roles in fitting):
        raise unknown_family(norms, where, f"there is no config, and the tables with these names disagree: {names}")
    notes = [f"No config: roles from names alone; families with exactly these names: {names}."]
    offsets = {tower.offset for family, _ in fitting for tower in family.stacks}
    family = fitting[0][0]
    if len(offsets) > 1:
        notes.append("Some of these families store gamma minus one; it is taken as stored (offset 0).")
        family = replace(family, stacks=tuple(replace(stack, offset=0.0) for stack in family.stacks))
    return Choice(family, "", tuple(Tower(stack, {}, None) for stack in family.stacks), notes=tuple(notes))


def _by_type(norms: Sequence[NormName], model_type: str, where: str) -> Choice:
    """The family of a model type without its config: where the config would decide, the block norms must."""
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
        raise _without_table(variants[0], model_type, where)
    return Choice(variants[0], model_type, tuple(_towers(variants[0], {}, where)))


def _without_table(family: Family, model_type: str, where: str) -> RoleError:
    return RoleError(f"While giving roles to the norms of {where}: '{model_type}' has no table. {family.note}.")


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


def unknown_family(norms: Sequence[NormName], where: str, found: str) -> RoleError:
    """The error for a checkpoint that no table reads."""
    names = collapse(norms)
    listed = f"Its norm-like names: {', '.join(names)}." if names else "It has no norm-like names at all."
    return RoleError(
        f"While giving roles to the norms of {where}: expected a family that lnsim knows, but {found}. "
        f"{listed} {HOW_TO_ADD}"
    )

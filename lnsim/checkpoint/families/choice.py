"""This module chooses the family whose tables read a checkpoint: by its config, or by names where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lnsim.checkpoint.families.by_names import choose_by_names, choose_by_type, tower_alone
from lnsim.checkpoint.families.config import MEDIA_KEYS, TEXT_KEYS, nested_configs, tower_config
from lnsim.checkpoint.families.evidence import (
    Choice,
    Evidence,
    tower_of,
    towers_of,
    unknown_family,
    without_table,
)
from lnsim.checkpoint.families.matching import Tower, count_block_names
from lnsim.checkpoint.families.table import FAMILIES, Family

__all__ = ["choose"]

Config = Mapping[str, Any]

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


def choose(evidence: Evidence, config: Config | None, model_type: str | None) -> Choice:
    """Choose the family of a checkpoint.

    Raises:
        RoleError: no table, or several that disagree; the message lists the norm-like names.
    """
    if config is None or (model_type is None and _names_nothing(config)):
        if model_type is None:
            return choose_by_names(evidence)
        return _as_saved(choose_by_type(evidence, model_type), {}, evidence)
    for name, part in _declared(config, model_type):
        family = _variant(name, {**config, **tower_config(part, "text")})
        if family is not None and not family.stacks:
            raise without_table(family, name, evidence.where)
        if family is not None:
            part = part if part.get("model_type") == name else config
            towers = tuple(towers_of(family, part, evidence))
            choice = Choice(family, name, towers, tuple(_media(config, family, evidence)))
            return _as_saved(choice, part, evidence)
    declared = model_type or config.get("model_type")
    raise unknown_family(evidence.norms, evidence.where, f"the model type {str(declared)[:60]!r} has no table")


def _as_saved(choice: Choice, config: Config, evidence: Evidence) -> Choice:
    """The choice as it is where the file has its names, else with those of the first release or of one tower alone."""
    norms, every = evidence.norms, (*choice.towers, *choice.beside)
    known = count_block_names(norms, every)
    for family in FAMILIES:
        towers = tuple(towers_of(family, config, evidence)) if choice.model_type in family.native else ()
        towers = tuple(tower for tower in towers if count_block_names(norms, [tower]))
        if (number := count_block_names(norms, towers)) > known:
            known, own = number, {tower.stack.tower for tower in towers}
            beside = tuple(tower for tower in choice.beside if tower.stack.tower not in own)
            note = f"The names are those of another release of the model: read by the table {family.name!r}."
            choice = replace(choice, family=family, towers=towers, beside=beside, notes=(note,))
    if known:
        return choice
    alone = {tower.stack.tower: bare for tower in every if (bare := tower_alone(tower, evidence))}
    if len(alone) != 1:
        return choice
    note = f"One tower saved alone, without its prefix: its names are those of the {next(iter(alone))} tower."
    towers = tuple(alone.get(tower.stack.tower, tower) for tower in every)
    return replace(choice, towers=towers, beside=(), notes=(*choice.notes, note))


def _names_nothing(config: Config) -> bool:
    """Whether a config says nothing of the model: an extract of a bare file has such a one."""
    nested = any(True for _ in nested_configs(config, TEXT_KEYS))
    return not config.get("model_type") and not config.get("architectures") and not nested


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


def _media(config: Config, family: Family, evidence: Evidence) -> Iterator[Tower]:
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
                    yield tower_of(inner, part, evidence)


def _is_media_root(root: str) -> bool:
    """Whether a prefix names the tower, so that it cannot mean the text decoder beside it."""
    return any(word in root for word in ("vision", "visual", "audio", "speech", "image"))

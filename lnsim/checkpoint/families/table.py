"""This module reads the table of families, ``families.toml``, whose top says how an entry is written."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lnsim.checkpoint.families.config import CONDITIONS, KINDS, Config
from lnsim.errors import RoleError

_CONTENT = tomllib.loads(Path(__file__).with_name("families.toml").read_text("utf-8"))
ROLES: tuple[str, ...] = tuple(_CONTENT["roles"])
TOWERS: tuple[str, ...] = tuple(_CONTENT["towers"])
NORM_TYPES = ("rmsnorm", "layernorm")

COUNT_KEYS: tuple[str, ...] = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")

_BIAS = {"": False, " with bias": True, " with or without bias": None}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of a family's table: a path below the root, and what the norm there does."""

    path: str
    role: str
    shared: bool = False
    optional: bool = False
    plain: bool = False
    norm_type: str | None = None
    kinds: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    key: str = ""

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise ValueError(f"the pattern {self.path!r} has the role {self.role!r}; expected one of {ROLES}")
        if self.path.split(".").count("*") > 1:
            raise ValueError(f"the pattern {self.path!r} names two layers; use '#' for the other number")

    @property
    def in_block(self) -> bool:
        """Whether the norm belongs to a numbered block."""
        return "*" in self.path.split(".")


@dataclass(frozen=True, slots=True)
class Stack:
    """One tower of a family."""

    tower: str
    patterns: tuple[Pattern, ...]
    norm_type: str = "rmsnorm"
    offset: float = 0.0
    bias: bool | None = False  # whether every norm has one; None: the config or the release decides
    roots: tuple[str, ...] = ("",)
    counts: tuple[str, ...] = COUNT_KEYS  # keys of the config that may hold the number of blocks
    kinds: Callable[[Config], Sequence[str]] | None = None  # the kind of each layer, by the tower's config
    marks: str = ""  # else by what a layer of a kind holds: ``mamba=mixer self_attn=attention``
    mtp: bool = False  # the blocks at and past that number are for multi-token prediction
    sub_blocks: int = 1  # blocks that a layer holds, each with its own number

    def __post_init__(self) -> None:
        if self.tower not in TOWERS:
            raise ValueError(f"a stack has the tower {self.tower!r}; expected one of {', '.join(TOWERS)}")
        if self.norm_type not in NORM_TYPES:
            raise ValueError(f"a stack has the norm type {self.norm_type!r}; expected one of {', '.join(NORM_TYPES)}")


@dataclass(frozen=True, slots=True)
class Family:
    """Model types that share the same blocks."""

    name: str
    model_types: tuple[str, ...]
    stacks: tuple[Stack, ...]  # the first is the main tower
    when: Callable[[Config], bool] | None = None  # by the (text) config, where one model type has several layouts
    note: str = ""  # a sentence for the reader
    by_name: bool = True  # a checkpoint without a config may be taken for this family
    native: tuple[str, ...] = ()  # model types of other families that are published with these names as well


def patterns(lines: str, blocks: Mapping[str, str] | None = None) -> tuple[Pattern, ...]:
    """The patterns of a table; ``blocks`` are what ``@name`` stands for. ValueError quotes a malformed line."""
    found: list[Pattern] = []
    for line in filter(str.strip, lines.splitlines()):
        named = line.strip().removeprefix("@")
        found += patterns((blocks or {})[named]) if line.strip().startswith("@") else [_pattern(line)]
    return tuple(found)


def _pattern(line: str) -> Pattern:
    path, role, *flags = line.split()
    options: dict[str, Any] = {}
    for flag in flags:
        name, _, value = flag.partition("=")
        if flag in ("shared", "optional", "plain"):
            options[flag] = True
        elif flag in NORM_TYPES:
            options["norm_type"] = flag
        elif name in ("in", "free") and value:
            options[{"in": "kinds"}.get(name, name)] = tuple(value.split("|"))
        elif name == "if" and value:
            options["key"] = value
        else:
            raise ValueError(f"the line {line.strip()!r} has the unknown flag {flag!r}")
    return Pattern(path, role, **options)


def _families(content: Mapping[str, Any]) -> Iterator[Family]:
    """The families of the file's content, in its order; raises ValueError when an entry is malformed."""
    for name, entry in content["families"].items():
        own = {key: entry.pop(key) for key in ("note", "by_name") if key in entry}
        types, native = (entry.pop(key, default).split() for key, default in (("types", name), ("native", "")))
        when = entry.pop("when", None)
        stacks = entry.pop("stacks", [entry] if entry else [])
        yield Family(
            name,
            tuple(types),
            tuple(_stack(dict(one), content) for one in stacks),
            when=None if when is None else CONDITIONS[when],
            native=tuple(native),
            **own,
        )


def _stack(entry: dict[str, Any], content: Mapping[str, Any]) -> Stack:
    norm, space, bias = entry.pop("norm", "rmsnorm").partition(" ")
    roots = entry.pop("roots", "text")
    counts = entry.pop("counts", COUNT_KEYS)
    kinds = entry.pop("kinds", None)
    return Stack(
        entry.pop("tower", "text"),
        patterns(entry.pop("table"), content["blocks"]),
        norm_type=norm,
        bias=_BIAS[space + bias],
        roots=tuple(content["roots"][roots] if isinstance(roots, str) else roots),
        counts=tuple(counts),
        kinds=None if kinds is None else KINDS[kinds],
        **entry,
    )


def _read(own: str) -> tuple[Family, ...]:
    """The families of the package; the entries of a file of one's own come first, and instead of the same names."""
    if not own:
        return tuple(_families(_CONTENT))
    try:
        more = tomllib.loads(Path(own).read_text("utf-8"))
        mine = {"blocks": more.get("blocks", {}), "families": more["families"]}
        both = {key: mine[key] | _CONTENT[key] | mine[key] for key in mine}
        return tuple(_families(_CONTENT | both))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RoleError(
            f"Reading families of '{own}': expected entries as in families.toml: {type(error).__name__}, {error}."
        ) from error


FAMILIES = _read(os.environ.get("LNSIM_FAMILIES", ""))  # ``--families`` sets it
# The model type of a class, for repos with remote code that name a model type of their own and one of these.
CLASSES: Mapping[str, str] = _CONTENT["classes"]


def has_fixed_positions(model_type: str | None, tower: str) -> bool:
    """Whether the tokens of a tower get fixed sines and cosines, which give each channel a place of its own."""
    towers = _CONTENT["fixed_positions"].get(model_type)
    return towers is not None and (not towers or tower in towers)

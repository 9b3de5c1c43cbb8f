"""This module says how a family's blocks are written down: patterns of tensor names, one line a norm.

How to add a family
-------------------
Find the model's public source (or trace it: ``tools/trace_roles.py``) and see what each norm's output feeds. Then add
3-6 lines to ``families_rms.py``, ``families_layernorm.py``, ``families_encoder.py`` or ``families_media.py``::

    family("mymodel", "mymodel mymodel_text", stack("text", '''
        layers.*.input_layernorm            pre_attention
        layers.*.post_attention_layernorm   pre_mlp
        layers.*.self_attn.q_norm           q_norm if=use_qk_norm
        norm                                final
        ''', norm="rmsnorm"))                                # source: transformers models/mymodel

A line is ``path role [flag ...]``. The path has no prefix (``model.``, ``transformer.`` ... are the stack's ``roots``)
and no ``.weight``. ``*`` is the layer, ``#`` any other number (a head), ``&`` the block inside a layer of several
(``sub_blocks``), a plain number only itself. Flags: ``shared`` (one norm feeds attention and MLP), ``layernorm`` /
``rmsnorm`` (other than the stack's), ``plain`` (offset 0 in a stack whose gamma is stored minus one).

Every line is a promise: a layer without that norm is named as missing. ``optional`` takes the promise back where the
model type leaves it open, ``if=key`` where the config's ``key`` is not true (then absent in all layers is no gap), and
``free=kind`` in layers of that kind. ``in=attention|mixer`` reads the line only in layers of that kind: ``kinds`` of
the stack tells them from the config, ``marks`` from what else the layer holds; if neither does, it is an error.
Where the config decides, write one family a case and give each a ``when``; the first that holds is used.
A release with names of its own is one more family, ``native`` to the model types that are published with them too.
What no line matches is ``other``. Leave out what cannot be verified: an error is better than a wrong role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["NORM_TYPES", "ROLES", "TEXT_ROOTS", "TOWERS", "Config", "Family", "Pattern", "Stack", "family", "stack"]

Config = Mapping[str, Any]

ROLES: tuple[str, ...] = (
    "pre_attention",
    "pre_mlp",
    "pre_mixer",
    "post_attention",
    "post_mlp",
    "pre_cross_attention",
    "post_cross_attention",
    "q_norm",
    "k_norm",
    "final",
    "embedding",
    "other",
)
TOWERS: tuple[str, ...] = ("text", "encoder", "decoder", "vision", "audio", "mtp")
NORM_TYPES = ("rmsnorm", "layernorm")

# Where a text decoder may sit: alone, under the usual wrappers, or inside a model with several towers.
TEXT_ROOTS: tuple[str, ...] = (
    "",
    "model.",
    "transformer.",
    "language_model.",
    "language_model.model.",
    "model.language_model.",
    "model.language_model.model.",
    "model.text_model.",
    "text_model.",
    "text_model.model.",
    "thinker.model.",
    "llm.",
    "llm.model.",
    "language.model.",
)
COUNT_KEYS: tuple[str, ...] = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


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
    """One tower of a family.

    ``bias`` says whether every norm of the stack has one (None: the config or the release decides). ``counts`` are the
    config keys that may hold the number of blocks, ``kinds`` maps the tower's config to a kind for each layer; where
    it tells nothing, ``marks`` does: what a layer of a kind holds, as in ``mamba=mixer self_attn=attention``.
    ``mtp`` marks stacks whose blocks at and past that number are multi-token-prediction blocks. A layer of
    ``sub_blocks`` 2 holds two blocks, each with its own number.
    """

    tower: str
    patterns: tuple[Pattern, ...]
    norm_type: str = "rmsnorm"
    offset: float = 0.0
    bias: bool | None = False
    roots: tuple[str, ...] = TEXT_ROOTS
    counts: tuple[str, ...] = COUNT_KEYS
    kinds: Callable[[Config], Sequence[str]] | None = None
    marks: str = ""
    mtp: bool = False
    sub_blocks: int = 1

    def __post_init__(self) -> None:
        if self.tower not in TOWERS:
            raise ValueError(f"a stack has the tower {self.tower!r}; expected one of {', '.join(TOWERS)}")
        if self.norm_type not in NORM_TYPES:
            raise ValueError(f"a stack has the norm type {self.norm_type!r}; expected one of {', '.join(NORM_TYPES)}")


@dataclass(frozen=True, slots=True)
class Family:
    """Model types that share the same blocks; the first stack is the main tower.

    ``when`` looks at the (text) config where one model type has several layouts; ``note`` is a sentence for the reader.
    ``by_name`` lets a checkpoint without a config be taken for this family. ``native`` are model types of other
    families whose checkpoints are published with these names as well.
    """

    name: str
    model_types: tuple[str, ...]
    stacks: tuple[Stack, ...]
    when: Callable[[Config], bool] | None = None
    note: str = ""
    by_name: bool = True
    native: tuple[str, ...] = ()


def family(
    name: str,
    model_types: str,
    *stacks: Stack,
    when: Callable[[Config], bool] | None = None,
    note: str = "",
    by_name: bool = True,
    native: str = "",
) -> Family:
    """Make a ``Family``; ``model_types`` and ``native`` are separated by blanks."""
    return Family(
        name, tuple(model_types.split()), stacks, when=when, note=note, by_name=by_name, native=tuple(native.split())
    )


def stack(tower: str, table: str, *, norm: str = "rmsnorm", **options: Any) -> Stack:
    """Make a ``Stack`` from a table of lines ``path role [flag ...]``; ``options`` are fields of ``Stack``.

    Raises:
        ValueError: a line is malformed; the message quotes it.
    """
    patterns = tuple(_pattern(line) for line in table.splitlines() if line.strip())
    return Stack(tower=tower, patterns=patterns, norm_type=norm, **options)


def _pattern(line: str) -> Pattern:
    path, role, *flags = line.split()
    options: dict[str, Any] = {}
    for flag in flags:
        if flag in ("shared", "optional", "plain"):
            options[flag] = True
        elif flag in NORM_TYPES:
            options["norm_type"] = flag
        elif flag.startswith("in="):
            options["kinds"] = tuple(flag[3:].split("|"))
        elif flag.startswith("free="):
            options["free"] = tuple(flag[5:].split("|"))
        elif flag.startswith("if="):
            options["key"] = flag[3:]
        else:
            raise ValueError(f"the line {line.strip()!r} has the unknown flag {flag!r}")
    return Pattern(path, role, **options)

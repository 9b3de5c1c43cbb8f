"""This module tells which tensor names look like a norm's, and cuts a name into path, numbers and kind.

No regular expressions: names come from strangers' files, and a name of any length costs time in proportion to it.
"""

from __future__ import annotations

import tomllib
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {"weight": "weight", "gamma": "weight", "scale": "weight", "bias": "bias", "beta": "bias"}
SUFFIXES = tuple(f"{separator}{kind}" for kind in KINDS for separator in "._")
MAX_DIGITS = 4  # no model has 10,000 blocks; longer numbers are no layer
WORDS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
OUTER, INNER, ADAPTERS = WORDS["outer"], WORDS["inner"], WORDS["adapters"]
NAMED = ("modules_to_save", "ln_tuning_layers")  # an adapter's name may follow
MARKS = (*INNER, *(f"{words}." for words in OUTER))


@dataclass(frozen=True, slots=True)
class NormName:
    """A norm-like tensor name, cut."""

    name: str
    template: str  # the path with every number replaced by ``*``
    numbers: tuple[int, ...]
    kind: str
    shape: tuple[int, ...]
    wrappers: tuple[str, ...] = ()  # what was left out of the path: ``module. (DataParallel)``


def unwrap(name: str) -> tuple[str, tuple[str, ...]]:
    """A tensor name without what wraps the model or a module in training code, and what that was.

    >>> unwrap("module._orig_mod.model.norm.modules_to_save.default.weight")[0]
    'model.norm.weight'
    """
    if not any(mark in name for mark in MARKS):
        return name, ()
    kept, found = list[str](), list[str]()
    rest = deque(name.split("."))
    while rest:
        part = rest.popleft()
        if part in INNER:
            found.append(f"{part}. ({INNER[part]})")
            if part in NAMED and len(rest) > 1:
                rest.popleft()
        else:
            kept.append(part)
    bare, start = ".".join(kept), 0
    while outer := next((words for words in OUTER if bare.startswith(f"{words}.", start)), None):
        start += len(outer) + 1
        found.append(f"{outer}. ({OUTER[outer]})")
    return bare[start:], tuple(dict.fromkeys(found))


def adapter_kind(names: Iterable[str]) -> str | None:
    """What kind of adapter the tensor names show, None where they show none."""
    every = "\n".join(names)  # looked through as one text first: some checkpoints have 100,000 names
    marks = [mark for mark in ADAPTERS if mark in every]
    parts = (part for name in (every.split("\n") if marks else ()) for part in name.split(".")[-3:])
    ends = (
        (mark, part.endswith(mark) if mark[0] == "_" else part.startswith(mark)) for part in parts for mark in marks
    )
    return next((ADAPTERS[mark] for mark, has_it in ends if has_it), None)


def parse_name(name: str, shape: tuple[int, ...]) -> NormName:
    """Cut a tensor name that ends in one of the kinds into its path and numbers.

    >>> parse_name("model.layers.3.input_layernorm.weight", (8,)).template
    'model.layers.*.input_layernorm'
    """
    bare, wrappers = unwrap(name)
    *path, last = bare.split(".")
    if last not in KINDS:
        stem, _, last = last.rpartition("_")  # layer_norm_weight: a parameter of the block itself
        path.append(stem)
    numbers = tuple(int(part) for part in path if is_number(part))
    template = ".".join("*" if is_number(part) else part for part in path)
    return NormName(name, template, numbers, KINDS[last], shape, wrappers)


def is_number(part: str) -> bool:
    """Whether a component may be a layer's number."""
    return part.isascii() and part.isdigit() and len(part) <= MAX_DIGITS and str(int(part)) == part


def looks_like_norm(component: str) -> bool:
    """Whether one component of a name looks like a norm's: ``ln_1``, ``norm2``, ``q_norm``, ``LayerNorm``.

    >>> [looks_like_norm(word) for word in ("ln_f", "input_layernorm", "Wqkv", "lnear")]
    [True, True, False, False]
    """
    word = component.lower()
    if "norm" in word or word.endswith("_ln") or "_ln_" in word:
        return True
    return word.startswith("ln") and (word[2:].isdigit() or word[2:3] in ("", "_"))


def norm_names(shapes: Mapping[str, tuple[int, ...]], leaves: Iterable[str]) -> list[NormName]:
    """Every tensor that may be a norm's, in file order.

    ``leaves`` are last components that the family's own table uses for norms, however they look. One- and
    two-dimensional tensors pass (per-head norms have two); the caller drops the two-dimensional ones it does not know.
    """
    known: dict[str, bool] = dict.fromkeys(leaves, True)
    found = []
    every = "\n".join(shapes)  # looked through as one text: few checkpoints have a wrapper, and some 100,000 names
    wrapped = any(mark in every for mark in MARKS)
    for name, shape in shapes.items():
        if not 1 <= len(shape) <= 2 or not name.endswith(SUFFIXES):
            continue
        *path, last = (unwrap(name)[0] if wrapped else name).split(".")
        of_its_own = next((part for part in reversed(path) if not part.isdigit()), "")
        component = of_its_own if last in KINDS else last.rpartition("_")[0]
        if component not in known:
            known[component] = looks_like_norm(component)
        if known[component]:
            found.append(parse_name(name, tuple(shape)))
    return found


def collapse(names: Iterable[NormName], limit: int = 12) -> list[str]:
    """Short, printable forms of norm-like names: one for all layers, at most ``limit`` and a count of the rest."""
    forms = list(dict.fromkeys(f"{_shorten(name.template)}.{name.kind}" for name in names))
    if len(forms) <= limit:
        return forms
    return [*forms[:limit], f"and {len(forms) - limit} more"]


def _shorten(template: str) -> str:
    text = template if template.isprintable() else repr(template)[1:-1]
    return text if len(text) <= 100 else text[:97] + "..."

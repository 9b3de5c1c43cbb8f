"""This module reads which vectors a published number speaks of.

The data file writes them in a small language, ``;`` between several:

    a@10                one vector
    a@10:b@10           two, compared
    a@0:a@10,20         one with each of two; of one model, a layer is never set beside itself
    a@0-46:b@=          equal layers; ``b@!=`` other layers
    a@*:b@=             every layer that both models have
    within(a)@10,20,30  all pairs of layers of one model
    pairs(a,b,c)@10     all pairs of models at equal layers
    cross(a,b|c,d)@10   each of the first with each of the second

``A - B`` is a difference of two such selections, ``A > B`` an order between them, ``&`` joins statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

from lnsim.errors import StudyError

__all__ = ["Cell", "Vector", "cells_of", "models_of"]

_GROUP = re.compile(r"(within|pairs|cross)\(([a-z0-9_,|]+)\)@([-0-9,*]+)")
_SIDE = re.compile(r"([a-z][a-z0-9_]*)@([-0-9,*]+|=|!=)")


class Vector(NamedTuple):
    """One norm vector: a model's key and a layer number. A tuple, as tens of thousands of them are looked up."""

    model: str
    layer: int


class Cell(NamedTuple):
    """What one number is taken from: one vector, or two that are compared.

    Args:
        role: which norm.
        a: the first vector, the one that a measure with a direction divides by.
        b: the second, or None.
    """

    role: str
    a: Vector
    b: Vector | None = None

    @property
    def layers(self) -> str:
        """The layers, as prose names them."""
        if self.b is None or self.b.layer == self.a.layer:
            return f"layer {self.a.layer}"
        return f"layers {self.a.layer} and {self.b.layer}"


def cells_of(selection: str, roles: Sequence[str], n_layers: Mapping[str, int]) -> list[Cell]:
    """The cells of a selection, in every role, each once.

    Args:
        selection: in the language above, without ``-``, ``>`` or ``&``.
        roles: the roles it is taken in.
        n_layers: decoder layers by model key, for ``*``.

    Raises:
        StudyError: when it cannot be read, or ``*`` names a model of unknown depth.
    """
    return list(_cells(selection, tuple(roles), tuple(n_layers.items())))


@lru_cache(maxsize=512)
def _cells(selection: str, roles: tuple[str, ...], n_layers: tuple[tuple[str, int], ...]) -> tuple[Cell, ...]:
    """Kept, as the same selections come up again and again, and some have two thousand cells."""
    depths = dict(n_layers)
    found = [pair for term in selection.split(";") for pair in _term(term.strip(), depths)]
    return tuple(Cell(role, a, b) for role in roles for a, b in dict.fromkeys(found))


def models_of(selection: str) -> tuple[str, ...]:
    """The model keys that a selection names, in their order, each once."""
    names = re.sub(r"\b(within|pairs|cross)\(", "(", selection)
    return tuple(dict.fromkeys(re.findall(r"[a-z][a-z0-9_]*", re.sub(r"@[-0-9,*=!]*", " ", names))))


Pair = tuple[Vector, Vector | None]


def _term(term: str, n_layers: Mapping[str, int]) -> Iterator[Pair]:
    if group := _GROUP.fullmatch(term):
        yield from _group(group[1], group[2], group[3], n_layers)
    elif len(sides := [_side(side, term) for side in term.split(":")]) == 1:
        (model, layers), *_ = sides
        yield from ((Vector(model, layer), None) for layer in _layers(layers, [model], n_layers))
    elif len(sides) == 2:
        yield from _pairs(sides[0], sides[1], n_layers)
    else:
        raise _unreadable(term)


def _group(kind: str, names: str, layers: str, n_layers: Mapping[str, int]) -> Iterator[Pair]:
    if kind == "within":
        numbers = _layers(layers, [names], n_layers)
        yield from ((Vector(names, i), Vector(names, j)) for i, j in combinations(numbers, 2))
        return
    first, _, second = names.partition("|")
    if kind == "cross" and second:
        models = list(product(first.split(","), second.split(",")))
    else:
        models = list(combinations(first.split(","), 2))
    for a, b in models:
        yield from ((Vector(a, layer), Vector(b, layer)) for layer in _layers(layers, [a, b], n_layers))


def _pairs(a: tuple[str, str], b: tuple[str, str], n_layers: Mapping[str, int]) -> Iterator[Pair]:
    (model_a, layers_a), (model_b, layers_b) = a, b
    both = [model_a, model_b]
    if layers_b == "=":
        yield from ((Vector(model_a, i), Vector(model_b, i)) for i in _layers(layers_a, both, n_layers))
        return
    first = _layers(layers_a, both, n_layers)
    second = first if layers_b == "!=" else _layers(layers_b, both, n_layers)
    for i, j in product(first, second):
        if i != j or (layers_b != "!=" and model_a != model_b):
            yield Vector(model_a, i), Vector(model_b, j)


def _layers(text: str, models: Sequence[str], n_layers: Mapping[str, int]) -> list[int]:
    if text == "*":
        if unknown := [model for model in models if model not in n_layers]:
            raise StudyError(f"Reading published numbers: '*' needs the number of layers of '{unknown[0]}', not known.")
        return list(range(min(n_layers[model] for model in models)))
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise _unreadable(text)
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _side(text: str, term: str) -> tuple[str, str]:
    found = _SIDE.fullmatch(text)
    if not found:
        raise _unreadable(term)
    return found[1], found[2]


def _unreadable(text: str) -> StudyError:
    return StudyError(
        f"Reading published numbers: expected vectors written like a@10, a@0-46:b@= or pairs(a,b)@10, found '{text}'."
    )

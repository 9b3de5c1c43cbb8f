"""This module decides which experiments make sense for two models with their controls, and with which parameters.

An experiment that cannot say anything here is named with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

import numpy as np

from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.common_roles import common_roles
from lnsim.measure.role_summary import why_apart
from lnsim.study.relations import RELATED_KINDS

__all__ = ["Pairs", "experiments"]

_BLOCK_ROLES = (
    "pre_attention",
    "pre_mlp",
    "pre_mixer",
    "post_attention",
    "post_mlp",
    "pre_cross_attention",
    "post_cross_attention",
)
_MOST_LISTED = 10
_MOST_DRAWN = 4
_LAYERS = 3
_CHANNELS_DRAWN = 50

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of the study.

    Args:
        asked: the pair that is asked about.
        related: pairs that are on record as related.
        independent: pairs that are on record as strangers.
        unknown: pairs of one of the two with a control, of which nothing is on record.
    """

    asked: Key
    related: tuple[Key, ...]
    independent: tuple[Key, ...]
    unknown: tuple[Key, ...]

    @classmethod
    def of(cls, relations: Sequence[tuple[str, str, str]]) -> Pairs:
        """From keys and kinds of relation; the pair that is asked about comes first."""
        (a, b, _), *others = relations
        related = tuple((x, y) for x, y, kind in others if kind in RELATED_KINDS)
        independent = tuple((x, y) for x, y, kind in others if kind == "independent")
        unknown = tuple((x, y) for x, y, kind in others if kind == "in_question" and {x, y} & {a, b})
        return cls((a, b), related, independent, unknown)

    def some(self, most: int) -> list[Key]:
        """The pair asked about and up to so many in all, related ones and strangers in turn.

        Pairs of which nothing is on record are taken only where nothing else is there.
        """
        known = [pair for both in zip_longest(self.related, self.independent) for pair in both if pair is not None]
        return [self.asked, *(known or self.unknown)][:most]

    def only(self, keep: Callable[[Key], bool]) -> Pairs:
        """The same without the controls that are not to be kept."""
        kept = {name: tuple(filter(keep, getattr(self, name))) for name in ("related", "independent", "unknown")}
        return Pairs(self.asked, **kept)


def experiments(
    models: Mapping[str, NormVectors], pairs: Pairs, n_permutations: int, seed: int
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Parameters by notebook number, and by number why a notebook does not run.

    Args:
        models: vectors by key.
        pairs: as ``Pairs.of`` gives them.
        n_permutations: of the channels.
        seed: of the permutations.

    Raises:
        ComparisonError: when nothing of the two can be compared.
    """
    shared = common_roles(*(models[key] for key in pairs.asked))
    compared = tuple(role for role in shared if not why_apart(role))
    here = _Setting(models, pairs, compared, _drawn_roles(compared), {"n_permutations": n_permutations, "seed": seed})
    found = {number: make(here) for number, make in _MAKERS.items()}
    runs = {number: table for number, table in found.items() if not isinstance(table, str)}
    return runs, {number: reason for number, reason in found.items() if isinstance(reason, str)}


@dataclass(frozen=True, slots=True)
class _Setting:
    """The models, their pairs, the roles compared, those of them that are drawn layer by layer, and the chance."""

    models: Mapping[str, NormVectors]
    pairs: Pairs
    compared: tuple[str, ...]
    drawn: tuple[str, ...]
    chance: Mapping[str, int]

    def layers(self, keys: Sequence[str]) -> list[int]:
        """The layer numbers that all of these have in all roles drawn."""
        stacks = [self.models[key][role].layers for key in keys for role in self.drawn]
        return [int(layer) for layer in reduce(np.intersect1d, stacks)] if stacks else []

    def together(self) -> list[str]:
        """The models that have all roles drawn, in the width of the two."""
        size = self.models[self.pairs.asked[0]][self.drawn[0]].hidden_size
        return [key for key, one in self.models.items() if all(_has(one, role, size) for role in self.drawn)]

    def some_pairs(self, most: int) -> list[list[str]]:
        """The pair asked about and others with two common layers at least, in all roles drawn."""
        have = set(self.together())
        known = self.pairs.only(lambda pair: set(pair) <= have and len(self.layers(pair)) > 1)
        return [list(pair) for pair in known.some(most)]

    def some_layers(self) -> list[int]:
        """Up to three layers, from the first to the last that all have, or that at least the two have."""
        layers = self.layers(self.together())
        layers = layers if len(layers) > 1 else self.layers(self.pairs.asked)
        return sorted({layers[place * (len(layers) - 1) // (_LAYERS - 1)] for place in range(_LAYERS)})

    def why_not_drawn(self, n_roles: int = 1) -> str:
        """Why nothing can be drawn layer by layer, or an empty text."""
        if len(self.drawn) < n_roles:
            return "it needs the norms of the blocks, and the two share " + ("one kind" if self.drawn else "none")
        return "" if len(self.layers(self.pairs.asked)) > 1 else "it needs at least two layers that both have"


def _drawn_roles(compared: Sequence[str]) -> tuple[str, ...]:
    """The first two norms of a block, of the main tower where it has any."""
    main = tuple(role for role in compared if role in _BLOCK_ROLES)
    others = tuple(role for role in compared if role.rpartition("/")[2] in _BLOCK_ROLES)
    tower = others[0].rpartition("/")[0] if others else ""
    return (main or tuple(role for role in others if role.rpartition("/")[0] == tower))[:2]


def _has(one: NormVectors, role: str, size: int) -> bool:
    return role in one.roles and one[role].hidden_size == size


def _vectors(here: _Setting) -> dict[str, Any] | str:
    return {"models": list(here.models), "featured": here.pairs.asked[0]}


def _matrix(here: _Setting) -> dict[str, Any] | str:
    if reason := here.why_not_drawn():
        return reason
    layers = here.some_layers()
    return {
        "models": list(here.models),
        "pairs": here.some_pairs(_MOST_DRAWN),
        "group_by": "family",
        "roles": list(here.drawn),
        "layer": layers[len(layers) // 2],
        "layers": layers,
        **here.chance,
        "sets": {"all": list(here.models)},
        "comparisons": _comparisons(here, [role for role in here.compared if role.rpartition("/")[2] in _BLOCK_ROLES]),
    }


def _measures(here: _Setting) -> dict[str, Any] | str:
    if reason := here.why_not_drawn():
        return reason
    pairs = here.some_pairs(_MOST_DRAWN)
    known = here.pairs.only(lambda pair: list(pair) in pairs)
    if not known.related or not known.independent:
        return "it needs a related pair and a pair of strangers on record among the controls, and has not both"
    together = here.together()
    return {
        "models": together,
        "alone": [here.pairs.asked[0]],
        "pairs": pairs,
        "roles": list(here.drawn),
        "layers": here.some_layers(),
        "n_draws": 1000,
        **here.chance,
    }


def _change(here: _Setting) -> dict[str, Any] | str:
    return (
        "it measures a pair that is known to be derived, and of these two nothing is claimed; what share of their "
        "values differs is among the numbers that lnsim compare prints"
    )


def _alignment(here: _Setting) -> dict[str, Any] | str:
    if reason := here.why_not_drawn():
        return reason
    first, *_, last = here.layers(here.pairs.asked)
    cells = [[first, last], [last, first], [first, first + 1]]
    return {
        "pairs": here.some_pairs(_MOST_DRAWN),
        "roles": list(here.drawn),
        "cells": [cell for place, cell in enumerate(cells) if cell not in cells[:place]],
        **here.chance,
    }


def _geometry(here: _Setting) -> dict[str, Any] | str:
    if reason := here.why_not_drawn(n_roles=2):
        return reason
    if here.models[here.pairs.asked[0]][here.drawn[0]].hidden_size < _CHANNELS_DRAWN:
        return f"it draws {_CHANNELS_DRAWN} channels one by one, and these models have fewer"
    return {"pairs": here.some_pairs(3), "roles": list(here.drawn), "seed": here.chance["seed"]}


def _verdicts(here: _Setting) -> dict[str, Any] | str:
    if not here.compared:
        return "it needs norms of the residual stream, and the two share none"
    return {"models": list(here.models), **here.chance, "comparisons": _comparisons(here, here.compared)}


def _comparisons(here: _Setting, roles: Sequence[str]) -> dict[str, Any]:
    """Each role by what readers see of it, with the pairs that have it; the pair asked about comes first."""
    found = {}
    for role in roles:
        size = here.models[here.pairs.asked[0]][role].hidden_size
        have = {key for key, one in here.models.items() if _has(one, role, size)}
        pairs = here.pairs.only(lambda pair, have=have: set(pair) <= have).some(_MOST_LISTED)  # type: ignore[misc]
        words = role.replace("/", " ").replace("_", "-").replace("mlp", "MLP")
        found[words] = {"roles": [role, role], "pairs": [list(pair) for pair in pairs]}
    return found


_MAKERS: Mapping[str, Callable[[_Setting], dict[str, Any] | str]] = MappingProxyType(
    {
        "00": _vectors,
        "03": _matrix,
        "04": _measures,
        "05": _change,
        "06": _alignment,
        "07": _geometry,
        "13": _verdicts,
    }
)
"""By notebook number, what makes its parameters, or says why it does not run."""

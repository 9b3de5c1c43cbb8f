"""This module checks the parameters that a study gives to each notebook.

``PARAMETERS`` lists every parameter there is with its kind, ``REQUIRED`` what each notebook cannot do without. A new
parameter is one line in each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from lnsim.checkpoint.roles import ROLES
from lnsim.checkpoint.weights import KINDS
from lnsim.errors import StudyError
from lnsim.study.fields import wrong

__all__ = ["GROUPINGS", "NUMBERS", "PARAMETERS", "REQUIRED", "check_parameters"]

NUMBERS: tuple[str, ...] = tuple(f"{number:02d}" for number in range(14))
"""Notebook numbers that a study may speak of."""

REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "00": ("models", "featured"),
        "01": ("model", "roles", "baseline_layer", "n_permutations", "seed"),
        "02": ("models", "roles", "distances", "layers", "seed"),
        "03": (
            "models",
            "pairs",
            "comparisons",
            "sets",
            "group_by",
            "roles",
            "layer",
            "layers",
            "n_permutations",
            "seed",
        ),
        "04": ("models", "alone", "pairs", "roles", "layers", "n_draws", "n_permutations", "seed"),
        "05": ("derived", "copies", "controls", "roles"),
        "06": ("pairs", "roles", "cells", "n_permutations", "seed"),
        "07": ("pairs", "roles", "seed"),
        "08": ("models", "kinds", "layers", "n_permutations", "seed"),
        "09": ("models", "roles", "n_permutations", "seed"),
        "10": ("models",),
        "11": ("models", "roles", "blind", "threshold", "n_permutations", "n_draws", "n_sampled", "seed"),
        "12": ("models", "featured", "roles", "n_draws", "n_power_draws", "n_permutations", "seed"),
        "13": ("models", "comparisons", "n_permutations", "seed"),
    }
)
"""Parameters that each notebook needs; any other of PARAMETERS may be given as well."""

GROUPINGS: tuple[str, ...] = ("kind", "family")
"""By what the models of a study can be grouped."""

_MAX_PERMUTATIONS = 1_000_000


def check_parameters(number: str, given: Any, models: Collection[str]) -> Mapping[str, Any]:
    """The parameters of one notebook, checked and read-only.

    Args:
        number: the notebook's number, two digits.
        given: the table as the study file has it.
        models: the study's model keys.

    Raises:
        StudyError: for an unknown notebook or parameter, a wrong value, or a missing parameter.
    """
    at = f"experiments.{number}"
    if number not in REQUIRED:
        raise wrong(at, f"a notebook number, {NUMBERS[0]} to {NUMBERS[-1]}", number)
    if not isinstance(given, dict):
        raise wrong(at, "a table of parameters", given)
    for name, value in given.items():
        if name not in PARAMETERS:
            raise StudyError(f"key '{at}.{name}': expected one of {', '.join(PARAMETERS)}, found an unknown key.")
        PARAMETERS[name](f"{at}.{name}", value, models)
    missing = [name for name in REQUIRED[number] if name not in given]
    if missing:
        raise StudyError(f"key '{at}.{missing[0]}': notebook {number} needs this parameter, found no such key. Add it.")
    return MappingProxyType(dict(given))


def _model(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, str) or value not in models:
        raise wrong(key, f"a model key of this study ({', '.join(models)})", value)


def _model_list(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, list) or not value:
        raise wrong(key, "a list of model keys", value)
    for index, item in enumerate(value):
        _model(f"{key}[{index}]", item, models)
    _no_repeats(key, value)


def _pair_list(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, list):
        raise wrong(key, "a list of pairs of model keys", value)
    for index, pair in enumerate(value):
        if not isinstance(pair, list) or len(pair) != 2:
            raise wrong(f"{key}[{index}]", "a pair of model keys", pair)
        _model_list(f"{key}[{index}]", pair, models)
    _no_repeats(key, [frozenset(pair) for pair in value])


def _role_list(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, list) or not value:
        raise wrong(key, "a list of roles", value)
    for index, role in enumerate(value):
        if not isinstance(role, str) or role.rpartition("/")[2] not in ROLES:
            raise wrong(f"{key}[{index}]", f"a role, of its tower as tower/role ({', '.join(ROLES)})", role)
    _no_repeats(key, value)


def _phrase_list(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, list) or not all(isinstance(phrase, str) and phrase.strip() for phrase in value):
        raise wrong(key, "a list of derivations, as the models give theirs", value)
    _no_repeats(key, value)


def _kind_list(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, list) or not value or not all(kind in KINDS for kind in value):
        raise wrong(key, f"a list of kinds of projection matrices ({', '.join(KINDS)})", value)
    _no_repeats(key, value)


def _layer_list(key: str, value: Any, models: Collection[str]) -> None:
    expected = "a list of ascending layer numbers from 0, none twice"
    if not isinstance(value, list) or not value or not all(_is_whole(item) for item in value):
        raise wrong(key, expected, value)
    if value[0] < 0 or any(later <= earlier for earlier, later in pairwise(value)):
        raise wrong(key, expected, value)


def _whole(low: int, high: int) -> Callable[[str, Any, Collection[str]], None]:
    def check(key: str, value: Any, models: Collection[str]) -> None:
        if not _is_whole(value) or not low <= value <= high:
            raise wrong(key, f"a whole number from {low} to {high}", value)

    return check


def _share(key: str, value: Any, models: Collection[str]) -> None:
    if type(value) is not float or not 0 < value < 1:
        raise wrong(key, "a number between 0 and 1, as 0.99", value)


def _is_whole(value: Any) -> bool:
    return type(value) is int  # True and False are ints to Python, and no numbers here


def _cell_list(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, list) or not value:
        raise wrong(key, "a list of pairs of layer numbers", value)
    for index, cell in enumerate(value):
        if not isinstance(cell, list) or len(cell) != 2 or not all(_is_whole(layer) and layer >= 0 for layer in cell):
            raise wrong(f"{key}[{index}]", "a pair of layer numbers", cell)
    _no_repeats(key, value)


def _model_sets(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, dict) or not value:
        raise wrong(key, "a table of lists of model keys, by name", value)
    for name, members in value.items():
        _model_list(f"{key}.{name}", members, models)


def _comparisons(key: str, value: Any, models: Collection[str]) -> None:
    if not isinstance(value, dict) or not value:
        raise wrong(key, "a table of comparisons, by what readers see of the norms", value)
    for name, table in value.items():
        at = f"{key}.{name}"
        if not isinstance(table, dict) or set(table) != {"roles", "pairs"}:
            raise wrong(at, "two entries, roles (one of each model) and pairs", table)
        if not isinstance(table["roles"], list) or len(table["roles"]) != 2:
            raise wrong(
                f"{at}.roles", "two roles, that of each pair's first model and that of its second", table["roles"]
            )
        for role in table["roles"]:
            _role_list(f"{at}.roles", [role], models)
        _pair_list(f"{at}.pairs", table["pairs"], models)


def _grouping(key: str, value: Any, models: Collection[str]) -> None:
    if value not in GROUPINGS:
        raise wrong(key, f"what models are grouped by, {' or '.join(GROUPINGS)}", value)


def _no_repeats(key: str, values: list[Any]) -> None:
    repeated = [index for index, value in enumerate(values) if value in values[:index]]
    if repeated:
        shown = values[repeated[0]]
        shown = sorted(shown) if isinstance(shown, frozenset) else shown
        raise wrong(key, "each entry once", shown)


PARAMETERS: Mapping[str, Callable[[str, Any, Collection[str]], None]] = MappingProxyType(
    {
        "model": _model,
        "featured": _model,
        "models": _model_list,
        "alone": _model_list,
        "pairs": _pair_list,
        "derived": _pair_list,
        "copies": _pair_list,
        "controls": _pair_list,
        "roles": _role_list,
        "kinds": _kind_list,
        "blind": _phrase_list,
        "layers": _layer_list,
        "distances": _layer_list,
        "cells": _cell_list,
        "sets": _model_sets,
        "comparisons": _comparisons,
        "group_by": _grouping,
        "layer": _whole(0, 9999),
        "baseline_layer": _whole(0, 9999),
        "n_permutations": _whole(1, _MAX_PERMUTATIONS),
        "n_draws": _whole(2, _MAX_PERMUTATIONS),
        "threshold": _share,
        "n_sampled": _whole(2, _MAX_PERMUTATIONS),
        "n_power_draws": _whole(2, _MAX_PERMUTATIONS),
        "seed": _whole(0, 2**32 - 1),
    }
)
"""Every parameter by name, with its check."""

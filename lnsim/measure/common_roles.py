"""This module says which roles of two models can be compared, and of each one that cannot, why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError

__all__ = ["common_roles", "layer_text", "lone_layers", "not_comparable_roles"]


def common_roles(a: NormVectors, b: NormVectors) -> tuple[str, ...]:
    """The roles that can be compared, in the order of a.

    Raises:
        ComparisonError: when there is none; the message says which roles either has, and why they do not meet.
    """
    refused = not_comparable_roles(a, b)
    roles = tuple(role for role in a.roles if role not in refused)
    if not roles:
        raise ComparisonError(_nothing(a, b, refused))
    return roles


def not_comparable_roles(a: NormVectors, b: NormVectors) -> dict[str, str]:
    """By role, why it cannot be compared: only one has it, their widths differ, or they have no layer in common."""
    refused = {}
    for role in dict.fromkeys((*a.roles, *b.roles)):
        if role not in a.roles or role not in b.roles:
            refused[role] = f"only {'a' if role in a.roles else 'b'} has it"
        elif a[role].hidden_size != b[role].hidden_size:
            sizes = f"{a[role].hidden_size} and {b[role].hidden_size}"
            refused[role] = f"the hidden sizes are {sizes}, and no channel of one is a channel of the other"
        elif not np.intersect1d(a[role].layers, b[role].layers).size:
            refused[role] = "no layer number in common"
    return refused


def lone_layers(a: NormVectors, b: NormVectors, roles: Iterable[str]) -> dict[str, str]:
    """By role, the layers that only one of the two has; a role where all match is left out."""
    found = {}
    for role in roles:
        of_a, of_b = a[role].layers, b[role].layers
        lone = {"a": np.setdiff1d(of_a, of_b).tolist(), "b": np.setdiff1d(of_b, of_a).tolist()}
        if said := [f"only {name} has {layer_text(layers)}" for name, layers in lone.items() if layers]:
            found[role] = "; ".join(said)
    return found


def layer_text(layers: Iterable[int]) -> str:
    """Ascending layer numbers in words.

    >>> layer_text([0, 1, 2, 7])
    'layers 0 to 2, 7'
    """
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    several = len(runs) > 1 or len(runs[0]) > 1
    parts = (f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
    return f"layer{'s' if several else ''} {', '.join(parts)}"


def _nothing(a: NormVectors, b: NormVectors, refused: Mapping[str, str]) -> str:
    begun = f"Comparing '{a.source}' with '{b.source}': no norm of one can be set against a norm of the other"
    by_reason: dict[str, list[str]] = {}
    for role in (role for role in refused if role in a.roles and role in b.roles):
        by_reason.setdefault(refused[role], []).append(role)
    if by_reason:
        reasons = (f"{reason} ({', '.join(roles)})" for reason, roles in by_reason.items())
        return f"{begun}: {'; '.join(reasons)}."
    have = " and ".join(f"'{one.source}' has {', '.join(one.roles) or 'none'}" for one in (a, b))
    return (
        f"{begun}. Only roles of the same name are compared; {have}. Pairs of different roles can be listed in a "
        "study, as in data/studies/small_models.toml."
    )

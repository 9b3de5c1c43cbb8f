"""This module says which roles of two models can be compared, and of each one that cannot, why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError

__all__ = ["check_offsets", "common_roles", "layer_text", "lone_layers", "not_comparable_roles"]


def common_roles(a: NormVectors, b: NormVectors) -> tuple[str, ...]:
    """The roles that can be compared, in the order of a; with their towers where the two have different main towers.

    Raises:
        ComparisonError: when there is none; the message says which roles either has, and why they do not meet.
    """
    refused = not_comparable_roles(a, b)
    roles = tuple(role for role in _by_name(a, b)[0] if role not in refused)
    if not roles:
        raise ComparisonError(_nothing(a, b, refused))
    return roles


def not_comparable_roles(a: NormVectors, b: NormVectors) -> dict[str, str]:
    """By role, why it cannot be compared: only one has it, widths or towers differ, or they have no layer in common."""
    refused = {}
    of_a, of_b = _by_name(a, b)
    for role in dict.fromkeys((*of_a, *of_b)):
        if role not in of_a or role not in of_b:
            refused[role] = f"only {'a' if role in of_a else 'b'} has it"
        elif of_a[role].hidden_size != of_b[role].hidden_size:
            refused[role] = _two_widths(of_a[role], of_b[role])
        elif not np.intersect1d(of_a[role].layers, of_b[role].layers).size:
            refused[role] = "no layer number in common"
    if a.main_tower != b.main_tower and len(refused) == len({*of_a, *of_b}):
        refused |= {role: _two_towers(a, b, role) for role in a.roles if role in b.roles and "/" not in role}
    return refused


def _by_name(a: NormVectors, b: NormVectors) -> tuple[dict[str, RoleVectors], dict[str, RoleVectors]]:
    """The roles of both under names that mean the same: a bare one is that of the main tower, which may differ."""
    if a.main_tower == b.main_tower or not a.main_tower or not b.main_tower:
        return dict(a.roles), dict(b.roles)
    of_a, of_b = ({one.full_name(role): found for role, found in one.roles.items()} for one in (a, b))
    return of_a, of_b


def _two_widths(a: RoleVectors, b: RoleVectors) -> str:
    sizes = f"{a.hidden_size} and {b.hidden_size}"
    return f"the hidden sizes are {sizes}, and no channel of one is a channel of the other"


def _two_towers(a: NormVectors, b: NormVectors, role: str) -> str:
    if a[role].hidden_size != b[role].hidden_size:
        return _two_widths(a[role], b[role])
    return f"they are norms of two towers, of a's {a.main_tower} and b's {b.main_tower}"


def check_offsets(a: NormVectors, b: NormVectors) -> None:
    """Refuse two models whose effective γ may differ by 1 for no other reason than that a file does not tell.

    Raises:
        ComparisonError: when one stores γ minus one for certain, or by its values, and of the other it is not known.
    """
    for one, other in ((a, b), (b, a)):
        if one.offset.decided or not (other.offset.decided and other.offset.value != one.offset.likely):
            continue
        stores = "γ minus one" if other.offset.value else "γ itself"
        raise ComparisonError(
            f"Comparing '{a.source}' with '{b.source}': '{other.source}' stores {stores}, and of '{one.source}' this "
            f"is not known: {one.offset.reason}. Put its config.json beside it, or name its family once with `lnsim "
            f"extract '{one.source}' --model-type NAME --out DIR` and compare what that keeps."
        )


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
    for role, reason in refused.items():
        if not reason.startswith("only"):
            by_reason.setdefault(reason, []).append(role)
    if by_reason:
        reasons = (f"{reason} ({', '.join(roles)})" for reason, roles in by_reason.items())
        return f"{begun}: {'; '.join(reasons)}."
    have = " and ".join(f"'{one.source}' has {', '.join(one.roles) or 'none'}" for one in (a, b))
    return (
        f"{begun}. Only roles of the same name are compared; {have}. Pairs of different roles can be listed in a "
        "study, as in data/studies/small_models.toml."
    )

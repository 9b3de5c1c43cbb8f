"""This module says what of two models can be compared, and of what cannot, why.

Only norms of one width can be: a channel of one model must have a counterpart in the other. Layers are matched by their
number. Stored bits are compared where both store them alike: an equal value in another dtype is not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.errors import ComparisonError
from lnsim.words import TEXTS

Models = Mapping[str, NormVectors]
Layers = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

REFUSED: Mapping[str, str] = TEXTS["refused"]  # the longer reasons why models, or rows of them, are not compared
_NO_LAYER = "no layer number in common"


def matched_layers(a: RoleVectors, b: RoleVectors) -> tuple[Layers, Rows, Rows]:
    """The layer numbers that both have, ascending, and the rows of either that hold them."""
    layers, rows_a, rows_b = np.intersect1d(a.layers, b.layers, assume_unique=True, return_indices=True)
    return layers, rows_a, rows_b


def obstacle(models: Models, a: str, b: str, roles: tuple[str, str]) -> str:
    """Why a norm of one model cannot be compared with one of the other, or an empty text; the widths come first."""
    both = [(models[key], role) for key, role in zip((a, b), roles, strict=True)]
    sizes = [(one[role] if role in one.roles else one).hidden_size for one, role in both]
    if sizes[0] != sizes[1]:
        return two_widths(*sizes)
    missing = ((key, role) for key, role in zip((a, b), roles, strict=True) if role not in models[key].roles)
    return next((f"{key} has no norm of the role {role}" for key, role in missing), "")


def obstacle_to_test(models: Models, a: str, b: str, roles: tuple[str, str]) -> str:
    """``obstacle``, or why matched layers cannot be tested: none match, or one has no pattern."""
    if found := obstacle(models, a, b, roles):
        return found
    both = [(key, models[key][role]) for key, role in zip((a, b), roles, strict=True)]  # a may be b: a model itself
    if not len(matched_layers(*(norms for _, norms in both))[0]):
        return _NO_LAYER
    for key, norms in both:
        if constant := norms.layers[np.ptp(norms.scale, axis=1) == 0].tolist():
            return f"γ of {key} is the same in every channel of layer {constant[0]}, so it has no pattern"
    return ""


def common_roles(a: NormVectors, b: NormVectors) -> tuple[str, ...]:
    """The roles that can be compared, in the order of a; with their towers where the two have different main towers.

    ComparisonError where there is none says which roles either has, and why they do not meet.
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
            refused[role] = two_widths(of_a[role].hidden_size, of_b[role].hidden_size)
        elif not len(matched_layers(of_a[role], of_b[role])[0]):
            refused[role] = _NO_LAYER
    if a.main_tower != b.main_tower and len(refused) == len({*of_a, *of_b}):
        towers = f"they are norms of two towers, of a's {a.main_tower} and b's {b.main_tower}"
        for role in (role for role in a.roles if role in b.roles and "/" not in role):
            sizes = a[role].hidden_size, b[role].hidden_size
            refused[role] = towers if sizes[0] == sizes[1] else two_widths(*sizes)
    return refused


def _by_name(a: NormVectors, b: NormVectors) -> tuple[dict[str, RoleVectors], dict[str, RoleVectors]]:
    """The roles of both under names that mean the same: a bare one is that of the main tower, which may differ."""
    if a.main_tower == b.main_tower or not a.main_tower or not b.main_tower:
        return dict(a.roles), dict(b.roles)
    of_a, of_b = ({one.full_name(role): found for role, found in one.roles.items()} for one in (a, b))
    return of_a, of_b


def two_roles(roles: tuple[str, str]) -> str:
    """What a role of each of two models is called: ``a × b``, or once where both have the same name."""
    return " × ".join(dict.fromkeys(roles))


def two_widths(a: int, b: int) -> str:
    """Why norms of two hidden sizes cannot be compared."""
    return f"their hidden sizes are {a} and {b}, and no channel of one is a channel of the other"


def check_offsets(a: NormVectors, b: NormVectors) -> None:
    """Refuse two models whose effective γ may differ by 1 for no other reason than that a file does not tell.

    That is where one stores γ minus one for certain, or by its values, and of the other it is not known.
    """
    for one, other in ((a, b), (b, a)):
        if one.offset.decided or not (other.offset.decided and other.offset.value != one.offset.likely):
            continue
        stores = "γ minus one" if other.offset.value else "γ itself"
        raise ComparisonError(REFUSED["offset"].format(a=a, b=b, one=one, other=other, stores=stores))


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


def by_reason(apart: Mapping[str, str]) -> str:
    """Why roles stand apart, each reason once with its roles."""
    return "; ".join(
        f"{why} ({', '.join(role for role, reason in apart.items() if reason == why)})"
        for why in dict.fromkeys(apart.values())
    )


def _nothing(a: NormVectors, b: NormVectors, refused: Mapping[str, str]) -> str:
    begun = f"Comparing '{a.source}' with '{b.source}': no norm of one can be set against a norm of the other"
    if why := by_reason({role: reason for role, reason in refused.items() if not reason.startswith("only")}):
        return f"{begun}: {why}."
    have = " and ".join(f"'{one.source}' has {', '.join(one.roles) or 'none'}" for one in (a, b))
    return REFUSED["no_common_role"].format(begun=begun, have=have)


def why_not_bits(a: RoleVectors, b: RoleVectors) -> str:
    """Why there are no bits to compare, or an empty text."""
    for side, one in (("a", a), ("b", b)):
        if one.dtypes:
            return f"the layers of {side} are stored in {' and '.join(sorted(set(one.dtypes)))}"
    if a.offset != b.offset:
        return "one stores γ and the other γ minus one"
    return "" if a.stored.dtype == b.stored.dtype else f"a is stored as {a.stored.dtype}, b as {b.stored.dtype}"


def same_bits(a: RoleVectors, b: RoleVectors) -> bool:
    """Whether both have the same layers, and weights and biases of the same stored bits that mean the same γ."""
    alike = np.array_equal(a.layers, b.layers) and (a.offset, a.dtypes) == (b.offset, b.dtypes)
    return alike and _equal(a.stored, b.stored) and _equal(a.stored_bias, b.stored_bias)


def same_gamma(a: RoleVectors, b: RoleVectors) -> bool:
    """Whether both have the same layers, and the same effective γ and β, whatever the types they are stored in."""
    same_layers = np.array_equal(a.layers, b.layers)
    return same_layers and _equal(a.scale, b.scale) and _equal(a.bias, b.bias)


def _equal(one: npt.NDArray[Any] | None, other: npt.NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()

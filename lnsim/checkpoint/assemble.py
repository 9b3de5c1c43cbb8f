"""This module builds norm vectors from tensor bytes and their roles. Pure: no file, no network."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.families.table import ROLES, TOWERS
from lnsim.checkpoint.format.decode import decode, dtype_name, to_float32
from lnsim.checkpoint.roles import NormTensor, RoleMap
from lnsim.checkpoint.store import StoredTensor
from lnsim.checkpoint.vectors import RoleVectors, key_of
from lnsim.errors import RoleError, named
from lnsim.tables import some

_FIRST_NUMBER = re.compile(r"(?<=\.)\d{1,9}(?=\.)", re.ASCII)
# Roles whose norms act on the residual stream, so that all layers of a tower have the same width.
_STREAM_ROLES = frozenset(ROLES) - {"q_norm", "k_norm", "other"}

Arrays = Mapping[str, npt.NDArray[Any]]  # the stored values of each tensor, shape ``(hidden_size,)``, by its name


@dataclass(frozen=True, slots=True)
class Selection:
    """The tensors to read, by role key in the order of the layers, and the layers that the config alone promises."""

    tensors: Mapping[str, tuple[NormTensor, ...]]
    missing_layers: Mapping[str, tuple[int, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Every tensor name, once."""
        return tuple(dict.fromkeys(tensor.name for group in self.tensors.values() for tensor in group))


def select(roles: RoleMap, wanted: Iterable[str] | None, *, everything: bool, where: str) -> Selection:
    """Choose the norms to read.

    By default every norm with a role in the main tower and in an MTP block; ``wanted`` narrows that, or names roles of
    other towers as ``tower/role`` and all roles of one by its name; ``everything`` adds all the rest. Raises RoleError,
    with the roles that are there, for a wanted one that is not.
    """
    groups = _grouped(roles)
    if wanted is None:
        chosen = [key for key in groups if everything or _is_default(roles, key)]
    else:
        chosen = _wanted(wanted, groups, roles.main_tower, everything=everything, where=where)
    absent = [key for key in roles.missing_layers if key not in groups and _is_default(roles, key)]
    shown = {*chosen, *(absent if wanted is None else ())}
    ordered = sorted(chosen, key=_by_role)
    return Selection(
        {key: tuple(sorted(groups[key], key=lambda one: (_layer(one), one.name))) for key in ordered},
        {key: tuple(layers) for key, layers in roles.missing_layers.items() if layers and key in shown},
    )


def build_roles(
    selection: Selection, tensors: Mapping[str, StoredTensor], *, where: str
) -> tuple[dict[str, RoleVectors], tuple[str, ...]]:
    """Vectors of every selected role, and sentences on what is odd about them; RoleError where layers do not fit."""
    arrays = {
        name: decode(one.data, one.dtype, one.shape, where=f"tensor '{name:.160}' of {where}").reshape(-1)
        for name in selection.names
        for one in (tensors[name],)
    }
    found: dict[str, RoleVectors] = {}
    notes: list[str] = []
    for key, group in selection.tensors.items():
        with named(RoleError, f"Reading role '{key}' of {where}"):
            kept, dropped = _same_width(key, group, arrays)
            found[key] = _stack(key, kept, arrays)
        notes += [*dropped, *_oddities(found[key])]
    return found, tuple(notes)


def _grouped(roles: RoleMap) -> dict[str, list[NormTensor]]:
    """The norms by role key. Those of one head each (StableLM's q and k norms) are no vector of a layer: kept apart."""
    per_layer = Counter((roles.key(tensor), tensor.layer, tensor.kind) for tensor in roles.tensors)
    several = {key for (key, _, _), number in per_layer.items() if number > 1 and key.endswith(("q_norm", "k_norm"))}
    groups: dict[str, list[NormTensor]] = {}
    for tensor in roles.tensors:
        key = roles.key(tensor)
        apart = tensor.role == "other" or key in several
        groups.setdefault(_by_name(tensor) if apart else key, []).append(tensor)
    return groups


def _by_name(tensor: NormTensor) -> str:
    """Key of a norm that is no vector of a role: its own name, with the layer's number open."""
    stem = tensor.name.rpartition(".")[0] or tensor.name
    return f"other/{_FIRST_NUMBER.sub('*', stem, count=1)}"


def _is_default(roles: RoleMap, key: str) -> bool:
    tower = key.rpartition("/")[0]
    return tower in ("", roles.main_tower, "mtp")


def _wanted(
    wanted: Iterable[str], groups: Mapping[str, Any], main_tower: str, *, everything: bool, where: str
) -> list[str]:
    chosen: list[str] = [key for key in groups if everything and key.startswith("other/")]
    for name in wanted:
        matching = _named(name, groups, main_tower)
        if not matching:
            known = ", ".join(sorted(dict.fromkeys(group.partition("other/")[0] or "other" for group in groups)))
            near = "".join(f" Did you mean '{one}'?" for one in difflib.get_close_matches(name, groups, n=1))
            raise RoleError(f"Selecting role '{name}' of {where}: it has no such norms. It has: {known}.{near}")
        chosen.extend(matching)
    return list(dict.fromkeys(chosen))


def _named(name: str, groups: Iterable[str], main_tower: str) -> list[str]:
    """The groups that a word names: one role, ``other``, or a tower with all its roles."""
    key = key_of(name, main_tower)
    if name == main_tower:
        return [group for group in groups if "/" not in group]
    return [group for group in groups if group == key or (name in (*TOWERS, "other") and group.startswith(f"{name}/"))]


def _by_role(key: str) -> tuple[bool, str, int]:
    tower, _, role = key.rpartition("/")
    return key.startswith("other/"), tower, ROLES.index(role) if role in ROLES else len(ROLES)


def _layer(tensor: NormTensor) -> int:
    if tensor.role != "other":
        return tensor.layer
    number = _FIRST_NUMBER.search(tensor.name)
    return int(number[0]) if number else -1


def _same_width(key: str, group: Sequence[NormTensor], arrays: Arrays) -> tuple[list[NormTensor], list[str]]:
    """The tensors of the commonest width. On the residual stream any other width is an error, elsewhere a note."""
    widths = Counter(arrays[tensor.name].size for tensor in group)
    (width, _), *rest = widths.most_common()
    if not rest:
        return list(group), []
    odd = sorted({_layer(tensor) for tensor in group if arrays[tensor.name].size != width})
    told = ", ".join(f"{count} tensors of {size} channels" for size, count in widths.most_common())
    if group[0].role in _STREAM_ROLES:
        raise RoleError(f"all layers should have one width, found {told}.")
    kept = [tensor for tensor in group if arrays[tensor.name].size == width]
    return kept, [f"Role '{key}' has {told}; kept those of {width}, left out layers {some(odd)}."]


def _stack(key: str, group: Sequence[NormTensor], arrays: Arrays) -> RoleVectors:
    weights, biases = (_by_layer_number(group, kind) for kind in ("weight", "bias"))
    if not weights:
        raise RoleError(f"{len(biases)} biases were found and no weight.")
    if biases and biases.keys() != weights.keys():
        odd = sorted(biases.keys() ^ weights.keys())
        raise RoleError(f"weight and bias should come in pairs; layers {some(odd)} have one.")
    rows = [arrays[tensor.name] for tensor in weights.values()]
    dtypes = tuple(dtype_name(row) for row in rows)
    stored = _joined(rows)
    if not stored.size:
        raise RoleError("its norms have no channels.")
    stored_bias = _joined([arrays[tensor.name] for tensor in biases.values()]) if biases else None
    first = next(iter(weights.values()))
    return RoleVectors(
        role=key,
        layers=np.array(list(weights), dtype=np.int64),
        scale=to_float32(stored, offset=first.offset),
        bias=None if stored_bias is None else to_float32(stored_bias),
        stored=stored,
        stored_bias=stored_bias,
        names=tuple(tensor.name for tensor in weights.values()),
        bias_names=tuple(tensor.name for tensor in biases.values()),
        norm_type=first.norm_type,
        shared=first.shared,
        tower=first.tower,
        offset=first.offset,
        dtypes=dtypes if len(set(dtypes)) > 1 else (),
    )


def _by_layer_number(group: Sequence[NormTensor], kind: str) -> dict[int, NormTensor]:
    found: dict[int, NormTensor] = {}
    for tensor in group:
        if tensor.kind == kind and (other := found.setdefault(_layer(tensor), tensor)) is not tensor:
            names = f"{other.name!r:.120} and {tensor.name!r:.120}"
            raise RoleError(f"layer {_layer(tensor)} has two {kind}s, {names}.")
    return found


def _joined(rows: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The rows in one array; where their dtypes differ, in one that holds the values of each exactly."""
    same = len({row.dtype for row in rows}) == 1
    wide = np.float64 if any(row.dtype.itemsize > np.dtype(np.float32).itemsize for row in rows) else np.float32
    array = np.stack(rows if same else [row.astype(wide) for row in rows])
    array.setflags(write=False)
    return array


def _oddities(vectors: RoleVectors) -> Iterator[str]:
    """What would spoil a measure without a word: several dtypes, values that are not finite, vectors all zero."""
    if vectors.dtypes:
        counts = ", ".join(f"{count} in {dtype}" for dtype, count in Counter(vectors.dtypes).most_common())
        yield f"Role '{vectors.role}': its layers are stored in several dtypes ({counts}); they are widened."
    finite = np.isfinite(vectors.scale)
    if not finite.all():
        layers = vectors.layers[~finite.all(axis=1)].tolist()
        yield f"Role '{vectors.role}': {int((~finite).sum())} values are not finite, in layers {some(layers)}."
    zero = ~vectors.scale.any(axis=1)
    if zero.any():
        yield f"Role '{vectors.role}': every value is zero in layers {some(vectors.layers[zero].tolist())}."

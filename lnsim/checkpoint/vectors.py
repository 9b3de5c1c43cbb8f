"""This module holds the values that a reader gives out: the norm vectors of one checkpoint, by role."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.format.decode import DTYPES
from lnsim.checkpoint.weight_rows import WeightRows
from lnsim.errors import RoleError
from lnsim.tables import card, gap_notes, table
from lnsim.text import printable


class TensorSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the bytes of one stored tensor came from: the bytes ``[start, stop)`` of a file of the checkpoint."""

    shard: str
    start: int
    stop: int
    sha256: str  # of exactly these bytes, as hexadecimal digits
    dtype: str  # the format's name, such as BF16


@dataclass(frozen=True, slots=True)
class Offset:
    """What is added to a stored weight for the effective γ, 1.0 or 0.0, where the family stores it minus one."""

    value: float = 0.0
    decided: bool = True  # else the evidence leaves it open
    reason: str = ""  # empty where no table at hand stores γ minus one
    by_format: bool = False  # nothing but a mark in the file's metadata tells
    likely: float = 0.0  # where it is open, what the stored values speak for


@dataclass(frozen=True, slots=True, eq=False)
class RoleVectors:
    """The vectors of one role, one row a layer."""

    role: str  # as users write it, for example ``pre_attention`` or ``mtp/pre_mlp``
    # Zero-based block numbers, ascending, ``(n_layers,)``; a missing layer is a gap, never a shift. A norm outside the
    # blocks (``final``, ``embedding``) has the one layer number -1.
    layers: npt.NDArray[np.int64]
    # effective γ, with 1 added where it is stored minus one, ``(n_layers, hidden_size)``
    scale: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32] | None  # β, of the same shape, where the family has one
    # The weight as it lies in the file, of the same shape, in the stored dtype (ml_dtypes for BF16 and FP8), for exact
    # comparison; the same for the bias.
    stored: npt.NDArray[Any]
    stored_bias: npt.NDArray[Any] | None
    names: tuple[str, ...]  # tensor names of the weights, one a row
    norm_type: str  # ``rmsnorm`` or ``layernorm``
    shared: bool = False  # one norm feeds attention and MLP at once
    bias_names: tuple[str, ...] = ()  # tensor names of the biases, one a row, or empty
    tower: str = ""  # the stack of blocks that they belong to, for example ``encoder``; empty where nobody told
    offset: float = 0.0  # what was added to the stored weight for the effective γ
    dtypes: tuple[str, ...] = ()  # of each row where they differ, else empty; ``stored`` is then widened to float32

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """The effective γ, so that ``pairwise`` and NumPy take these vectors as they are."""
        return np.array(self.scale, dtype=dtype, copy=copy)

    def __post_init__(self) -> None:
        n_layers = len(self.layers)
        if self.scale.shape != self.stored.shape or self.scale.ndim != 2 or len(self.scale) != n_layers:
            raise RoleError(
                f"Role '{self.role}' needs one row of γ a layer: {n_layers} layers, but γ has shape {self.scale.shape} "
                f"and its stored form {self.stored.shape}."
            )
        if n_layers != len(self.names) or (np.diff(self.layers) <= 0).any():
            raise RoleError(f"Role '{self.role}' needs ascending layers, each with a name; got {self.layers.tolist()}.")

    @property
    def hidden_size(self) -> int:
        """Channels of each vector."""
        return int(self.scale.shape[1])

    @property
    def as_stored(self) -> tuple[npt.NDArray[Any], ...]:
        """Each row in its own stored dtype."""
        if not self.dtypes:
            return tuple(self.stored)
        return tuple(row.astype(DTYPES[dtype]) for row, dtype in zip(self.stored, self.dtypes, strict=True))

    def row(self, layer: int) -> int:
        """Row of a layer number; raises RoleError where the layer has no such norm."""
        found = np.flatnonzero(self.layers == layer)
        if not len(found):
            raise RoleError(
                f"Looking up layer {layer} of role '{self.role}': it is not among the {len(self.layers)} layers read, "
                f"{self.layers[0]} to {self.layers[-1]}."
            )
        return int(found[0])

    def __getitem__(self, layer: int) -> npt.NDArray[np.float32]:
        """γ of a layer by its number, shape ``(hidden_size,)``; raises RoleError as ``row``."""
        return np.asarray(self.scale[self.row(layer)])

    def __iter__(self) -> Iterator[int]:
        return iter(self.layers.tolist())

    def __repr__(self) -> str:
        ends = "no layers" if not len(self.layers) else f"layers {self.layers[0]} to {self.layers[-1]}"
        what = f"{len(self.layers)} rows, {ends}, {self.hidden_size} channels, {self.norm_type}, {self.stored.dtype}"
        return f"RoleVectors({self.role!r:.120}: {what})"

    def _repr_html_(self) -> str:
        found = row_facts(self.scale)
        rows = [(str(layer), *of, name) for layer, of, name in zip(self.layers, found, self.names, strict=True)]
        stored = f"stored as {self.stored.dtype}"
        facts = (f"{len(rows)} layers", f"{self.hidden_size:,} channels", self.norm_type, stored)
        shown = table(("layer", "norm of γ", "mean", "standard deviation", "tensor"), rows)
        return card("RoleVectors", self.role, (*facts, "β" if self.bias is not None else "no β"), [shown])

    def _ipython_key_completions_(self) -> list[int]:
        return list(self)


@dataclass(frozen=True, slots=True, eq=False)
class NormVectors:
    """Every norm vector that was read from one checkpoint."""

    source: str  # what was read, as a person would write it: a repo id, a path or a stored model's name
    commit: str | None  # what the revision resolved to; None for files outside the Hub
    model_type: str  # the config's
    norm_type: str  # ``rmsnorm`` or ``layernorm``, of the main tower's block norms
    hidden_size: int  # channels of the main tower's block norms
    roles: Mapping[str, RoleVectors]
    missing_layers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # those that the config promises
    notes: tuple[str, ...] = ()  # what a reader of the numbers must know (γ stored minus one, roles from names alone)
    tensors: Mapping[str, TensorSource] = field(default_factory=dict)  # where each stored tensor came from
    config: Mapping[str, Any] = field(default_factory=dict)  # the checkpoint's, as far as it is known
    provenance: Mapping[str, str] = field(default_factory=dict)  # all else on record (package, licence, revision, ...)
    requests: int = 0  # made to read it, all of them counted
    bytes_received: int = 0  # of response bodies
    seconds: float = 0.0  # wall-clock time of the read
    path: Path | None = None  # the extract that was written
    main_tower: str = ""  # whose roles are written bare; empty where nobody told
    towers: tuple[str, ...] = ()  # those of which norms are there, read or not
    offset: Offset = Offset()  # whether the file stores γ or γ minus one, and on what evidence
    rows: WeightRows | None = None  # of matrices, for the tests beyond norms, where they were asked for

    def __post_init__(self) -> None:
        for name in ("roles", "missing_layers", "tensors", "config", "provenance"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process: its mappings are views there as here, which pickle does not know."""
        values = (getattr(self, one.name) for one in fields(self))
        return NormVectors, tuple(dict(one) if isinstance(one, MappingProxyType) else one for one in values)

    def __getitem__(self, role: str) -> RoleVectors:
        """The vectors of a role, by lnsim's name or the Llama family's; RoleError, with the roles there are."""
        key = key_of(role, self.main_tower)
        if key not in self.roles:
            raise RoleError(f"'{self.source}' has no norms of role '{role}'; it has {', '.join(self.roles) or 'none'}.")
        return self.roles[key]

    def full_name(self, role: str) -> str:
        """A role with its tower, as in ``encoder/pre_mlp``; one without a tower of its own as it is."""
        return f"{self.main_tower}/{role}" if self.main_tower and "/" not in role else role

    def __iter__(self) -> Iterator[str]:
        return iter(self.roles)

    def __repr__(self) -> str:
        roles = ", ".join(f"{role} {len(vectors.layers)}" for role, vectors in self.roles.items())
        commit = f" at commit {self.commit[:12]}" if self.commit else ""
        what = f"{self.model_type:.60}, {self.hidden_size} channels: {roles or 'no roles':.200}"
        return printable(f"NormVectors({self.source!r:.120}{commit}, {what})")

    def _repr_html_(self) -> str:
        rows = [
            (role, len(one.layers), one.hidden_size, str(one.stored.dtype), "no" if one.bias is None else "yes")
            for role, one in self.roles.items()
        ]
        traffic = f"{self.requests} requests, {self.bytes_received:,} bytes" if self.requests else ""
        commit = f"commit {self.commit}" if self.commit else "no commit recorded"
        facts = (self.model_type, self.norm_type, f"{self.hidden_size:,} channels", f"{self.n_vectors} vectors")
        shown = table(("role", "layers", "channels", "stored as", "β"), rows)
        notes = gap_notes(self.missing_layers.items(), self.notes)
        return card("NormVectors", self.source, (*facts, commit, traffic), [shown], notes)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    @property
    def digest(self) -> str:
        """One hash over the stored bytes of all norms, whatever their order: the same for the same bytes."""
        names = {name for one in self.roles.values() for name in (*one.names, *one.bias_names)}
        hashes = sorted(one.sha256 for name, one in self.tensors.items() if name in names)
        return hashlib.sha256("".join(hashes).encode()).hexdigest()

    @property
    def n_vectors(self) -> int:
        """Weights read, over all roles (biases not counted)."""
        return sum(len(vectors.layers) for vectors in self.roles.values())

    @property
    def stored(self) -> Mapping[str, npt.NDArray[Any]]:
        """Every stored weight and bias by its tensor name, in the stored dtype: the bits of the file."""
        found: dict[str, npt.NDArray[Any]] = {}
        for vectors in self.roles.values():
            found.update(zip(vectors.names, vectors.as_stored, strict=True))
            if vectors.stored_bias is not None:
                found.update(zip(vectors.bias_names, vectors.stored_bias, strict=True))
        return MappingProxyType(found)


def row_facts(scale: npt.NDArray[np.float32]) -> list[tuple[str, str, str]]:
    """Norm, mean and standard deviation (ddof 0) of each row as texts, ``undefined`` where a value is no number."""
    with np.errstate(invalid="ignore", over="ignore"):
        rows = scale.astype(np.float64)
        values = np.stack([np.sqrt(np.square(rows).sum(axis=1)), rows.mean(axis=1), rows.std(axis=1)], axis=1)
    return [tuple(f"{v:.3g}".replace("-", "−") if np.isfinite(v) else "undefined" for v in row) for row in values]  # type: ignore[misc]


# Names of the Llama family that the command line takes beside lnsim's own.
LLAMA_NAMES: Mapping[str, str] = {"input_layernorm": "pre_attention", "post_attention_layernorm": "pre_mlp"}

IN_LLAMA = {role: name for name, role in LLAMA_NAMES.items()}


def key_of(role: str, main_tower: str) -> str:
    """The key of a role however it is written: by the Llama family's name, or with the main tower's.

    >>> key_of("encoder/input_layernorm", "encoder"), key_of("encoder/pre_mlp", "decoder")
    ('pre_attention', 'encoder/pre_mlp')
    """
    tower, _, name = role.rpartition("/")
    known = LLAMA_NAMES.get(name, name)
    return known if tower in ("", main_tower) else f"{tower}/{known}"


def same_stored(a: NormVectors, b: NormVectors) -> bool:
    """Whether both hold the same tensors, bit for bit, by the hashes of their bytes."""
    return {name: one.sha256 for name, one in a.tensors.items()} == {n: one.sha256 for n, one in b.tensors.items()}

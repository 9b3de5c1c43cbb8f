"""This module describes a checkpoint from its headers alone: family, towers, norms by role, dtypes, shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lnsim.checkpoint.families.table import has_fixed_positions
from lnsim.checkpoint.format.header import TensorInfo
from lnsim.checkpoint.opening import open_checkpoint
from lnsim.checkpoint.reading import map_checkpoint
from lnsim.checkpoint.roles import NormTensor, RoleMap
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.errors import RoleError
from lnsim.words import TEXTS


@dataclass(frozen=True, slots=True)
class RoleSummary:
    """What the headers say of one role."""

    n_layers: int
    hidden_size: int  # the largest, where layers differ in channels
    dtype: str  # as stored, several joined by ``+``
    norm_type: str  # rmsnorm or layernorm
    bias: bool
    example: str  # the first tensor's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A checkpoint as its headers show it; where no table fits, ``family`` is None and ``problem`` says why."""

    source: str
    where: str
    repo_id: str | None
    revision: str | None
    commit: str | None
    part: str
    family: str | None = None
    model_type: str
    norm_type: str | None = None
    main_tower: str | None = None
    n_layers: Mapping[str, int] = field(default_factory=dict)
    roles: Mapping[str, RoleSummary] = field(default_factory=dict)  # by role key; ``other`` are those without a role
    missing_layers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dtypes: Mapping[str, int]  # tensors of each
    shards: Mapping[str, int]  # bytes of each
    n_tensors: int
    notes: tuple[str, ...]
    problem: str | None = None
    requests: int
    bytes_received: int


def inspect(
    source: str | Path, revision: str | None = None, *, model_type: str | None = None, progress: Progress = no_progress
) -> Inspection:
    """Describe what a SOURCE names, of an unknown family too; LnsimError where it cannot be opened."""
    opened = open_checkpoint(str(source), revision, progress=progress)
    infos = opened.tensors
    told: dict[str, Any]
    try:
        found = map_checkpoint(opened, model_type)
    except RoleError as error:
        told = {"model_type": str((opened.config or {}).get("model_type", "")), "problem": str(error)}
    else:
        same = ("family", "model_type", "norm_type", "main_tower", "n_layers", "missing_layers", "notes")
        told = {name: getattr(found, name) for name in same} | {"roles": _summaries(found, infos)}
        if fixed := [tower for tower in found.n_layers if has_fixed_positions(found.model_type, tower)]:
            told["notes"] = (*found.notes, TEXTS["notes"]["fixed_positions"].format(towers=" and ".join(fixed)))
    own = {name: getattr(opened, name) for name in ("source", "where", "repo_id", "revision", "commit", "part")}
    return Inspection(
        dtypes=dict(Counter(info.dtype for info in infos.values()).most_common()),
        shards={name: header.file_size for name, header in opened.headers.items()},
        n_tensors=len(infos),
        requests=opened.traffic.requests,
        bytes_received=opened.traffic.bytes_received,
        **own | told | {"notes": (*opened.notes, *told.get("notes", ()))},
    )


def _summaries(role_map: RoleMap, infos: Mapping[str, TensorInfo]) -> dict[str, RoleSummary]:
    groups: dict[str, list[NormTensor]] = {}
    for tensor in role_map.tensors:
        if tensor.name in infos:  # else it cannot be read, and a note says so
            groups.setdefault(role_map.key(tensor), []).append(tensor)
    weights = {key: [one for one in group if one.kind == "weight"] for key, group in groups.items()}
    return {
        key: RoleSummary(
            n_layers=len(own),
            hidden_size=max((infos[one.name].shape or (1,))[-1] for one in own),
            dtype="+".join(sorted({infos[one.name].dtype for one in own})),
            norm_type=own[0].norm_type,
            bias=len(own) < len(groups[key]),
            example=own[0].name,
        )
        for key, own in weights.items()
        if own
    }

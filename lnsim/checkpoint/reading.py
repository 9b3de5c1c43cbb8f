"""This module reads the norms of an opened checkpoint: roles first, then bytes, then vectors or an extract of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lnsim.checkpoint.assemble import Selection, build_roles, select
from lnsim.checkpoint.header import Header, TensorInfo
from lnsim.checkpoint.local import LocalCheckpoint
from lnsim.checkpoint.ranges import tensor_range
from lnsim.checkpoint.roles import ROLES, RoleMap, map_roles
from lnsim.checkpoint.source import Checkpoint, Progress, locate, no_progress
from lnsim.checkpoint.store import (
    Provenance,
    StoredTensor,
    extract_name,
    json_texts,
    read_provenance,
    read_sources,
    write_extract,
)
from lnsim.checkpoint.vectors import NormVectors, RoleVectors, TensorSource
from lnsim.errors import RoleError

__all__ = ["ASKED_KEY", "Prepared", "Reading", "map_checkpoint", "read_norms", "tensor_infos"]

ASKED_KEY = "asked"
"""Metadata key of an extract from the Hub: the question that it answers."""

_ROLES_KEY = "roles_read"
"""Metadata key of an extract: the role keys it holds, so that a narrowed one does not look as if layers were lost."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """An extract that is ready to be written; it holds on to nothing else of the checkpoint.

    Args:
        tensors: what it holds.
        provenance: where that came from.
        name: its usual file name, made of the repo id and the commit.
    """

    tensors: tuple[StoredTensor, ...] = field(repr=False)
    provenance: Provenance
    name: str

    def write(self, folder: Path, name: str | None = None) -> Path:
        """Write it into a folder, made if it is not there, and return its path.

        Raises:
            StoreError: when the disk refuses, or the file does not read back the same.
        """
        return write_extract(folder / (name or self.name), self.tensors, self.provenance)


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes of a checkpoint's norms and all that is known about them.

    Args:
        opened: the checkpoint.
        role_map: what each norm is.
        selection: the norms that were read.
        infos: dtype and shape of each tensor read.
        data: bytes of each tensor read.
        sources: where these bytes came from in the first place.
    """

    opened: Checkpoint
    role_map: RoleMap
    selection: Selection
    infos: Mapping[str, TensorInfo]
    data: Mapping[str, bytes] = field(repr=False)
    sources: Mapping[str, TensorSource] = field(repr=False)

    def vectors(self) -> NormVectors:
        """The norm vectors by role.

        Raises:
            RoleError: when the tensors of a role do not fit together.
        """
        opened = self.opened
        roles, oddities = build_roles(self.selection, self.infos, self.data, where=opened.where)
        return NormVectors(
            source=opened.source,
            commit=opened.commit,
            model_type=self.role_map.model_type,
            norm_type=self.role_map.norm_type,
            hidden_size=_hidden_size(roles),
            roles=roles,
            missing_layers=self.selection.missing_layers,
            notes=(*opened.notes, *self.role_map.notes, *oddities),
            tensors=self.sources,
            config=opened.config or {},
            provenance=self._provenance_texts(),
            requests=opened.traffic.requests,
            bytes_received=opened.traffic.bytes_received,
        )

    @property
    def extract_path(self) -> Path | None:
        """The file that was read, where that is an extract already."""
        if not _is_extract(self.opened) or not isinstance(self.opened, LocalCheckpoint):
            return None
        return self.opened.folder / next(iter(self.opened.headers))

    def prepared(self, asked: str | None = None) -> Prepared:
        """The extract of these bytes, ready to be written.

        Args:
            asked: the question that it answers, kept for what comes from the Hub.
        """
        opened = self.opened
        tensors = [
            StoredTensor(key, origin.dtype, self.infos[key].shape, data, origin.shard, origin.start, origin.stop)
            for key, data in self.data.items()
            for origin in (self.sources[key],)
        ]
        extra = {key: text for key, text in self._provenance_texts().items() if key not in ("repo_id", "revision")}
        looked_for = dict.fromkeys((*self.selection.tensors, *self.selection.missing_layers))
        extra |= {_ROLES_KEY: json.dumps(list(looked_for))}
        if asked is not None and opened.commit is not None and not _is_extract(opened):
            extra |= {ASKED_KEY: asked}
        provenance = Provenance(
            source=opened.source,
            repo_id=opened.repo_id,
            commit=opened.commit,
            revision=opened.revision,
            model_type=self.role_map.model_type,
            config={**(opened.config or {"model_type": self.role_map.model_type}), **self.role_map.shown},
            extra=extra,
        )
        return Prepared(
            tuple(tensors), provenance, extract_name(opened.repo_id or Path(opened.source).name, opened.commit)
        )

    def _provenance_texts(self) -> dict[str, str]:
        known = {"repo_id": self.opened.repo_id, "revision": self.opened.revision}
        return {key: text for key, text in known.items() if text is not None} | _extract_texts(self.opened)


def map_checkpoint(opened: Checkpoint, model_type: str | None = None) -> RoleMap:
    """The roles of every norm of an opened checkpoint; raises RoleError as ``map_roles`` does."""
    shapes = {name: info.shape for name, info in tensor_infos(opened).items()}
    return map_roles(shapes, opened.config, where=opened.where, model_type=model_type)


def tensor_infos(opened: Checkpoint) -> dict[str, TensorInfo]:
    """Dtype and shape of every tensor of every opened shard, by name."""
    return {name: info for header in opened.headers.values() for name, info in header.tensors.items()}


def read_norms(
    opened: Checkpoint,
    roles: Iterable[str] | None = None,
    *,
    everything: bool = False,
    model_type: str | None = None,
    progress: Progress = no_progress,
) -> Reading:
    """Read the norms of an opened checkpoint; the arguments are those of ``extract``.

    Raises:
        RoleError: when the family is unknown, a wanted role is not there, or no norm has a role.
    """
    role_map = map_checkpoint(opened, model_type)
    wanted = None if roles is None else tuple(roles)
    selection = select(
        role_map, wanted, everything=everything or (wanted is None and _is_extract(opened)), where=opened.where
    )
    if not selection.tensors:
        raise RoleError(
            f"Reading {opened.where}: none of its norms has a role in the main tower; --all reads the rest."
        )
    selection = _without_unread(selection, opened)
    recorded = _recorded_sources(opened)
    opened.keep_only(selection.names)
    data = opened.read(selection.names, progress)
    sources = {name: recorded[name] for name in data} if recorded else _sources(opened, data)
    return Reading(opened, role_map, selection, tensor_infos(opened), data, sources)


def _recorded_sources(opened: Checkpoint) -> dict[str, TensorSource]:
    """Where an extract's bytes first came from; empty for any other checkpoint, which is the source itself."""
    return {
        name: source
        for header in opened.headers.values()
        if read_provenance(header) is not None
        for name, source in read_sources(header).items()
    }


def _sources(opened: Checkpoint, data: Mapping[str, bytes]) -> dict[str, TensorSource]:
    shard_of = locate(opened.headers, where=opened.where)
    return {name: _source(name, shard_of[name], opened.headers[shard_of[name]], data[name]) for name in data}


def _source(name: str, shard: str, header: Header, data: bytes) -> TensorSource:
    info = header.tensors[name]
    span = tensor_range(header, name)
    start = span.start if span else header.buffer_start + info.start
    return StoredTensor(name, info.dtype, info.shape, data, shard, start, start + len(data)).source


def _extract_texts(opened: Checkpoint) -> dict[str, str]:
    found: dict[str, str] = {}
    for header in opened.headers.values():
        provenance = read_provenance(header)
        if provenance is not None:
            found.update({key: text for key, text in provenance.extra.items() if key not in (_ROLES_KEY, ASKED_KEY)})
    return found


def _roles_read(opened: Checkpoint) -> list[str] | None:
    for header in opened.headers.values():
        provenance = read_provenance(header)
        if provenance is not None and _ROLES_KEY in provenance.extra:
            return json_texts(header.metadata, _ROLES_KEY)
    return None


def _is_extract(opened: Checkpoint) -> bool:
    """Whether someone chose these norms already; then all that was chosen is the default."""
    return any(read_provenance(header) is not None for header in opened.headers.values())


def _without_unread(selection: Selection, opened: Checkpoint) -> Selection:
    """Do not report as missing what a narrowed extract was never asked to hold."""
    read = _roles_read(opened)
    if read is None:
        return selection
    return Selection(selection.tensors, {key: gap for key, gap in selection.missing_layers.items() if key in read})


def _hidden_size(roles: Mapping[str, RoleVectors]) -> int:
    """Width of the residual stream, as the block norms of the main tower show it."""
    order = [role for role in ROLES if role in roles] or list(roles)
    stream = [role for role in order if role not in ("q_norm", "k_norm", "other")] or order
    widths = Counter(roles[role].hidden_size for role in stream for _ in roles[role].layers)
    return widths.most_common(1)[0][0]  # Zamba's shared attention reads the stream twice over

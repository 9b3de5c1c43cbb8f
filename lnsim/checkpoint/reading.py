"""This module reads the norms of an opened checkpoint: roles first, then bytes, then vectors or an extract of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lnsim.checkpoint.assemble import Selection, build_roles, select
from lnsim.checkpoint.families.offset import check_values, offset_texts
from lnsim.checkpoint.format.header import Header, TensorInfo
from lnsim.checkpoint.format.ranges import tensor_range
from lnsim.checkpoint.roles import ROLES, RoleMap, map_roles
from lnsim.checkpoint.source import Checkpoint, Progress, locate, no_progress
from lnsim.checkpoint.store import (
    Identity,
    Provenance,
    StoredTensor,
    json_texts,
    read_provenance,
    read_sources,
    write_extract,
)
from lnsim.checkpoint.vectors import LLAMA_NAMES, NormVectors, RoleVectors, TensorSource
from lnsim.errors import RoleError, StoreError
from lnsim.version import __version__

__all__ = [
    "ANSWERS_KEY",
    "ROLES_KEY",
    "Prepared",
    "Question",
    "Reading",
    "map_checkpoint",
    "read_norms",
    "tensor_infos",
]

ANSWERS_KEY = "answers"
"""Metadata key of an extract: the questions that it answers."""

ROLES_KEY = "roles_read"
"""Metadata key of an extract: the role keys it holds, so that a narrowed one does not look as if layers were lost."""

_TOWER_KEY = "main_tower"
"""Metadata key of an extract: the checkpoint's main tower, which a narrowed extract does not show any more."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a source; see ``extract`` for the meaning of each.

    Args:
        source: what to read.
        revision: branch, tag or commit, for a repo id.
        roles: those wanted; None for the default.
        everything: every other norm as well.
        model_type: read the checkpoint as this family.
        tower: take this one for the main tower.
    """

    source: str
    revision: str | None = None
    roles: tuple[str, ...] | None = None
    everything: bool = False
    model_type: str | None = None
    tower: str | None = None

    @classmethod
    def of(
        cls,
        source: str | Path,
        roles: str | Iterable[str] | None = None,
        revision: str | None = None,
        *,
        everything: bool = False,
        model_type: str | None = None,
    ) -> Question:
        """A question from the arguments of ``extract``."""
        wanted = (roles,) if isinstance(roles, str) else roles
        return cls(str(source), revision, None if wanted is None else tuple(wanted), everything, model_type)

    def record(self) -> str:
        """What an extract remembers, so that it answers the same question of the same commit, and no other.

        The version stands in it because another version may know more roles.
        """
        asked = {"roles": self.roles, "everything": self.everything, "model_type": self.model_type}
        tower = {} if self.tower is None else {"tower": self.tower}
        return json.dumps({"lnsim": __version__} | asked | tower)

    def answered_by(self, records: Collection[str], keys: Collection[str]) -> bool:
        """Whether an extract answers it that answers these questions already and holds all norms of these roles."""
        if self.record() in records:
            return True
        if self.roles is None or self.everything:
            return False
        whole = replace(self, roles=None).record()
        return whole in records and all(LLAMA_NAMES.get(role, role) in keys for role in self.roles)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An extract that is ready to be written; it holds on to nothing else of the checkpoint.

    Args:
        tensors: what it holds.
        provenance: where that came from.
    """

    tensors: tuple[StoredTensor, ...] = field(repr=False)
    provenance: Provenance

    def write(self, path: Path) -> Path:
        """Write it to a path, whose folder is made if it is not there, and return the path.

        Raises:
            StoreError: as ``write_extract``.
        """
        return write_extract(path, self.tensors, self.provenance)


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes of a checkpoint's norms and all that is known about them.

    Args:
        opened: the checkpoint.
        role_map: what each norm is.
        selection: the norms that were read.
        infos: dtype and shape of each tensor read.
        data: bytes of each tensor read, also of those read only to be kept.
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
            main_tower=self.role_map.main_tower,
            towers=tuple(dict.fromkeys(tensor.tower for tensor in self.role_map.tensors if tensor.layer >= 0)),
            offset=check_values(self.role_map.offset, roles.values(), where=opened.where),
        )

    @property
    def extract_path(self) -> Path | None:
        """The file that was read, where that is an extract already."""
        if self.opened.folder is None or not _is_extract(self.opened):
            return None
        return self.opened.folder / next(iter(self.opened.headers))

    def prepared(
        self, identity: Identity | None = None, answers: Sequence[str] = (), roles: Sequence[str] = ()
    ) -> Prepared:
        """The extract of these bytes, ready to be written.

        Args:
            identity: what the source is, where its provenance does not tell.
            answers: the questions that it answers.
            roles: role keys that it holds beside those that were asked for.
        """
        opened = self.opened
        tensors = [
            StoredTensor(key, origin.dtype, self.infos[key].shape, data, origin.shard, origin.start, origin.stop)
            for key, data in self.data.items()
            for origin in (self.sources[key],)
        ]
        extra = {key: text for key, text in self._provenance_texts().items() if key not in ("repo_id", "revision")}
        looked_for = dict.fromkeys((*self.selection.tensors, *self.selection.missing_layers, *roles))
        extra |= {ROLES_KEY: json.dumps(list(looked_for))}
        extra |= {_TOWER_KEY: self.role_map.main_tower} | offset_texts(self.role_map.offset)
        extra |= {} if identity is None else identity.texts()
        if answers:
            extra |= {ANSWERS_KEY: json.dumps(list(dict.fromkeys(answers)))}
        provenance = Provenance(
            source=opened.source,
            repo_id=opened.repo_id,
            commit=opened.commit,
            revision=opened.revision,
            model_type=self.role_map.model_type,
            config=_config_read(opened, self.role_map),
            extra=extra,
        )
        return Prepared(tuple(tensors), provenance)

    def _provenance_texts(self) -> dict[str, str]:
        known = {"repo_id": self.opened.repo_id, "revision": self.opened.revision, "part": self.opened.part or None}
        return {key: text for key, text in known.items() if text is not None} | _extract_texts(self.opened)


def map_checkpoint(opened: Checkpoint, model_type: str | None = None, tower: str | None = None) -> RoleMap:
    """The roles of every norm of an opened checkpoint; raises RoleError as ``map_roles`` does."""
    shapes: dict[str, tuple[int, ...]] = {name: info.shape for name, info in tensor_infos(opened).items()}
    shapes |= dict.fromkeys(opened.faults, (1,))  # a norm that cannot be read has its role all the same
    metadata = {key: text for header in opened.headers.values() for key, text in header.metadata.items()}
    return map_roles(
        shapes,
        opened.config,
        where=opened.where,
        model_type=model_type,
        main_tower=tower or _extract_texts(opened).get(_TOWER_KEY),
        metadata=metadata,
    )


def tensor_infos(opened: Checkpoint) -> dict[str, TensorInfo]:
    """Dtype and shape of every tensor of every opened shard, by name."""
    return {name: info for header in opened.headers.values() for name, info in header.tensors.items()}


def read_norms(
    opened: Checkpoint,
    question: Question | None = None,
    *,
    as_asked: bool = False,
    keep: Iterable[str] = (),
    progress: Progress = no_progress,
) -> Reading:
    """Read the norms of an opened checkpoint.

    Args:
        opened: headers only.
        question: what is asked of it; the default where None.
        as_asked: hold an extract to the question; by default all that it holds is the default.
        keep: further tensors to read, for the extract alone.
        progress: told how many reads are done of how many planned.

    Raises:
        RoleError: when the family is unknown, a wanted role is not there, or no norm has a role.
        StoreError: when a tensor to keep is not there any more.
    """
    asked = Question(opened.source) if question is None else question
    role_map = map_checkpoint(opened, asked.model_type, asked.tower)
    everything = asked.everything or (asked.roles is None and not as_asked and _is_extract(opened))
    selection = select(role_map, asked.roles, everything=everything, where=opened.where)
    if not selection.tensors:
        raise RoleError(
            f"Reading {opened.where}: none of its norms has a role in the main tower; --all reads the rest."
        )
    selection = _without_unread(selection, opened)
    recorded = _recorded_sources(opened)
    names = _with_kept(selection.names, keep, opened)
    opened.keep_only(names)
    data = opened.read(names, progress)
    sources = {name: recorded[name] for name in data} if recorded else _sources(opened, data)
    return Reading(opened, role_map, selection, tensor_infos(opened), data, sources)


def _with_kept(names: Sequence[str], keep: Iterable[str], opened: Checkpoint) -> tuple[str, ...]:
    """The tensors asked for, then those that an extract of them must not lose.

    Raises:
        StoreError: when the checkpoint has them no more.
    """
    there = tensor_infos(opened).keys() | opened.faults.keys()
    lost = [name for name in keep if name not in there]
    if lost:
        raise StoreError(
            f"Keeping the norms of {opened.where}: the extract that is there holds {lost[0]!r:.120} and {len(lost)} in "
            f"all that the checkpoint has no more. Move that extract away, or name another folder with --out."
        )
    return tuple(dict.fromkeys((*names, *keep)))


def _config_read(opened: Checkpoint, role_map: RoleMap) -> Mapping[str, Any]:
    """The config, with the family that read the checkpoint where someone named another than the config does."""
    named = {"model_type": role_map.model_type} if role_map.told or not opened.config else {}
    return {**(opened.config or {}), **named, **role_map.shown}


def _recorded_sources(opened: Checkpoint) -> dict[str, TensorSource]:
    """Where an extract's bytes first came from; empty for any other checkpoint, which is the source itself."""
    return {
        name: source
        for header in opened.headers.values()
        if read_provenance(header) is not None
        for name, source in read_sources(header).items()
    }


def _sources(opened: Checkpoint, data: Mapping[str, bytes]) -> dict[str, TensorSource]:
    shard_of = locate(opened.headers)
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
            found.update({key: text for key, text in provenance.extra.items() if key not in (ROLES_KEY, ANSWERS_KEY)})
    return found


def _roles_read(opened: Checkpoint) -> list[str] | None:
    for header in opened.headers.values():
        provenance = read_provenance(header)
        if provenance is not None and ROLES_KEY in provenance.extra:
            return json_texts(header.metadata, ROLES_KEY)
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

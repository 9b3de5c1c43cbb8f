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
from lnsim.checkpoint.families.table import ROLES
from lnsim.checkpoint.format.ranges import part_range
from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.roles import RoleMap, map_roles
from lnsim.checkpoint.source import Checkpoint, Progress, file_in, no_progress
from lnsim.checkpoint.store import ANSWERS_KEY, ROLES_KEY, Identity, Provenance, StoredTensor, json_texts, read_sources
from lnsim.checkpoint.token_texts import NO_TEXTS, Tokens, read_texts
from lnsim.checkpoint.vectors import LLAMA_NAMES, NormVectors, RoleVectors
from lnsim.checkpoint.weight_rows import RECORD_KEY, WeightRows, choose_rows, kept_pieces, piece_name, whole_rows
from lnsim.errors import RoleError, StoreError
from lnsim.paths import rows_file
from lnsim.version import __version__

_TOWER_KEY = "main_tower"  # in an extract's metadata; a narrowed one does not show it any more


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a source; see ``extract`` for the meaning of each. ``tower`` is taken for the main one."""

    source: str
    revision: str | None = None
    roles: tuple[str, ...] | None = None
    everything: bool = False
    model_type: str | None = None
    tower: str | None = None
    evidence: bool = False  # the matrix rows of ``weight_rows`` too

    @classmethod
    def of(
        cls, source: str | Path, roles: str | Iterable[str] | None = None, revision: str | None = None, **how: Any
    ) -> Question:
        """A question from the arguments of ``extract``."""
        wanted = (roles,) if isinstance(roles, str) else roles
        return cls(str(source), revision, None if wanted is None else tuple(wanted), **how)

    def record(self) -> str:
        """What an extract remembers, so that it answers the same question; another version may know more roles."""
        asked = {"roles": self.roles, "everything": self.everything, "model_type": self.model_type}
        tower = {} if self.tower is None else {"tower": self.tower}
        evidence = {"evidence": True} if self.evidence else {}
        return json.dumps({"lnsim": __version__} | asked | tower | evidence)

    def answered_by(self, answers: Collection[str], keys: Collection[str]) -> bool:
        """Whether an extract answers it that answers these questions already and holds all norms of these roles."""
        records = frozenset(answers)
        if not records.isdisjoint({self.record(), replace(self, evidence=True).record()}):
            return True
        if self.roles is None or self.everything:
            return False
        whole = {replace(self, roles=None, evidence=held).record() for held in {True, self.evidence}}
        return not records.isdisjoint(whole) and all(LLAMA_NAMES.get(role, role) in keys for role in self.roles)


@dataclass(frozen=True, slots=True)
class Reading:
    """Bytes of a checkpoint's norms and all that is known about them."""

    opened: Checkpoint
    role_map: RoleMap
    selection: Selection
    tensors: Mapping[str, StoredTensor] = field(repr=False)  # all that were read, also those only to be kept
    rows: WeightRows | None = field(default=None, repr=False)  # where asked for

    def vectors(self) -> NormVectors:
        """The norm vectors by role; raises RoleError when the tensors of a role do not fit together."""
        opened = self.opened
        roles, oddities = build_roles(self.selection, self.tensors, where=opened.where)
        return NormVectors(
            source=opened.source,
            commit=opened.commit,
            model_type=self.role_map.model_type,
            norm_type=self.role_map.norm_type,
            hidden_size=_hidden_size(roles),
            roles=roles,
            missing_layers=self.selection.missing_layers,
            notes=(*opened.notes, *self.role_map.notes, *oddities),
            tensors={name: tensor.source for name, tensor in self.tensors.items()},
            config=opened.config or {},
            provenance=self._provenance_texts(),
            requests=opened.traffic.requests,
            bytes_received=opened.traffic.bytes_received,
            main_tower=self.role_map.main_tower,
            towers=tuple(dict.fromkeys(tensor.tower for tensor in self.role_map.tensors if tensor.layer >= 0)),
            offset=check_values(self.role_map.offset, roles.values(), where=opened.where),
            rows=self.rows,
        )

    @property
    def extract_path(self) -> Path | None:
        """The file that was read, where that is an extract already."""
        if self.opened.folder is None or self.opened.record is None:
            return None
        return self.opened.folder / next(iter(self.opened.headers))

    def prepared(
        self, identity: Identity | None = None, answers: Sequence[str] = (), roles: Sequence[str] = ()
    ) -> tuple[tuple[StoredTensor, ...], Provenance]:
        """What ``write_extract`` needs to write these bytes; it holds on to nothing else of the checkpoint.

        ``identity`` is for what the provenance does not tell, ``answers`` and ``roles`` what an extract held before.
        """
        opened = self.opened
        looked_for = dict.fromkeys((*self.selection.tensors, *self.selection.missing_layers, *roles))
        extra = self._provenance_texts() | offset_texts(self.role_map.offset)
        extra |= {ROLES_KEY: json.dumps(list(looked_for)), _TOWER_KEY: self.role_map.main_tower}
        extra |= {} if identity is None else identity.texts()
        extra |= {} if self.rows is None else {RECORD_KEY: self.rows.record()}
        extra |= {ANSWERS_KEY: json.dumps(list(dict.fromkeys(answers)))} if answers else {}
        # The family that read the checkpoint, where someone named another than its config does.
        named = {"model_type": self.role_map.model_type} if self.role_map.told or not opened.config else {}
        provenance = Provenance(
            source=opened.source,
            repo_id=opened.repo_id,
            commit=opened.commit,
            revision=opened.revision,
            model_type=self.role_map.model_type,
            config={**(opened.config or {}), **named, **self.role_map.shown},
            extra=extra,
        )
        return tuple(self.tensors.values()), provenance

    def _provenance_texts(self) -> dict[str, str]:
        known = {"repo_id": self.opened.repo_id, "revision": self.opened.revision, "part": self.opened.part or None}
        return {key: text for key, text in known.items() if text is not None} | _extract_texts(self.opened)


def map_checkpoint(opened: Checkpoint, model_type: str | None = None, tower: str | None = None) -> RoleMap:
    """The roles of every norm of an opened checkpoint; raises RoleError as ``map_roles`` does."""
    shapes: dict[str, tuple[int, ...]] = {name: info.shape for name, info in opened.tensors.items()}
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


def read_norms(
    opened: Checkpoint,
    question: Question | None = None,
    *,
    as_asked: bool = False,
    keep: Iterable[str] = (),
    progress: Progress = no_progress,
) -> Reading:
    """Read the norms of an opened checkpoint, those that the question asks for and further ones to keep in an extract.

    ``as_asked`` holds an extract to the question; by default all that it holds is the default. Raises RoleError when
    the family is unknown, a wanted role is not there, or no norm has a role; StoreError when one to keep is gone.
    """
    asked, record = question or Question(opened.source), opened.record
    if asked.evidence and asked.roles is not None:
        raise RoleError(
            f"Reading {opened.where}: rows of matrices are tested with the norms before them, so all roles are read; "
            "leave --role out, or --evidence."
        )
    role_map = map_checkpoint(opened, asked.model_type, asked.tower)
    # Someone chose an extract's norms already: all that was chosen is the default.
    everything = asked.everything or (asked.roles is None and not as_asked and record is not None)
    selection = select(role_map, asked.roles, everything=everything, where=opened.where)
    if not selection.tensors:
        raise RoleError(
            f"Reading {opened.where}: none of its norms has a role in the main tower; --all reads the rest."
        )
    if record is not None and ROLES_KEY in record.extra:  # what a narrowed one was never asked to hold is not missing
        read = json_texts(record.extra, ROLES_KEY)
        gaps = {key: layers for key, layers in selection.missing_layers.items() if key in read}
        selection = replace(selection, missing_layers=gaps)
    names = _with_kept(selection.names, keep, opened)
    origins = _origins(opened, names)
    pieces, rows = _weight_rows(opened, role_map) if asked.evidence else ({}, None)
    opened.keep_only(names)
    infos, data = opened.tensors, opened.read(names, progress)
    tensors = {
        name: StoredTensor(name, infos[name].dtype, infos[name].shape, data[name], *origins[name]) for name in data
    }
    return Reading(opened, role_map, selection, tensors | pieces, rows)


def _weight_rows(opened: Checkpoint, role_map: RoleMap) -> tuple[dict[str, StoredTensor], WeightRows]:
    """The matrix rows of a checkpoint, read by range in one go; or those that an extract keeps, or a file beside it."""
    if opened.record is not None and RECORD_KEY not in opened.record.extra and opened.folder is not None:
        beside = rows_file(opened.folder / next(iter(opened.headers)))
        if beside.is_file():
            return _weight_rows(open_local(beside, where=opened.where), role_map)
    infos, shard_of = opened.tensors, opened.shard_of
    if opened.record is not None:
        pieces, missing = kept_pieces(opened.record.extra, opened.where)
        origins, data = _origins(opened, map(piece_name, pieces)), opened.read(map(piece_name, pieces))
    else:
        norms = [one.name for one in role_map.tensors if one.tower == role_map.main_tower and one.layer >= 0]
        tower, (tokens, untold) = role_map.main_tower, _tokens(opened)
        told = opened.config or {}, role_map.model_type, opened.where
        pieces, missing = choose_rows(infos, norms, *told, tokens, tower)
        missing += untold
        jobs, origins = [], {}
        for one in pieces:
            width = infos[one.tensor].n_bytes // one.n_rows
            header = opened.headers[shard_of[one.tensor]]
            span = part_range(header, one.tensor, one.start * width, one.stop * width)
            jobs.append((shard_of[one.tensor], span))
            origins[piece_name(one)] = shard_of[one.tensor], span.start, span.stop
        data = dict(zip(origins, opened.fetch(jobs, no_progress), strict=True))
    stored = {}
    for one in pieces:
        name = piece_name(one)
        info = infos[one.tensor] if opened.record is None else infos[name]
        shape = (one.stop - one.start, *info.shape[1:])
        stored[name] = StoredTensor(name, info.dtype, shape, data[name], *origins[name])
    return stored, whole_rows(pieces, stored, missing, opened.where)


def _tokens(opened: Checkpoint) -> tuple[Tokens, tuple[str, ...]]:
    """Where the tokens to read begin and what they are, by the first file of a tokenizer; or a sentence why not."""
    for name, read in opened.tokenizers.items():
        where = file_in(opened.where, name)
        try:
            return read_texts(read, name, where), ()
        except RoleError as error:
            return NO_TEXTS, (f"No texts of tokens of {opened.where}: {str(error).rstrip('.')}.",)
    return NO_TEXTS, ()


def _with_kept(names: Sequence[str], keep: Iterable[str], opened: Checkpoint) -> tuple[str, ...]:
    """The tensors asked for, then those that an extract must not lose; StoreError when the checkpoint lost them."""
    there = opened.tensors.keys() | opened.faults.keys()
    lost = [name for name in keep if name not in there]
    if lost:
        raise StoreError(
            f"Keeping the norms of {opened.where}: the extract that is there holds {lost[0]!r:.120} and {len(lost)} in "
            f"all that the checkpoint has no more. Move that extract away, or name another folder with --out."
        )
    return tuple(dict.fromkeys((*names, *keep)))


def _origins(opened: Checkpoint, names: Iterable[str]) -> dict[str, tuple[str, int, int]]:
    """Shard, first byte and the one after the last of each tensor; of an extract, where its bytes first came from."""
    if opened.record is not None:
        (header,) = opened.headers.values()
        return {name: (one.shard, one.start, one.stop) for name, one in read_sources(header).items()}
    found, shard_of = {}, opened.shard_of
    for name in shard_of.keys() & set(names):  # any other cannot be read, and reading it says why
        header = opened.headers[shard_of[name]]
        info, first = header.tensors[name], header.buffer_start
        found[name] = shard_of[name], first + info.start, first + info.stop
    return found


def _extract_texts(opened: Checkpoint) -> dict[str, str]:
    extra = {} if opened.record is None else opened.record.extra
    return {key: text for key, text in extra.items() if key not in (ROLES_KEY, ANSWERS_KEY, RECORD_KEY)}


def _hidden_size(roles: Mapping[str, RoleVectors]) -> int:
    """Width of the residual stream, as the block norms of the main tower show it."""
    order = [role for role in ROLES if role in roles] or list(roles)
    stream = [role for role in order if role not in ("q_norm", "k_norm", "other")] or order
    widths = Counter(roles[role].hidden_size for role in stream for _ in roles[role].layers)
    return widths.most_common(1)[0][0]  # Zamba's shared attention reads the stream twice over

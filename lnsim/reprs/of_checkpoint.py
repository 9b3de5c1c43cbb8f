"""This module shows checkpoints in a notebook as their headers describe them: files, tensors, dtypes, roles."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lnsim.reprs.pieces import card, count, layer_list, table

if TYPE_CHECKING:
    from lnsim.checkpoint.header import Header
    from lnsim.checkpoint.inspection import Inspection
    from lnsim.checkpoint.source import Checkpoint

__all__ = ["checkpoint", "header", "inspection"]

_MOST_ROWS = 12
_MOST_ROLES = 40


def header(found: Header) -> str:
    """HTML of one file's header: its first tensors, and its free text."""
    infos = list(found.tensors.values())
    dtypes = Counter(info.dtype for info in infos)
    facts = [
        count(len(infos), "tensor"),
        ", ".join(f"{n:,} {dtype}" for dtype, n in dtypes.most_common()),
        f"a file of {found.file_size:,} bytes",
        f"the byte buffer begins at {found.buffer_start:,}",
    ]
    rows = [(info.name, info.dtype, str(list(info.shape)), info.n_bytes) for info in infos[:_MOST_ROWS]]
    notes = [f"and {len(infos) - _MOST_ROWS:,} further tensors"] if len(infos) > _MOST_ROWS else []
    notes += [f"metadata {key}: {value}" for key, value in list(found.metadata.items())[:_MOST_ROWS]]
    if len(found.metadata) > _MOST_ROWS:
        notes.append(f"and {len(found.metadata) - _MOST_ROWS:,} further texts")
    return card("Header", "", facts, [table(("tensor", "dtype", "shape", "bytes"), rows)], notes)


def checkpoint(kind: str, found: Checkpoint) -> str:
    """HTML of an opened checkpoint: one row a file.

    Args:
        kind: the name of its class.
        found: what was opened.
    """
    headers = found.headers
    facts = [
        f"model type {(found.config or {}).get('model_type', 'not told')}",
        count(len(headers), "file"),
        count(sum(len(one.tensors) for one in headers.values()), "tensor"),
        f"{sum(one.file_size for one in headers.values()):,} bytes",
        f"commit {found.commit}" if found.commit else "no commit recorded",
        _traffic(found.traffic.requests, found.traffic.bytes_received),
    ]
    rows = [(name, len(one.tensors), one.file_size) for name, one in list(headers.items())[:_MOST_ROWS]]
    notes = [f"and {len(headers) - _MOST_ROWS:,} further files"] if len(headers) > _MOST_ROWS else []
    notes += [f"note: {note}" for note in found.notes]
    return card(kind, found.where, facts, [table(("file", "tensors", "bytes"), rows)], notes)


def inspection(found: Inspection) -> str:
    """HTML of what an inspection found: one row a role."""
    facts = [
        f"family {found.family or 'unknown'} (model type {found.model_type or 'not told'})",
        ", ".join(f"{tower} {count(n, 'block')}" for tower, n in found.n_layers.items()),
        found.norm_type or "",
        f"{count(found.n_tensors, 'tensor')} ("
        + ", ".join(f"{n:,} {dtype}" for dtype, n in found.dtypes.items())
        + ")",
        f"{count(len(found.shards), 'file')}, {sum(found.shards.values()):,} bytes",
        f"commit {found.commit}" if found.commit else "no commit recorded",
        _traffic(found.requests, found.bytes_received),
    ]
    rows = [
        (role, one.n_layers, one.hidden_size, one.dtype, one.norm_type, "yes" if one.bias else "no", one.example)
        for role, one in list(found.roles.items())[:_MOST_ROLES]
    ]
    columns = ("role", "norms", "channels", "stored as", "norm", "β", "first tensor")
    notes = [f"and {len(found.roles) - _MOST_ROLES:,} further roles"] if len(found.roles) > _MOST_ROLES else []
    notes += [f"missing: {role} in layers {layer_list(layers)}" for role, layers in found.missing_layers.items()]
    notes += [f"note: {note}" for note in found.notes]
    notes += [f"no roles: {found.problem}"] if found.problem else []
    return card("Inspection", found.where, facts, [table(columns, rows)] if rows else [], notes)


def _traffic(requests: int, received: int) -> str:
    return f"{count(requests, 'request')}, {received:,} bytes" if requests or received else ""

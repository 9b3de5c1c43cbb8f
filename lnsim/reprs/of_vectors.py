"""This module shows norm vectors in a notebook: one row a role, the norm of γ by layer as a curve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lnsim.reprs.pieces import card, count, layer_list, rounded, sparkline, table

if TYPE_CHECKING:
    from lnsim.checkpoint.vectors import NormVectors, RoleVectors

__all__ = ["norm_vectors", "role_vectors"]

_MOST_ROWS = 12
_MOST_ROLES = 40


def norm_vectors(found: NormVectors) -> str:
    """HTML of a checkpoint's vectors; names of every layer that is missing, and every note, stand below the table."""
    facts = [
        found.model_type,
        found.norm_type,
        count(found.hidden_size, "channel"),
        count(found.n_vectors, "vector"),
        f"commit {found.commit}" if found.commit else "no commit recorded",
        f"{count(found.requests, 'request')}, {found.bytes_received:,} bytes" if found.requests else "",
    ]
    header = ("role", "layers", "channels", "stored as", "β", "norm of γ, least", "most", "by layer")
    shown = list(found.roles.items())[:_MOST_ROLES]
    notes = [f"missing: {role} in layers {layer_list(layers)}" for role, layers in found.missing_layers.items()]
    notes += [f"note: {note}" for note in found.notes]
    if len(shown) < len(found.roles):
        notes.insert(0, f"and {len(found.roles) - len(shown):,} further roles")
    rows = [_role_row(role, vectors) for role, vectors in shown]
    return card("NormVectors", found.source, facts, [table(header, rows)], notes)


def role_vectors(found: RoleVectors) -> str:
    """HTML of one role: a row a layer, of many layers the first and the last."""
    facts = [
        count(len(found.layers), "layer"),
        count(found.hidden_size, "channel"),
        found.norm_type,
        f"stored as {found.stored.dtype}",
        "β" if found.bias is not None else "no β",
        "feeds attention and MLP at once" if found.shared else "",
    ]
    curve = table(("norm of γ by layer",), [(_curve(found),)])
    header = ("layer", "norm of γ", "mean", "standard deviation", "tensor")
    return card("RoleVectors", found.role, facts, [curve, table(header, _layer_rows(found))])


def _role_row(role: str, vectors: RoleVectors) -> tuple[object, ...]:
    norms = _norms(vectors)
    bias = "yes" if vectors.bias is not None else "no"
    ends = (rounded(float(norms.min())), rounded(float(norms.max()))) if norms.size else ("", "")
    return (role, len(vectors.layers), vectors.hidden_size, str(vectors.stored.dtype), bias, *ends, _curve(vectors))


def _curve(vectors: RoleVectors) -> object:
    return sparkline(_norms(vectors).tolist(), vectors.layers.tolist(), "norm of γ")


def _norms(vectors: RoleVectors) -> np.ndarray:
    """L2 norm of each layer's γ, shape ``(n_layers,)``."""
    return np.asarray(np.sqrt(np.square(vectors.scale, dtype=np.float64).sum(axis=1)))


def _layer_rows(found: RoleVectors) -> Iterator[tuple[object, ...]]:
    n, half = len(found.layers), _MOST_ROWS // 2
    norms = _norms(found)
    for row in range(n):
        if n > _MOST_ROWS and row == half:
            yield ("…", "", "", "", f"{n - 2 * half:,} more")
        if n <= _MOST_ROWS or row < half or row >= n - half:
            values = found.scale[row].astype(np.float64)
            numbers = (float(norms[row]), float(values.mean()), _spread(values))
            yield (str(found.layers[row]), *(rounded(number) for number in numbers), found.names[row])


def _spread(values: np.ndarray) -> float:
    """Standard deviation, undefined without a complaint where a value is infinite or none."""
    return float(values.std()) if np.isfinite(values).all() else float("nan")

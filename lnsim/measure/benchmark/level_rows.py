"""This module lays the norms of many models out level by level, so that all pairs are measured at once.

A *level* is one layer of one role: those models that have it, one row each. Models of different depth share the levels
of the shallower one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError

__all__ = ["Floats", "Level", "levels_of", "pair_means"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One layer of one role in many models.

    Args:
        role: which norm.
        layer: its layer number.
        members: positions of the models that have it, ascending.
        rows: their vectors, shape ``(n_members, hidden_size)``, float32.
        stored: the same as they lie in the files, one array a model, for the comparison of bits.
    """

    role: str
    layer: int
    members: npt.NDArray[np.intp]
    rows: npt.NDArray[np.float32]
    stored: tuple[npt.NDArray[Any], ...]


def levels_of(models: Mapping[str, NormVectors], roles: Sequence[str], *, bias: bool = False) -> list[Level]:
    """Every level of these models.

    Args:
        models: vectors by key, all of one hidden size; a model's position is its place here.
        roles: which norms; each model must have them.
        bias: take β instead of γ; a model that has none is no member of any level.

    Raises:
        ComparisonError: for different hidden sizes, or where no model has a level.
        RoleError: when a model lacks a role.
    """
    sizes = {vectors.hidden_size for vectors in models.values()}
    if len(sizes) != 1:
        raise ComparisonError(f"Measuring {len(models)} models against each other: their hidden sizes are {sizes}.")
    found: dict[tuple[str, int], list[tuple[int, npt.NDArray[Any], npt.NDArray[Any]]]] = {}
    for place, vectors in enumerate(models.values()):
        for role in roles:
            one = vectors[role]
            rows, stored = (one.bias, one.stored_bias) if bias else (one.scale, one.as_stored)
            if rows is None or stored is None:
                continue
            for layer, row, bits in zip(one.layers.tolist(), rows, stored, strict=True):
                found.setdefault((role, layer), []).append((place, row, bits))
    if not found:
        raise ComparisonError(f"Measuring {len(models)} models: none has a {'bias' if bias else 'weight'} to compare.")
    return [
        Level(
            role,
            layer,
            np.array([place for place, _, _ in members], dtype=np.intp),
            np.stack([row for _, row, _ in members]),
            tuple(bits for _, _, bits in members),
        )
        for (role, layer), members in found.items()
    ]


def pair_means(n_models: int, blocks: Sequence[tuple[npt.NDArray[np.intp], Floats]]) -> Floats:
    """The mean over levels of a value of each pair, shape ``(n_models, n_models)``.

    Args:
        n_models: how many models there are.
        blocks: for each level its members, and the value of every two of them.

    Returns:
        NaN for a pair without a common level, and for one that has an undefined value on any level.
    """
    total, count = np.zeros((n_models, n_models)), np.zeros((n_models, n_models))
    for members, values in blocks:
        total[np.ix_(members, members)] += values
        count[np.ix_(members, members)] += 1
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

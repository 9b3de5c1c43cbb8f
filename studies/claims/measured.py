"""This module takes quantities from vectors: the same questions as to the published numbers, answered by measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.metrics import pairwise
from lnsim.measure.rows import row_statistics
from studies.claims.bounds import Bound
from studies.claims.intervals import Interval, exactly
from studies.claims.rows import Cell, Vector

__all__ = ["MEASURED", "Measured"]

MEASURED = ("measured",)
"""The source of every bound of this module."""

_WHOLE, _FEW = ("cosine", "pearson"), 6
"""Measures of which the whole matrix of two models is made at once, after so many single ones."""

Rows = npt.NDArray[np.float32]
_Place = tuple[RoleVectors, int]


@dataclass(slots=True)
class Measured:
    """A lookup (see ``bounds.Lookup``) in norm vectors.

    Args:
        models: vectors by model key.
    """

    models: Mapping[str, NormVectors]
    _matrices: dict[tuple[str, str, str, str], npt.NDArray[np.float64]] = field(default_factory=dict)
    _asked: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    _places: dict[tuple[str, Vector], _Place | None] = field(default_factory=dict)
    _values: dict[tuple[str, Cell], list[Bound]] = field(default_factory=dict)

    def missing(self, cells: Sequence[Cell]) -> list[str]:
        """The models, or model and layer, that these cells need and that are not there; empty where all are."""
        sides = dict.fromkeys((cell.role, side) for cell in cells for side in (cell.a, cell.b) if side is not None)
        absent = [(role, side) for role, side in sides if self._place(role, side) is None]
        known = [side.model if side.model not in self.models else f"{side.model} {side.layer}" for _, side in absent]
        return list(dict.fromkeys(known))

    def bounds(self, metric: str, cell: Cell) -> list[Bound]:
        """The measured value; empty where a vector is not there or the measure is undefined."""
        if (metric, cell) not in self._values:
            sides = [self._place(cell.role, side) for side in (cell.a, cell.b) if side is not None]
            places = [place for place in sides if place is not None]
            complete = len(places) == len(sides)
            value = self._measure(metric, cell, places) if complete else None
            self._values[metric, cell] = [] if value is None else [Bound(value, "measured", MEASURED, True)]
        return self._values[metric, cell]

    def together(self, metric: str, statistic: str, cells: Sequence[Cell]) -> list[Bound]:
        """Nothing: every statistic is taken from its cells."""
        return []

    def groups(self, metric: str, statistic: str) -> list[tuple[frozenset[Cell], Bound]]:
        """Nothing, likewise."""
        return []

    def named(self, metric: str, statistic: str, members: str) -> list[Bound]:
        """Hidden size, number of layers and of further blocks of a model that is there."""
        if members not in self.models or statistic:
            return []
        vectors = self.models[members]
        known = {"hidden_size": vectors.hidden_size, "n_mtp": len(_layers(vectors, _FURTHER + _FIRST_ROLE))}
        known["n_layers"] = len(_layers(vectors, _FIRST_ROLE))
        return [Bound(exactly(known[metric]), "measured", MEASURED, True)] if metric in known else []

    def _place(self, role: str, vector: Vector) -> _Place | None:
        """Where a vector lies; a layer beyond the last one is looked for in the block that predicts further tokens."""
        if (role, vector) not in self._places:
            roles = self.models[vector.model].roles if vector.model in self.models else {}
            there = [roles[name] for name in (role, _FURTHER + role) if name in roles]
            found = [(one, one.row(vector.layer)) for one in there if vector.layer in one.layers]
            self._places[role, vector] = found[0] if found else None
        return self._places[role, vector]

    def _measure(self, metric: str, cell: Cell, places: Sequence[_Place]) -> Interval | None:
        return self._of_two(metric, cell, places) if cell.b is not None else self._of_one(metric, places[0])

    def _of_one(self, metric: str, place: _Place) -> Interval | None:
        one, row = place
        scale = one.scale[[row]]
        if metric == "gamma":
            return Interval(float(scale.min()), float(scale.max()))
        found = row_statistics(scale)
        values = {"norm": found.norm, "mean": found.mean, "std": found.std, "share": found.share}
        return exactly(float(values[metric][0])) if metric in values else None

    def _of_two(self, metric: str, cell: Cell, places: Sequence[_Place]) -> Interval | None:
        (a, i), (b, j) = places
        if a.hidden_size != b.hidden_size:
            return None
        if metric in _WHOLE and self._is_worth_all(metric, cell):
            value = float(self._matrix(metric, cell, a, b)[i, j])
        elif metric == "changed_percent":
            value = 100 * float(pairwise(a.stored[[i]], b.stored[[j]], "changed_ratio")[0, 0])
        elif metric in _OTHERS:
            value = _OTHERS[metric](a.scale[[i]], b.scale[[j]])
        else:
            value = float(pairwise(a.scale[[i]], b.scale[[j]], metric)[0, 0])
        return None if np.isnan(value) else exactly(value)

    def _is_worth_all(self, metric: str, cell: Cell) -> bool:
        """Whether so many layers of two models are asked for that the matrix of all is cheaper than one by one."""
        pair = (metric, cell.role, cell.a.model, cell.b.model if cell.b else "")
        self._asked[pair] = self._asked.get(pair, 0) + 1
        return self._asked[pair] > _FEW

    def _matrix(self, metric: str, cell: Cell, a: RoleVectors, b: RoleVectors) -> npt.NDArray[np.float64]:
        key = (metric, f"{cell.a.model}/{a.role}", f"{cell.b.model if cell.b else ''}/{b.role}", cell.role)
        if key not in self._matrices:
            self._matrices[key] = pairwise(a.scale, b.scale, metric)
        return self._matrices[key]


_FURTHER, _FIRST_ROLE = "mtp/", "pre_attention"


def _layers(vectors: NormVectors, role: str) -> Sequence[int]:
    return [int(layer) for layer in vectors.roles[role].layers] if role in vectors.roles else []


def _p99_diff(a: Rows, b: Rows) -> float:
    tails = [float(np.quantile(np.abs(side.astype(np.float64)), 0.99)) for side in (a, b)]
    return abs(tails[0] - tails[1])


def _cv_ratio(a: Rows, b: Rows) -> float:
    found = [row_statistics(side) for side in (a, b)]
    cvs = [float(one.std[0] / abs(one.mean[0])) if one.mean[0] else np.nan for one in found]
    return max(cvs[0] / cvs[1], cvs[1] / cvs[0])


_OTHERS = {"p99_diff": _p99_diff, "cv_ratio": _cv_ratio}

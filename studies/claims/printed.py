"""This module is the index of what was printed: which numbers are known of which vectors, and from where."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from studies.claims.bounds import Bound
from studies.claims.cells import Cell, Vector, cells_of
from studies.claims.intervals import Interval
from studies.claims.rows import Claim, Fact

__all__ = ["PAIRWISE", "SINGLE", "LayerTable", "Printed", "key_of", "read_layer_table"]

PAIRWISE = ("cosine", "pearson", "l2", "rel_l2", "mean_abs_diff", "p99_diff", "changed_percent", "cv_ratio")
"""Measures of two vectors."""

SINGLE = ("norm", "mean", "std", "share", "gamma")
"""Measures of one vector."""

_DIRECTED = ("rel_l2",)
_JOINS = (" - ", " > ", " & ", "sampled ")

LayerTable = Mapping[tuple[str, str, Vector], Bound]
"""By measure (``mean``, ``std``), role and vector, what one stored output gives for every layer."""

Key = tuple[str, str, frozenset[tuple[Vector, ...]], frozenset[str]]


def read_layer_table(path: Path, source: str) -> tuple[LayerTable, list[Fact]]:
    """Means and standard deviations by layer, and the cosines and r of the same rows as facts.

    Args:
        path: the file, with columns ``role``, ``a``, ``b``, ``layer``, ``cosine``, ``pearson``, ``mean_a``, ...
        source: where its numbers were published.
    """
    table: dict[tuple[str, str, Vector], Bound] = {}
    facts: list[Fact] = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for side, measure in (("a", "mean"), ("a", "std"), ("b", "mean"), ("b", "std")):
                known = _to_its_digits(row[f"{measure}_{side}"])
                vector = Vector(row[side], int(row["layer"]))
                table[measure, row["role"], vector] = Bound(known, "printed", (source,), True)
            members = f"{row['a']}@{row['layer']}:{row['b']}@{row['layer']}"
            for measure in ("cosine", "pearson"):
                facts.append(Fact(source, measure, "", (row["role"],), members, _to_its_digits(row[measure])))
    return table, facts


def key_of(metric: str, statistic: str, cells: Iterable[Cell]) -> Key:
    """What two statements must share to be about the same number: direction counts where the measure has one."""
    places, roles = _places(tuple(cells), metric in _DIRECTED)
    return metric, "" if statistic == "each" else statistic, places, roles


@lru_cache(maxsize=1024)
def _places(cells: tuple[Cell, ...], directed: bool) -> tuple[frozenset[tuple[Vector, ...]], frozenset[str]]:
    return frozenset(_place(cell, directed) for cell in cells), frozenset(cell.role for cell in cells)


@dataclass(slots=True)
class Printed:
    """Printed numbers by what they are of.

    Args:
        facts: numbers beside the five documents.
        claims: those of the documents, which may be wrong themselves.
        table: the layer table.
        n_layers: decoder layers by model key.
    """

    facts: Sequence[Fact]
    claims: Sequence[Claim]
    table: LayerTable
    n_layers: Mapping[str, int]
    _by_key: dict[Key, list[Bound]] = field(default_factory=lambda: defaultdict(list))
    _groups: dict[tuple[str, str], list[tuple[frozenset[Cell], Bound]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _beside: dict[tuple[str, str, Vector], list[tuple[Cell, Bound]]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for fact in self.facts:
            if _is_of_vectors(fact.metric, fact.members):
                bound = Bound(fact.known, "printed", (fact.source,), True)
                self._index(fact.metric, fact.statistic, cells_of(fact.members, fact.roles, self.n_layers), bound)
        for claim in self.claims:
            if _is_of_vectors(claim.metric, claim.members) and claim.meaning in ("equals", "about"):
                bound = Bound(claim.allowed, "printed", (claim.name,), False)
                statistic = claim.statistic.split(" or ")[0]
                self._index(claim.metric, statistic, cells_of(claim.members, claim.roles, self.n_layers), bound)

    def of(self, metric: str, cell: Cell) -> list[Bound]:
        """What was printed of one cell."""
        found = self.table.get((metric, cell.role, cell.a)) if cell.b is None else None
        return [*self._by_key.get(key_of(metric, "", [cell]), []), *([found] if found else [])]

    def together(self, metric: str, statistic: str, cells: Sequence[Cell]) -> list[Bound]:
        """What was printed of this statistic over exactly these cells."""
        return self._by_key.get(key_of(metric, statistic, cells), [])

    def groups(self, metric: str, statistic: str) -> list[tuple[frozenset[Cell], Bound]]:
        """Every set of cells of which this statistic was printed."""
        return self._groups.get((metric, statistic), [])

    def beside(self, metric: str, cell: Cell) -> list[tuple[Vector, Bound]]:
        """The other vectors with which this one was compared, and what was printed of each pair."""
        found = self._beside.get((metric, cell.role, cell.a), [])
        return [(pair.a if pair.b == cell.a or pair.b is None else pair.b, bound) for pair, bound in found]

    def _index(self, metric: str, statistic: str, cells: Sequence[Cell], bound: Bound) -> None:
        if len(cells) > 1 and statistic in ("", "each"):
            return  # a statement on each of several is no number of any
        self._by_key[key_of(metric, statistic, cells)].append(bound)
        if len(cells) > 1:
            self._groups[metric, statistic].append((frozenset(cells), bound))
        elif cells[0].b is not None:
            for vector in (cells[0].a, cells[0].b):
                self._beside[metric, cells[0].role, vector].append((cells[0], bound))


def _is_of_vectors(metric: str, members: str) -> bool:
    return metric in (*PAIRWISE, *SINGLE) and "@" in members and not any(sign in members for sign in _JOINS)


def _place(cell: Cell, directed: bool) -> tuple[Vector, ...]:
    sides = (cell.a,) if cell.b is None else (cell.a, cell.b)
    return sides if directed else tuple(sorted(sides))


def _to_its_digits(text: str) -> Interval:
    """The interval of a number that is printed to six significant digits."""
    value = float(text)
    half = 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) - 5) if value else 0.5e-6
    return Interval(value - half, value + half)

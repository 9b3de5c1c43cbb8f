"""This module says what was published: each number as it was printed, and what follows in closed form."""

from __future__ import annotations

import csv
import math
import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from lnsim.paths import project_root
from studies.claims import intervals
from studies.claims.bounds import Bound, best, joined
from studies.claims.intervals import ANY_COSINE, Interval, corners
from studies.claims.rows import Cell, Claim, Fact, Vector, cells_of, read_claims, read_facts

__all__ = [
    "LAYER_TABLE",
    "PAIRWISE",
    "SINGLE",
    "Corpus",
    "LayerTable",
    "Printed",
    "Published",
    "claims_dir",
    "key_of",
    "read_corpus",
    "read_layer_table",
]

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


@dataclass(slots=True)
class Published:
    """A lookup (see ``bounds.Lookup``) in what was printed.

    Args:
        printed: the index.
    """

    printed: Printed
    _known: dict[tuple[str, Cell], list[Bound]] = field(default_factory=dict)

    def bounds(self, metric: str, cell: Cell) -> list[Bound]:
        """Everything that is known of a measure of one cell; empty where nothing is."""
        if (metric, cell) not in self._known:
            self._known[metric, cell] = [*self.printed.of(metric, cell), *self._derived(metric, cell)]
        return self._known[metric, cell]

    def together(self, metric: str, statistic: str, cells: Sequence[Cell]) -> list[Bound]:
        """What was printed of this statistic over exactly these cells."""
        return self.printed.together(metric, statistic, cells)

    def groups(self, metric: str, statistic: str) -> list[tuple[frozenset[Cell], Bound]]:
        """Every set of cells of which this statistic was printed."""
        return self.printed.groups(metric, statistic)

    def named(self, metric: str, statistic: str, members: str) -> list[Bound]:
        """What is known, outside the documents, of something that is no set of vectors: a model, a script, a sample."""
        facts = [fact for fact in self.printed.facts if (fact.metric, fact.statistic) == (metric, statistic)]
        return [Bound(fact.known, "printed", (fact.source,), True) for fact in facts if fact.members == members]

    def _derived(self, metric: str, cell: Cell) -> list[Bound]:
        if cell.b is None:
            return self._of_one(metric, cell)
        if metric == "cosine":
            return self._cosine(cell)
        if metric == "pearson":
            return self._pearson(cell)
        if metric in ("rel_l2", "l2"):
            return self._distance(metric, cell)
        return self._ratio_of_cvs(cell) if metric == "cv_ratio" else []

    def _of_one(self, metric: str, cell: Cell) -> list[Bound]:
        mean, std = (self.printed.table.get((name, cell.role, cell.a)) for name in ("mean", "std"))
        if mean and std:
            if metric == "share":
                return [joined(intervals.share(mean.known, std.known), "closed form from mean and std", [mean, std])]
            length = self._length(cell.role, cell.a)
            return [length] if length and metric == "norm" else []
        if metric not in ("norm", "mean"):
            return []
        lengths = self._lengths_from_l2(cell)
        return lengths if metric == "norm" else [_mean_below_rms(one) for one in lengths]

    def _lengths_from_l2(self, cell: Cell) -> list[Bound]:
        found = []
        for other, l2 in self.printed.beside("l2", cell):
            norm = self._length(cell.role, other)
            cosine = best(self.printed.of("cosine", Cell(cell.role, cell.a, other)))
            if norm and cosine:
                known = intervals.length_from_l2(norm.known, l2.known, cosine.known)
                found.append(joined(known, "closed form from L2, cosine and the other length", [norm, l2, cosine]))
        return found

    def _shares(self, cell: Cell) -> list[Bound]:
        sides = (cell.a, cell.b or cell.a)
        found = [best(self.bounds("share", Cell(cell.role, side))) for side in sides]
        return [share for share in found if share]

    def _cosine(self, cell: Cell) -> list[Bound]:
        """Two shares and any r, or r as it was printed; with that, one of the shares may be unknown."""
        shares, r = self._shares(cell), best(self.printed.of("pearson", cell))
        found = []
        if len(shares) == 2:
            known = intervals.cosine(shares[0].known, shares[1].known)
            found.append(joined(known, "closed form from two shares and any r", shares))
        if shares and r:
            first, second = [share.known for share in shares] + [ANY_COSINE] * (2 - len(shares))
            how = "closed form from r and " + ("two shares" if len(shares) == 2 else "one share and any other")
            found.append(joined(intervals.cosine(first, second, r.known), how, [*shares, r]))
        return found

    def _pearson(self, cell: Cell) -> list[Bound]:
        shares, cosine = self._shares(cell), best(self.printed.of("cosine", cell))
        if len(shares) < 2 or cosine is None or not cosine.firm:
            return []
        known = intervals.pearson(cosine.known, shares[0].known, shares[1].known)
        return [joined(known, "closed form from the cosine and two shares", [*shares, cosine])]

    def _distance(self, metric: str, cell: Cell) -> list[Bound]:
        norms = [self._length(cell.role, side) for side in (cell.a, cell.b or cell.a)]
        cosine, known = best(self.printed.of("cosine", cell)), [norm for norm in norms if norm]
        if cosine is None or len(known) < 2:
            return []
        found = intervals.relative_l2(known[0].known, known[1].known, cosine.known)
        if metric == "l2":
            found = corners(operator.mul, found, known[0].known)
        return [joined(found, "closed form from two lengths and the cosine", [*known, cosine])]

    def _length(self, role: str, vector: Vector) -> Bound | None:
        """From the layer table alone: a length that was solved from an L2 distance must not give it back."""
        sides = [self.printed.table.get((name, role, vector)) for name in ("mean", "std")]
        known = [side for side in sides if side]
        if len(known) < len(sides):
            return None
        return joined(intervals.length(known[0].known, known[1].known), "closed form from mean and std", known)

    def _ratio_of_cvs(self, cell: Cell) -> list[Bound]:
        sides = [(name, cell.role, side) for side in (cell.a, cell.b or cell.a) for name in ("mean", "std")]
        known = [self.printed.table[side] for side in sides if side in self.printed.table]
        if len(known) < len(sides):
            return []
        ratio = intervals.ratio_of_cvs(*(one.known for one in known))
        return [joined(ratio, "closed form from two means and stds", known)]


def _mean_below_rms(length: Bound) -> Bound:
    """A mean is never larger than the root mean square."""
    most = length.known.high / math.sqrt(intervals.HIDDEN_SIZE)
    return joined(Interval(-most, most), f"at most the rms, {length.how}", [length])


LAYER_TABLE = "ANLGBOY/solar-vs-glm-sanity-check, out_sanity/layernorm_sanity.csv"
"""Where the layer table was published; the data file keeps six significant digits of it."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The published numbers, and what follows from the others about each.

    Args:
        claims: the rows of the five documents, in the order of the file.
        published: a lookup in all printed numbers.
        n_layers: decoder layers by model key, from the configs.
    """

    claims: tuple[Claim, ...]
    published: Published
    n_layers: Mapping[str, int]

    def without(self, names: Collection[str]) -> Published:
        """The lookup that leaves out some claims, as evidence against the others."""
        printed = self.published.printed
        kept = [claim for claim in self.claims if claim.name not in names]
        return Published(Printed(printed.facts, kept, printed.table, printed.n_layers))


def claims_dir(study: str) -> Path:
    """Where the published numbers on a study's models lie, whether there are any or not."""
    return project_root() / "data" / "claims" / study


def read_corpus(folder: Path) -> Corpus:
    """Read ``published.csv``, ``peers.csv`` and ``norms_by_layer.csv``.

    Raises:
        StudyError: when a file is missing or a row cannot be.
    """
    claims, facts = read_claims(folder / "published.csv"), read_facts(folder / "peers.csv")
    table, from_table = read_layer_table(folder / "norms_by_layer.csv", LAYER_TABLE)
    depths = {fact.members: int(fact.known.low) for fact in facts if fact.metric == "n_layers"}
    printed = Printed((*facts, *from_table), claims, table, depths)
    return Corpus(claims, Published(printed), depths)

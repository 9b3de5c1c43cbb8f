"""This module bounds a quantity by other published numbers: printed outright, or following in closed form."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field

from studies.claims import closed_form
from studies.claims.bounds import Bound, best, joined
from studies.claims.cells import Cell, Vector
from studies.claims.intervals import ANY_COSINE, Interval, corners
from studies.claims.printed import Printed

__all__ = ["Published"]


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
                return [joined(closed_form.share(mean.known, std.known), "closed form from mean and std", [mean, std])]
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
                known = closed_form.length_from_l2(norm.known, l2.known, cosine.known)
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
            known = closed_form.cosine(shares[0].known, shares[1].known)
            found.append(joined(known, "closed form from two shares and any r", shares))
        if shares and r:
            first, second = [share.known for share in shares] + [ANY_COSINE] * (2 - len(shares))
            how = "closed form from r and " + ("two shares" if len(shares) == 2 else "one share and any other")
            found.append(joined(closed_form.cosine(first, second, r.known), how, [*shares, r]))
        return found

    def _pearson(self, cell: Cell) -> list[Bound]:
        shares, cosine = self._shares(cell), best(self.printed.of("cosine", cell))
        if len(shares) < 2 or cosine is None or not cosine.firm:
            return []
        known = closed_form.pearson(cosine.known, shares[0].known, shares[1].known)
        return [joined(known, "closed form from the cosine and two shares", [*shares, cosine])]

    def _distance(self, metric: str, cell: Cell) -> list[Bound]:
        norms = [self._length(cell.role, side) for side in (cell.a, cell.b or cell.a)]
        cosine, known = best(self.printed.of("cosine", cell)), [norm for norm in norms if norm]
        if cosine is None or len(known) < 2:
            return []
        found = closed_form.relative_l2(known[0].known, known[1].known, cosine.known)
        if metric == "l2":
            found = corners(operator.mul, found, known[0].known)
        return [joined(found, "closed form from two lengths and the cosine", [*known, cosine])]

    def _length(self, role: str, vector: Vector) -> Bound | None:
        """From the layer table alone: a length that was solved from an L2 distance must not give it back."""
        sides = [self.printed.table.get((name, role, vector)) for name in ("mean", "std")]
        known = [side for side in sides if side]
        if len(known) < len(sides):
            return None
        return joined(closed_form.length(known[0].known, known[1].known), "closed form from mean and std", known)

    def _ratio_of_cvs(self, cell: Cell) -> list[Bound]:
        sides = [(name, cell.role, side) for side in (cell.a, cell.b or cell.a) for name in ("mean", "std")]
        known = [self.printed.table[side] for side in sides if side in self.printed.table]
        if len(known) < len(sides):
            return []
        ratio = closed_form.ratio_of_cvs(*(one.known for one in known))
        return [joined(ratio, "closed form from two means and stds", known)]


def _mean_below_rms(length: Bound) -> Bound:
    """A mean is never larger than the root mean square."""
    most = length.known.high / math.sqrt(closed_form.HIDDEN_SIZE)
    return joined(Interval(-most, most), f"at most the rms, {length.how}", [length])

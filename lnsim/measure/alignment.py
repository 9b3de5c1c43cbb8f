"""This module asks which layers of two models belong together: same number, shifted, pruned, repeated, or none.

Everything here takes one matrix of likeness, layers of a down and those of b across; r is meant, and any measure that
grows with likeness will do. A best match is a selection: among many cells one is always the largest, so it is no
evidence by itself. The nulls of notebook 06 say what the order of the layers is worth, and what the channels are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lnsim.errors import ComparisonError
from lnsim.measure.comparable import REFUSED
from lnsim.measure.nulls import Floats

if TYPE_CHECKING:
    import pandas as pd

PARTNER_FROM = 0.5  # a layer has a partner where its largest r is at least this; something is always the largest
_AS_GOOD = 0.01
"""A layer of equal number is as good a partner as the best one where its r is less by no more than this: after a depth
expansion a layer has two partners, and which of them is the better one is left to noise."""

_TIE = 1e-12  # values that differ by less are equal: sums in another order may differ in the last bits

Places = npt.NDArray[np.intp]  # row or column numbers


@dataclass(frozen=True, slots=True, eq=False)
class LayerMatrix:
    """Likeness of every layer of a with every layer of b; ComparisonError where none or one is undefined."""

    values: Floats  # shape ``(n_layers_a, n_layers_b)``, float64, defined in every cell
    layers_a: npt.NDArray[np.int64]  # layer numbers of the rows, shape ``(n_layers_a,)``, each once
    layers_b: npt.NDArray[np.int64]  # layer numbers of the columns, shape ``(n_layers_b,)``, each once
    names: str = "'a' and 'b'"  # what messages call the two models

    def __post_init__(self) -> None:
        if self.values.shape != (len(self.layers_a), len(self.layers_b)):
            told = {"n_a": len(self.layers_a), "n_b": len(self.layers_b), "matrix": self}
            raise ComparisonError(REFUSED["layers_named"].format(**told))
        if not self.values.size or not np.isfinite(self.values).all():
            n_undefined = np.count_nonzero(~np.isfinite(self.values))
            raise ComparisonError(REFUSED["layers_undefined"].format(matrix=self, n_undefined=n_undefined))

    @classmethod
    def of(cls, matrix: pd.DataFrame) -> LayerMatrix:
        """That of a frame whose index holds the layer numbers of a and whose columns hold those of b."""
        names = f"'{matrix.index.name or 'a'}' and '{matrix.columns.name or 'b'}'"
        return cls(matrix.to_numpy(dtype=np.float64), matrix.index.to_numpy(), matrix.columns.to_numpy(), names)

    def partners(self, offset: int) -> tuple[Places, Places]:
        """Row and column of every cell at an offset (layer of b minus layer of a); ComparisonError where none is."""
        rows, columns = np.nonzero(self.layers_b == self.layers_a[:, np.newaxis] + offset)
        if not rows.size:
            raise ComparisonError(f"Matching layers of {self.names} at offset {offset}: no layer has a partner.")
        return rows, columns

    def offsets(self, min_share: float = 0.5) -> dict[int, Places]:
        """The flat places of the cells of each offset (layer of b minus layer of a), ascending.

        One counts where its cells are at least `min_share` of the shorter stack's layers; few reach an extreme mean by
        chance alone.
        """
        found = (self.layers_b - self.layers_a[:, np.newaxis]).ravel()
        places = {int(offset): np.flatnonzero(found == offset) for offset in np.unique(found)}
        return {offset: one for offset, one in places.items() if len(one) >= min_share * min(self.values.shape)}

    def best_offset(self) -> int:
        """The offset with the largest mean of its cells; the smallest shift where several are equal.

        It is the largest of many means, and its value is therefore biased upwards. A stack that was expanded or pruned
        in its middle has no single offset.
        """
        means = {offset: self.values.ravel()[places].mean() for offset, places in self.offsets().items()}
        return min((offset for offset, mean in means.items() if mean >= max(means.values()) - _TIE), key=abs)

    def alignment_rate(self) -> float:
        """Share of layers of a whose largest value in their row is the layer of b of the same number; ties count.

        Only layers whose partner exists count. Chance gives about one over the number of b's layers; layers of one
        model resemble each other, so a rate between that and 1 may come from neighbours.
        """
        return float(rates(self.values, *self.partners(0)))

    def margin(self) -> float:
        """Mean over layers of a of the matched value minus the largest other one in its row; one layer has no other.

        The largest of many is subtracted, so strangers have a negative margin.
        """
        rows, columns = self.partners(0)
        if self.values.shape[1] < 2:
            raise ComparisonError(f"Taking the margin of {self.names}: b has one layer, expected at least 2.")
        return float(margins(self.values, rows, columns))

    def partner_counts(self) -> dict[str, int]:
        """Where the layers of the shorter stack have their best partner; of two equally long ones, those of b.

        ``layers``, and how many of them have it at the ``same`` number, ``elsewhere``, or are ``without`` one: no r
        reaches PARTNER_FROM. A partner of the same number counts as the best where its r is less by 0.01 at most.
        """
        values, equal = self.values, self.layers_a[:, np.newaxis] == self.layers_b
        if values.shape[1] > values.shape[0]:
            values, equal = values.T, equal.T
        largest = values.max(axis=0)
        has, same = largest >= PARTNER_FROM, (equal & (values >= largest - _AS_GOOD)).any(axis=0)
        counts = {"same": has & same, "elsewhere": has & ~same, "without": ~has}
        return {"layers": len(largest)} | {name: int(which.sum()) for name, which in counts.items()}


def rates(values: Floats, rows: Places, columns: Places) -> Floats:
    """Share of these cells that hold the largest value of their row; for one matrix, or many along the first axis."""
    largest = values.max(axis=-1)[..., rows] - _TIE
    return np.asarray((values[..., rows, columns] >= largest).mean(axis=-1))


def margins(values: Floats, rows: Places, columns: Places) -> Floats:
    """Mean, over these cells, of each less the largest other value of its row; likewise for one matrix or many."""
    ordered = np.partition(values, -2, axis=-1)
    largest, second = ordered[..., rows, -1], ordered[..., rows, -2]
    cells = values[..., rows, columns]
    return np.asarray((cells - np.where(cells == largest, second, largest)).mean(axis=-1))

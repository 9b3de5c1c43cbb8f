"""This module computes every layer of every model against every layer of every other, for one role, in one go.

The vectors are prepared and multiplied once, and not once a pair of models. Models of different hidden sizes share no
matrix: nothing between them is defined.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError
from lnsim.measure.cosine_split import CosineTerms, cosine_terms
from lnsim.measure.model_pairs import having_role

__all__ = ["LayerCells"]


@dataclass(frozen=True, slots=True, eq=False)
class LayerCells:
    """Cosine, mean term and r of all pairs of layers of all models of one role.

    Args:
        layers: by model key, its layer numbers; models without the role are not there.
        place: by model key, its rows in the matrix that it shares with the models of its hidden size.
        terms: by model key, that matrix.
    """

    layers: Mapping[str, npt.NDArray[np.int64]]
    place: Mapping[str, slice]
    terms: Mapping[str, CosineTerms]

    def __post_init__(self) -> None:
        if not set(self.layers) == set(self.place) == set(self.terms):
            raise ComparisonError("Gathering cells of layers: layers, places and terms must be of the same models.")
        for name in ("layers", "place", "terms"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @classmethod
    def of(cls, models: Mapping[str, NormVectors], role: str) -> LayerCells:
        """The cells of these models for one role.

        Args:
            models: vectors by key; those that lack the role are left out.
            role: the role compared.
        """
        have = having_role(models, role)
        place: dict[str, slice] = {}
        terms: dict[str, CosineTerms] = {}
        for size in dict.fromkeys(one.hidden_size for one in have.values()):
            keys = [key for key, one in have.items() if one.hidden_size == size]
            rows = np.concatenate([have[key].scale for key in keys])
            start = 0
            for key in keys:
                place[key] = slice(start, start + len(have[key].layers))
                start = place[key].stop
            terms |= dict.fromkeys(keys, cosine_terms(rows, rows))
        return cls({key: one.layers for key, one in have.items()}, place, terms)

    def values(self, name: str, a: str, b: str) -> npt.NDArray[np.float64]:
        """``cosine``, ``mean_term``, ``pattern_term`` or ``r`` of each layer of `a` with each of `b`.

        Returns:
            Shape ``(n_layers_a, n_layers_b)``, float64.

        Raises:
            ComparisonError: when a model has no such role, or the two differ in hidden size.
        """
        if lacking := [key for key in (a, b) if key not in self.place]:
            raise ComparisonError(f"Comparing '{a}' with '{b}': '{lacking[0]}' has no norms of this role.")
        if self.terms[a] is not self.terms[b]:
            raise ComparisonError(f"Comparing '{a}' with '{b}': their hidden sizes differ, so no channels are common.")
        whole: npt.NDArray[np.float64] = getattr(self.terms[a], name)
        return whole[self.place[a], self.place[b]]

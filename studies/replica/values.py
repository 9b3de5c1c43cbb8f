"""This module holds what a calibration file says: which synthetic vectors to make, and with which statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lnsim.errors import StudyError

__all__ = ["Calibration", "Curve", "Place", "Point", "Projection", "Recipe", "Related", "Single", "Update"]

Place = tuple[str, int]
"""A model's key and a layer number."""


@dataclass(frozen=True, slots=True)
class Point:
    """The statistics of one layer's vector.

    Args:
        layer: zero-based block number.
        norm: length of the vector.
        share: mean / rms, at most 1 either way.
        pinned: True where these statistics and the correlations must come out exactly.
        apart: True where the layer's pattern does not follow from its neighbours'.
    """

    layer: int
    norm: float
    share: float
    pinned: bool = False
    apart: bool = False

    def __post_init__(self) -> None:
        if self.layer < 0 or not self.norm > 0 or not abs(self.share) <= 1:
            raise StudyError(
                f"Point of layer {self.layer}: expected a layer from 0, a norm above 0 and a share from -1 to 1, found "
                f"norm {self.norm} and share {self.share}."
            )


@dataclass(frozen=True, slots=True)
class Curve:
    """The statistics of one role's vectors over depth.

    Args:
        name: tensor name with ``{layer}`` in it.
        points: ascending by layer, at least one.
        steps: pairs (layer, r), ascending: below this layer, r is the correlation of a pattern with the next layer's.
    """

    name: str
    points: tuple[Point, ...]
    steps: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        layers = [point.layer for point in self.points]
        if not layers or layers != sorted(set(layers)) or "{layer}" not in self.name:
            raise StudyError(
                f"Curve '{self.name}': expected '{{layer}}' in the name and points of ascending layers, found {layers}."
            )
        ends = [layer for layer, _ in self.steps]
        if not ends or ends != sorted(set(ends)) or not all(0 < r < 1 for _, r in self.steps):
            raise StudyError(f"Curve '{self.name}': expected steps of ascending layers with r between 0 and 1.")

    def at(self, layer: int) -> tuple[float, float]:
        """Norm and share of a layer: linear in depth between points, constant outside them."""
        before = [point for point in self.points if point.layer <= layer] or [self.points[0]]
        after = [point for point in self.points if point.layer >= layer] or [self.points[-1]]
        low, high = before[-1], after[0]
        part = (layer - low.layer) / (high.layer - low.layer) if high.layer > low.layer else 0.0
        return low.norm + part * (high.norm - low.norm), low.share + part * (high.share - low.share)

    def follow(self, start: int, stop: int) -> float:
        """Correlation of two layers' patterns: the product of the steps from ``start`` to ``stop``."""
        product = 1.0
        for layer in range(start, stop):
            product *= next((r for end, r in self.steps if layer < end), self.steps[-1][1])
        return product


@dataclass(frozen=True, slots=True)
class Single:
    """One vector outside the curves: a final norm, a norm of an MTP block."""

    name: str
    norm: float
    share: float


@dataclass(frozen=True, slots=True)
class Related:
    """A model whose patterns follow another's: correlation ``r``, layer by layer through ``layers``."""

    to: str
    r: float
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A model that is another one after Gaussian noise of one standard deviation, rounded to BF16."""

    of: str
    std: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one model's vectors are made: by curves of its own, or as an update of another model.

    Args:
        key: the model's key in the study.
        of: the repo whose shapes it has.
        n_layers: blocks of the main tower.
        config: what its config.json would say.
        curves: by role; empty for an update.
        singles: vectors outside the curves.
        bias_std: standard deviation of the biases, or None where the norms have none.
        related: the model that its patterns follow, or None.
        update: the model that it updates, or None.
    """

    key: str
    of: str
    n_layers: int
    config: Mapping[str, Any]
    curves: Mapping[str, Curve] = field(default_factory=dict)
    singles: tuple[Single, ...] = ()
    bias_std: float | None = None
    related: Related | None = None
    update: Update | None = None

    def __post_init__(self) -> None:
        if bool(self.curves) == (self.update is not None):
            raise StudyError(f"Model '{self.key}': expected curves or an update, one of the two.")
        if self.related and len(self.related.layers) != self.n_layers:
            raise StudyError(
                f"Model '{self.key}': expected a related layer for each of {self.n_layers}, found "
                f"{len(self.related.layers)}."
            )


@dataclass(frozen=True, slots=True)
class Projection:
    """One kind of matrix of one model: tensor name with ``{layer}``, shape, and length (Frobenius norm) by layer."""

    model: str
    name: str
    shape: tuple[int, int]
    norms: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A whole calibration file.

    Args:
        hidden_size: channels of every vector.
        seed: of all random patterns.
        pinned_role: the role whose pinned points the correlations are about.
        correlations: by unordered pair of places.
        models: in the order of the file; a model comes after those that it follows or updates.
        projections: matrices of files of their own.
        missing: by model key, why a model of the study is not here.
        sha256: by file stem, the hash that the built tensors must have.
        digest: hash of the calibration file itself.
    """

    hidden_size: int
    seed: int
    pinned_role: str
    correlations: Mapping[frozenset[Place], float]
    models: tuple[Recipe, ...]
    projections: tuple[Projection, ...]
    missing: Mapping[str, str]
    sha256: Mapping[str, str]
    digest: str

    def __post_init__(self) -> None:
        for index, recipe in enumerate(self.models):
            before = {other.key for other in self.models[:index]}
            for needed in (recipe.related.to if recipe.related else "", recipe.update.of if recipe.update else ""):
                if needed and needed not in before:
                    raise StudyError(f"Model '{recipe.key}': '{needed}' must come before it in the file.")

    def recipe(self, key: str) -> Recipe:
        """The recipe of a model; StudyError names those there are."""
        for recipe in self.models:
            if recipe.key == key:
                return recipe
        raise StudyError(f"The replica has no model '{key}', only {', '.join(recipe.key for recipe in self.models)}.")

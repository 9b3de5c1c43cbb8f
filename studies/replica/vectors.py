"""This module makes the vectors and matrices of each model, as BF16 bits by tensor name.

A vector is a pattern of mean 0 and standard deviation 1, moved and scaled. Pinned layers come first: their patterns are
mixed from orthogonal ones by a Cholesky factor, so that every correlation of a pair of them is exact. The layers
between follow in depth as a Markov chain that ends where the next pinned layer is; the layers of a related model follow
the other model's.

Matrices are uncorrelated, of mean 0 and of given lengths. A value is a sum of four random bytes: 1021 different
numbers, so that a matrix is one look-up in a small table of BF16 bits, and its length can be counted exactly before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lnsim.errors import StudyError
from studies.replica.bits import (
    Bits,
    Pinned,
    Vector,
    draw,
    exact_dot,
    fit,
    from_bits,
    round_to_bf16,
    standardised,
    stream,
)
from studies.replica.calibration import Calibration, Curve, Place, Projection, Recipe, Update

__all__ = ["Patterns", "Tensors", "all_patterns", "all_tensors", "matrices_of", "pinned_places"]

Patterns = dict[tuple[str, str], dict[int, Vector]]
"""By (model, role), then by layer."""


def pinned_places(calibration: Calibration) -> tuple[Place, ...]:
    """Every pinned (model, layer), in the order of the file."""
    return tuple(
        (recipe.key, point.layer)
        for recipe in calibration.models
        if calibration.pinned_role in recipe.curves
        for point in recipe.curves[calibration.pinned_role].points
        if point.pinned
    )


def all_patterns(calibration: Calibration) -> Patterns:
    """The pattern of every layer of every model with curves, each of shape ``(hidden_size,)``.

    Raises:
        StudyError: when no vectors can have the correlations that the calibration wants.
    """
    pinned = _pinned_patterns(calibration)
    found: Patterns = {}
    for recipe in calibration.models:
        for role, curve in recipe.curves.items():
            fixed = {
                layer: pattern
                for (key, layer), pattern in pinned.items()
                if key == recipe.key and role == calibration.pinned_role
            }
            noise = _Noise(calibration, recipe.key, role)
            if recipe.related:
                followed = found[recipe.related.to, role]
                found[recipe.key, role] = _following(recipe, followed, fixed, noise)
            else:
                found[recipe.key, role] = _chain(recipe, curve, fixed, noise)
    return found


@dataclass(frozen=True, slots=True)
class _Noise:
    """Fresh patterns of one model and role, one a layer."""

    calibration: Calibration
    key: str
    role: str

    def __getitem__(self, layer: int) -> Vector:
        label = f"{self.key}/{self.role}/{layer}"
        return draw(self.calibration.seed, label, self.calibration.hidden_size)


def _pinned_patterns(calibration: Calibration) -> dict[Place, Vector]:
    orthogonal = _orthogonal(calibration)
    recipes = {recipe.key: recipe for recipe in calibration.models}
    leading = [place for place in orthogonal if recipes[place[0]].related is None]
    factor = _cholesky([[_correlation(calibration, recipes, a, b) for b in leading] for a in leading])
    found: dict[Place, Vector] = {}
    for row, place in zip(factor, leading, strict=True):
        pattern = np.zeros(calibration.hidden_size)
        for weight, other in zip(row, leading, strict=True):
            pattern = pattern + weight * orthogonal[other]
        found[place] = pattern
    for key, layer in orthogonal:
        if related := recipes[key].related:
            source = related.to, related.layers[layer]
            if source not in found:
                raise StudyError(
                    f"Layer {layer} of '{key}' is pinned, and so must be layer {source[1]} of '{source[0]}'."
                )
            found[key, layer] = _mixed(related.r, found[source], orthogonal[key, layer])
    return found


def _orthogonal(calibration: Calibration) -> dict[Place, Vector]:
    """One pattern a pinned place, each orthogonal to the others (Gram and Schmidt's way)."""
    found: dict[Place, Vector] = {}
    for key, layer in pinned_places(calibration):
        pattern = standardised(_Noise(calibration, key, calibration.pinned_role)[layer])
        for other in found.values():
            pattern = pattern - other * (exact_dot(pattern, other) / len(pattern))
        found[key, layer] = standardised(pattern)
    return found


def _correlation(calibration: Calibration, recipes: Mapping[str, Recipe], a: Place, b: Place) -> float:
    """What the file says of a pair; else the product of the steps within a chain; else 0."""
    if a == b:
        return 1.0
    if (pair := frozenset((a, b))) in calibration.correlations:
        return calibration.correlations[pair]
    if a[0] != b[0]:
        return 0.0
    curve = recipes[a[0]].curves[calibration.pinned_role]
    if any(point.apart and point.layer in (a[1], b[1]) for point in curve.points):
        return 0.0
    return curve.follow(min(a[1], b[1]), max(a[1], b[1]))


def _cholesky(matrix: list[list[float]]) -> list[list[float]]:
    """Lower factor of a symmetric matrix, by plain floats: a library's would depend on how it was built."""
    size = len(matrix)
    factor = [[0.0] * size for _ in range(size)]
    for row in range(size):
        for column in range(row + 1):
            rest = matrix[row][column] - math.fsum(factor[row][k] * factor[column][k] for k in range(column))
            if row != column:
                factor[row][column] = rest / factor[column][column]
            elif rest > 0:
                factor[row][row] = math.sqrt(rest)
            else:
                raise StudyError(
                    f"The correlations of the pinned vectors contradict one another: no {row + 1} vectors have them."
                )
    return factor


def _mixed(r: float, followed: Vector, fresh: Vector) -> Vector:
    """A pattern whose correlation with ``followed`` is r in expectation."""
    return r * followed + math.sqrt(1 - r * r) * fresh


def _following(
    recipe: Recipe, followed: Mapping[int, Vector], fixed: Mapping[int, Vector], noise: _Noise
) -> dict[int, Vector]:
    if recipe.related is None:
        raise StudyError(f"Model '{recipe.key}' follows no other.")
    r, layers = recipe.related.r, recipe.related.layers
    made = {
        layer: _mixed(r, followed[layers[layer]], noise[layer])
        for layer in range(recipe.n_layers)
        if layer not in fixed
    }
    return {layer: standardised(pattern) for layer, pattern in sorted({**made, **fixed}.items())}


def _chain(recipe: Recipe, curve: Curve, fixed: Mapping[int, Vector], noise: _Noise) -> dict[int, Vector]:
    """Patterns of all layers: each follows the one before it and leads to the next fixed one."""
    apart = {point.layer for point in curve.points if point.apart}
    ends = [layer for layer in sorted(fixed) if layer not in apart]
    found = {layer: fixed[layer] for layer in apart & set(fixed)}
    previous: int | None = None
    for layer in (layer for layer in range(recipe.n_layers) if layer not in found):
        end = next((end for end in ends if end >= layer), None)
        found[layer] = fixed[layer] if end == layer else _link(curve, layer, previous, end, found, fixed, noise[layer])
        previous = layer
    return {layer: standardised(found[layer]) for layer in sorted(found)}


def _link(
    curve: Curve,
    layer: int,
    previous: int | None,
    end: int | None,
    found: Mapping[int, Vector],
    fixed: Mapping[int, Vector],
    fresh: Vector,
) -> Vector:
    """One layer's pattern, given the one before it and the next fixed one, where there are such."""
    back = 0.0 if previous is None else curve.follow(previous, layer)
    ahead = 0.0 if end is None else curve.follow(layer, end)
    # The law of a Markov chain between two known ends.
    both = 1 - back * back * ahead * ahead
    pattern = math.sqrt((1 - back * back) * (1 - ahead * ahead) / both) * fresh
    if previous is not None:
        pattern = pattern + back * (1 - ahead * ahead) / both * found[previous]
    if end is not None:
        pattern = pattern + ahead * (1 - back * back) / both * fixed[end]
    return pattern


Tensors = dict[str, Bits]
"""BF16 bits by tensor name, in the order they are stored."""


def all_tensors(calibration: Calibration) -> dict[str, Tensors]:
    """The vectors of every model by key, each of shape ``(hidden_size,)``.

    Raises:
        StudyError: when no vectors can have the correlations that the calibration wants.
    """
    patterns = all_patterns(calibration)
    pinned = _fitted(calibration, patterns)
    found: dict[str, Tensors] = {}
    for recipe in calibration.models:
        if recipe.update:
            found[recipe.key] = _updated(calibration, recipe, recipe.update, found[recipe.update.of])
        else:
            found[recipe.key] = _own(calibration, recipe, patterns, pinned)
    return found


def _vector(norm: float, share: float, pattern: Vector) -> Vector:
    """A pattern of mean 0 and standard deviation 1, given its length and its share of mean / rms."""
    rms = norm / math.sqrt(len(pattern))
    return share * rms + math.sqrt(1 - share * share) * rms * pattern


def _fitted(calibration: Calibration, patterns: Patterns) -> dict[Place, Pinned]:
    """The pinned vectors, each fitted to those before it of the same model or the same layer."""
    found: dict[Place, Pinned] = {}
    for recipe in calibration.models:
        curve = recipe.curves.get(calibration.pinned_role)
        for point in curve.points if curve else ():
            if point.pinned:
                wanted = _vector(point.norm, point.share, patterns[recipe.key, calibration.pinned_role][point.layer])
                near = [other for (key, layer), other in found.items() if key == recipe.key or layer == point.layer]
                found[recipe.key, point.layer] = fit(wanted, near)
    return found


def _own(calibration: Calibration, recipe: Recipe, patterns: Patterns, pinned: Mapping[Place, Pinned]) -> Tensors:
    found: Tensors = {}
    for role, curve in recipe.curves.items():
        for layer, pattern in patterns[recipe.key, role].items():
            fixed = pinned.get((recipe.key, layer)) if role == calibration.pinned_role else None
            bits = fixed.bits if fixed else round_to_bf16(_vector(*curve.at(layer), pattern))
            found[curve.name.format(layer=layer)] = bits
    for single in recipe.singles:
        pattern = standardised(_drawn(calibration, recipe.key, single.name))
        found[single.name] = round_to_bf16(_vector(single.norm, single.share, pattern))
    return _with_biases(calibration, recipe, found)


def _with_biases(calibration: Calibration, recipe: Recipe, weights: Tensors) -> Tensors:
    if recipe.bias_std is None:
        return weights
    names = {name: name.removesuffix(".weight") + ".bias" for name in weights}
    biases = {bias: round_to_bf16(recipe.bias_std * _drawn(calibration, recipe.key, bias)) for bias in names.values()}
    return {
        name: bits
        for weight in weights
        for name, bits in ((weight, weights[weight]), (names[weight], biases[names[weight]]))
    }


def _updated(calibration: Calibration, recipe: Recipe, update: Update, base: Tensors) -> Tensors:
    """Another model's vectors after an update of one size at every depth, without its MTP block."""
    found: Tensors = {}
    for name, bits in base.items():
        if not _beyond(name, recipe.n_layers):
            noise = _drawn(calibration, recipe.key, name)
            found[name] = round_to_bf16(from_bits(bits) + update.std * noise)
    return found


def _beyond(name: str, n_layers: int) -> bool:
    """True for a tensor of a block past the last layer."""
    return any(part.isdigit() and int(part) >= n_layers for part in name.split("."))


def _drawn(calibration: Calibration, key: str, name: str) -> Vector:
    return draw(calibration.seed, f"{key}/{name}", calibration.hidden_size)


_PARTS = 4
_LEVELS = np.arange(_PARTS * 255 + 1, dtype=np.int64) - _PARTS * 255 // 2
"""The sums less their mean: whole numbers from -510 to 510."""


def matrices_of(calibration: Calibration, key: str) -> dict[str, Bits]:
    """The matrices of one model as BF16 bits by tensor name; empty when the calibration has none."""
    return {
        name: _matrix(calibration.seed, f"{key}/{name}", projection.shape, norm)
        for projection in calibration.projections
        if projection.model == key
        for name, norm in _named(projection)
    }


def _named(projection: Projection) -> Iterator[tuple[str, float]]:
    for layer, norm in projection.norms.items():
        yield projection.name.format(layer=layer), norm


def _matrix(seed: int, label: str, shape: tuple[int, int], norm: float) -> Bits:
    size = shape[0] * shape[1]
    sums = _sums(stream(seed, label, _PARTS * size))
    counts = np.bincount(sums, minlength=len(_LEVELS))
    scale = norm / math.sqrt(int((counts * _LEVELS * _LEVELS).sum()))
    table = round_to_bf16(scale * _LEVELS.astype(np.float64))
    return table[sums].reshape(shape)


def _sums(parts: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    quarter = len(parts) // _PARTS
    total = np.zeros(quarter, dtype=np.uint16)
    for part in range(_PARTS):
        total += parts[part * quarter : (part + 1) * quarter]
    return total

"""This module turns patterns into the BF16 vectors of each model, by tensor name."""

from __future__ import annotations

import math
from collections.abc import Mapping

from studies.replica.grid import Bits, Pinned, fit, from_bits, round_to_bf16
from studies.replica.noise import Vector, draw, standardised
from studies.replica.patterns import Patterns, all_patterns
from studies.replica.values import Calibration, Place, Recipe, Update

__all__ = ["Tensors", "all_tensors"]

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
        pattern = standardised(_noise(calibration, recipe.key, single.name))
        found[single.name] = round_to_bf16(_vector(single.norm, single.share, pattern))
    return _with_biases(calibration, recipe, found)


def _with_biases(calibration: Calibration, recipe: Recipe, weights: Tensors) -> Tensors:
    if recipe.bias_std is None:
        return weights
    names = {name: name.removesuffix(".weight") + ".bias" for name in weights}
    biases = {bias: round_to_bf16(recipe.bias_std * _noise(calibration, recipe.key, bias)) for bias in names.values()}
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
            noise = _noise(calibration, recipe.key, name)
            found[name] = round_to_bf16(from_bits(bits) + update.std * noise)
    return found


def _beyond(name: str, n_layers: int) -> bool:
    """True for a tensor of a block past the last layer."""
    return any(part.isdigit() and int(part) >= n_layers for part in name.split("."))


def _noise(calibration: Calibration, key: str, name: str) -> Vector:
    return draw(calibration.seed, f"{key}/{name}", calibration.hidden_size)

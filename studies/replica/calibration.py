"""This module reads the calibration of a study's replica, ``data/studies/replica/<study>.toml``.

It says which synthetic vectors to make, and with which statistics. Whatever is special about a model stands in that
file; the code knows no model and no study by name. A file that cannot be right stops with a StudyError that names the
file, the key, what was expected and what was found.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lnsim.errors import StudyError
from lnsim.paths import studies_dir
from studies.replica.fields import Fields, wrong

__all__ = [
    "Calibration",
    "Curve",
    "Place",
    "Point",
    "Projection",
    "Recipe",
    "Related",
    "Single",
    "Update",
    "calibration_path",
    "load_calibration",
]

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


def calibration_path(study: str) -> Path:
    """Where a study's calibration lies, whether it is there or not."""
    return studies_dir() / "replica" / f"{study}.toml"


def load_calibration(path: Path) -> Calibration:
    """Read a calibration file.

    Raises:
        StudyError: when it is not there or anything in it is wrong; the message names file and key.
    """
    if not path.is_file():
        raise StudyError(f"Reading the calibration of a replica: there is no file data/studies/replica/{path.name}.")
    content = path.read_bytes()
    try:
        table = tomllib.loads(content.decode("utf-8"))
        return _calibration(Fields(table), hashlib.sha256(content).hexdigest())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(
            f"Reading data/studies/replica/{path.name}: expected TOML in UTF-8, found an error: {error}."
        ) from None
    except StudyError as error:
        raise StudyError(f"Reading data/studies/replica/{path.name}: {error}") from None


def _calibration(top: Fields, digest: str) -> Calibration:
    top.text("about", "one sentence")
    calibration = Calibration(
        hidden_size=_whole(top, "hidden_size"),
        seed=_whole(top, "seed"),
        pinned_role=top.text("pinned_role"),
        correlations=dict(_correlation(fields) for fields in top.tables("correlations")),
        models=tuple(_recipe(fields) for fields in top.tables("models")),
        projections=tuple(_projection(fields) for fields in top.tables("projections")),
        missing=dict(top.mapping("missing")),
        sha256=dict(top.mapping("sha256")),
        digest=digest,
    )
    top.close()
    return calibration


def _recipe(fields: Fields) -> Recipe:
    key = fields.text("key")
    fields.at = f"models.{key}"
    n_layers = _whole(fields, "n_layers")
    curves = fields.mapping("curves")
    recipe = Recipe(
        key=key,
        of=fields.text("of", "a repo id"),
        n_layers=n_layers,
        config=dict(fields.mapping("config")),
        curves={role: _curve(Fields(table, f"{fields.at}.curves.{role}")) for role, table in curves.items()},
        singles=tuple(_single(single) for single in fields.tables("singles")),
        bias_std=_number(fields, "bias_std") if "bias_std" in fields.table else None,
        related=_related(_inner(fields, "related")) if "related" in fields.table else None,
        update=_update(_inner(fields, "update")) if "update" in fields.table else None,
    )
    fields.close()
    return recipe


def _inner(fields: Fields, name: str) -> Fields:
    return Fields(fields.mapping(name), fields.key(name))


def _curve(fields: Fields) -> Curve:
    points = tuple(_point(point) for point in fields.tables("points"))
    steps = fields.take("steps", "a list of pairs [layer, r]")
    curve = Curve(fields.text("name"), points, tuple((int(layer), float(r)) for layer, r in steps))
    fields.close()
    return curve


def _point(fields: Fields) -> Point:
    fields.text("source", "where the numbers come from")
    flags = {name: bool(fields.take(name, "true or false")) for name in ("pinned", "apart") if name in fields.table}
    point = Point(_whole(fields, "layer"), _number(fields, "norm"), _number(fields, "share"), **flags)
    fields.close()
    return point


def _single(fields: Fields) -> Single:
    fields.text("source", "where the numbers come from")
    single = Single(fields.text("name"), _number(fields, "norm"), _number(fields, "share"))
    fields.close()
    return single


def _related(fields: Fields) -> Related:
    ranges = fields.take("layers", "a list of half-open ranges [start, stop]")
    layers = tuple(layer for start, stop in ranges for layer in range(start, stop))
    related = Related(fields.text("to"), _number(fields, "r"), layers)
    fields.close()
    return related


def _update(fields: Fields) -> Update:
    update = Update(fields.text("of"), _number(fields, "std"))
    fields.close()
    return update


def _projection(fields: Fields) -> Projection:
    rows, columns = fields.take("shape", "two whole numbers")
    norms = {int(layer): float(norm) for layer, norm in fields.mapping("norms").items()}
    projection = Projection(fields.text("model"), fields.text("name"), (rows, columns), norms)
    fields.close()
    return projection


def _correlation(fields: Fields) -> tuple[frozenset[Place], float]:
    fields.text("source", "where the number comes from")
    pair = frozenset((_place(fields, "a"), _place(fields, "b")))
    correlation = _number(fields, "r")
    fields.close()
    return pair, correlation


def _place(fields: Fields, name: str) -> Place:
    model, _, layer = fields.text(name, "model@layer", r"[a-z]\w*@\d+").partition("@")
    return model, int(layer)


def _whole(fields: Fields, name: str) -> int:
    value: Any = fields.take(name, "a whole number, 0 or more")
    if type(value) is not int or value < 0:
        raise wrong(fields.key(name), "a whole number, 0 or more", value)
    return value


def _number(fields: Fields, name: str) -> float:
    value: Any = fields.take(name, "a number")
    if type(value) not in (int, float):
        raise wrong(fields.key(name), "a number", value)
    return float(value)

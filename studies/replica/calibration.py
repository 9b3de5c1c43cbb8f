"""This module reads the calibration of a study's replica, ``data/studies/replica/<study>.toml``.

Whatever is special about a model stands in that file; the code knows no model and no study by name. A file that cannot
be right stops with a StudyError that names the file, the key, what was expected and what was found.
"""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

from lnsim.errors import StudyError
from lnsim.paths import studies_dir
from lnsim.study.fields import Fields, wrong
from studies.replica.values import (
    Calibration,
    Curve,
    Place,
    Point,
    Projection,
    Recipe,
    Related,
    Single,
    Update,
)

__all__ = ["calibration_path", "load_calibration"]


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

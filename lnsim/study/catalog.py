"""This module reads studies from ``data/studies/*.toml``.

Anything in a study file that cannot be right stops the reading with a StudyError that names the file, the key, what was
expected and what was found.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lnsim.errors import StudyError
from lnsim.paths import studies_dir
from lnsim.study.fields import Fields, wrong
from lnsim.study.parameters import NUMBERS
from lnsim.study.relations import KINDS, Relation
from lnsim.study.values import COLOUR, KEY, MODEL_KINDS, SOURCES, Experiment, Model, Study

__all__ = ["Experiment", "Model", "Relation", "Study", "list_studies", "load_study"]

_REPO_ID = r"[A-Za-z0-9][\w.-]*/[\w.-]+"


def list_studies() -> tuple[str, ...]:
    """Names of the study files, in alphabetical order."""
    return tuple(sorted(path.stem for path in studies_dir().glob("*.toml")))


def load_study(name: str) -> Study:
    """Read a study.

    Args:
        name: the file's name without ``.toml``, one of ``list_studies()``.

    Raises:
        StudyError: when there is no such file, or anything in it is wrong; the message names file and key.
    """
    if name not in list_studies():
        raise StudyError(
            f"There is no study '{name}' in data/studies; there are {', '.join(list_studies()) or 'none'}."
        )
    path = studies_dir() / f"{name}.toml"
    try:
        return _study(name, Fields(_parsed(path)))
    except StudyError as error:
        raise StudyError(f"Reading data/studies/{path.name}: {error}") from None


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"expected a TOML file in UTF-8, found an error: {error}.") from None


def _study(name: str, top: Fields) -> Study:
    title, about, sources = top.text("title"), top.text("about", "one sentence"), _sources(top)
    models = tuple(_model(fields, sources) for fields in top.tables("models"))
    if not models:
        raise StudyError("key 'models': expected at least one model, written [[models]], found none.")
    relations = tuple(_relation(fields) for fields in top.tables("relations"))
    experiments, not_run = top.mapping("experiments"), top.mapping("not_run")
    top.close()
    return Study(name, title, about, sources, models, relations, experiments, _not_run(not_run))


def _sources(top: Fields) -> tuple[str, ...]:
    expected = f"a list of sources among {', '.join(SOURCES)}, each once"
    value = top.take("sources", expected)
    known = isinstance(value, list) and all(isinstance(item, str) and item in SOURCES for item in value)
    if not known or not value or len(set(value)) != len(value):
        raise wrong("sources", expected, value)
    return tuple(value)


def _model(fields: Fields, sources: tuple[str, ...]) -> Model:
    key = fields.text("key", "a short name of small letters, digits and _", KEY)
    fields.at = f"models.{key}"
    repo_id = fields.optional_text("repo_id", "a repo id, owner/name", _REPO_ID)
    stored = fields.optional_text("stored") or repo_id
    if stored is None or ("hub" in sources and repo_id is None):
        needed = "repo_id" if "hub" in sources else "stored"
        raise StudyError(f"key '{fields.key(needed)}': this study's sources need it, found no such key. Add it.")
    model = Model(
        key=key,
        label=fields.text("label"),
        repo_id=repo_id,
        revision=fields.optional_text("revision"),
        stored=stored,
        colour=fields.text("colour", "a colour as #rrggbb in small letters", COLOUR),
        family=fields.text("family"),
        kind=fields.choice("kind", MODEL_KINDS),
        note=fields.optional_text("note") or "",
        parents=_parents(fields),
        derivation=fields.optional_text("derivation") or "",
    )
    fields.close()
    return model


def _parents(fields: Fields) -> tuple[str, ...]:
    expected = "a list of model keys"
    value = fields.take("parents", expected) if "parents" in fields.table else []
    if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
        raise wrong(fields.key("parents"), expected, value)
    return tuple(value)


def _relation(fields: Fields) -> Relation:
    a, b = fields.text("a", "a model key"), fields.text("b", "a model key")
    relation = Relation(a, b, fields.choice("kind", KINDS), fields.text("evidence", "one sentence"))
    fields.close()
    return relation


def _not_run(table: Mapping[str, Any]) -> dict[str, str]:
    for number, reason in table.items():
        if number not in NUMBERS:
            raise wrong(f"not_run.{number}", f"a notebook number, {NUMBERS[0]} to {NUMBERS[-1]}", number)
        if not isinstance(reason, str) or not reason.strip() or reason.endswith("."):
            raise wrong(f"not_run.{number}", "a phrase without a full stop", reason)
    return dict(table)

"""This module writes the file of a new study, from stored models or from folders that are read first."""

from __future__ import annotations

import colorsys
import json
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from lnsim.checkpoint.extract import extract_and_keep, load
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError, LnsimError, StudyError
from lnsim.measure.comparable import common_roles
from lnsim.paths import studies_dir, vectors_dir

_STUDY = 'title = {}\nabout = {}\nsources = ["stored"]\n'
_MODEL = '[[models]]\nkey = {}\nlabel = {}\nstored = {}\ncolour = {}\nfamily = {}\nkind = "dense"\n'


def new_study(name: str, sources: Sequence[str]) -> Path:
    """Write ``data/studies/NAME.toml``: its models, and the notebooks 00 and 13 over every pair of them.

    What is not stored yet is read from where it lies and kept in ``data/vectors/NAME``. Relations are for the reader to
    add: who says what. StudyError, with all that is wrong, for a name that is taken or no name, or fewer than two
    models; no study is written then.
    """
    path, stored, wrong = studies_dir() / f"{name}.toml", {}, []
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or path.exists():
        wrong.append(f"'{name}' is {'a study already' if path.exists() else 'no name (small letters, digits, _)'}")
    for source in dict.fromkeys(sources):
        try:
            stored[source] = _stored(source, name)
        except LnsimError as error:
            wrong.append(str(error).rstrip("."))
    if len(stored) < 2 and not wrong:
        wrong.append(f"it needs two models, found {len(stored)}")
    if wrong:
        raise StudyError(f"Making the study '{name}': {'; '.join(wrong)}.")
    keys = {source: f"m{place}" for place, source in enumerate(stored, start=1)}
    colours = [colorsys.hls_to_rgb(place / len(stored), 0.42, 0.55) for place in range(len(stored))]
    parts = [_STUDY.format(_text(", ".join(Path(one).name for one in keys)), _text(f"Made by lnsim study new {name}."))]
    for (source, (where, vectors)), rgb in zip(stored.items(), colours, strict=True):
        colour = "#" + "".join(f"{round(255 * one):02x}" for one in rgb)
        given = (keys[source], Path(source).name, where, colour, vectors.model_type)
        parts.append(_MODEL.format(*map(_text, given)))
    parts.append(f'[experiments.00]\nmodels = {_text(list(keys.values()))}\nfeatured = "m1"\n')
    parts.append(f"[experiments.13]\nmodels = {_text(list(keys.values()))}\nn_permutations = 99999\nseed = 0\n")
    by_norms: dict[tuple[str, str], list[list[str]]] = {}
    for a, b in combinations(stored, 2):
        for norms in _norms(stored[a][1], stored[b][1]):
            by_norms.setdefault(norms, []).append([keys[a], keys[b]])
    for norms, pairs in by_norms.items():
        head = _text(" and ".join(dict.fromkeys(norms)))
        parts.append(f"[experiments.13.comparisons.{head}]\nroles = {_text(list(norms))}\npairs = {_text(pairs)}\n")
    path.write_text("\n".join(parts), "utf-8")
    return path


def _norms(a: NormVectors, b: NormVectors) -> list[tuple[str, str]]:
    """The roles that both have; of models that have none in common the first of each, named as not comparable."""
    try:
        return [(role, role) for role in common_roles(a, b)]
    except ComparisonError:
        return [(next(iter(a.roles)), next(iter(b.roles)))]


def _stored(source: str, name: str) -> tuple[str, NormVectors]:
    """The name under which a source is stored, and its vectors; read and kept where it is not yet."""
    if not Path(source).exists():
        return source, load(source)
    found = extract_and_keep(source, out=vectors_dir() / name)
    return str(found.path and found.path.stem), found


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)  # of texts and lists of them, TOML is written as JSON is

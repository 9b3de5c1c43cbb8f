"""This module reads the published numbers of ``data/claims``, and which vectors each speaks of.

A row says where a number was printed, of what it is said, and to which precision. It carries no verdict. The vectors
are written in a small language, ``;`` between several:

    a@10                one vector
    a@10:b@10           two, compared
    a@0:a@10,20         one with each of two; of one model, a layer is never set beside itself
    a@0-46:b@=          equal layers; ``b@!=`` other layers
    a@*:b@=             every layer that both models have
    within(a)@10,20,30  all pairs of layers of one model
    pairs(a,b,c)@10     all pairs of models at equal layers
    cross(a,b|c,d)@10   each of the first with each of the second

``A - B`` is a difference of two such selections, ``A > B`` an order between them, ``&`` joins statements.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from lnsim.errors import StudyError
from lnsim.paths import project_root
from studies.claims.intervals import Interval

__all__ = [
    "MEANINGS",
    "Cell",
    "Claim",
    "Fact",
    "Vector",
    "cells_of",
    "cosines_of_003",
    "models_of",
    "printed_cosines",
    "read_claims",
    "read_facts",
]

_GROUP = re.compile(r"(within|pairs|cross)\(([a-z0-9_,|]+)\)@([-0-9,*]+)")
_SIDE = re.compile(r"([a-z][a-z0-9_]*)@([-0-9,*]+|=|!=)")


class Vector(NamedTuple):
    """One norm vector: a model's key and a layer number. A tuple, as tens of thousands of them are looked up."""

    model: str
    layer: int


class Cell(NamedTuple):
    """What one number is taken from: one vector, or two that are compared.

    Args:
        role: which norm.
        a: the first vector, the one that a measure with a direction divides by.
        b: the second, or None.
    """

    role: str
    a: Vector
    b: Vector | None = None

    @property
    def layers(self) -> str:
        """The layers, as prose names them."""
        if self.b is None or self.b.layer == self.a.layer:
            return f"layer {self.a.layer}"
        return f"layers {self.a.layer} and {self.b.layer}"


def cells_of(selection: str, roles: Sequence[str], n_layers: Mapping[str, int]) -> list[Cell]:
    """The cells of a selection, in every role, each once.

    Args:
        selection: in the language above, without ``-``, ``>`` or ``&``.
        roles: the roles it is taken in.
        n_layers: decoder layers by model key, for ``*``.

    Raises:
        StudyError: when it cannot be read, or ``*`` names a model of unknown depth.
    """
    return list(_cells(selection, tuple(roles), tuple(n_layers.items())))


@lru_cache(maxsize=512)
def _cells(selection: str, roles: tuple[str, ...], n_layers: tuple[tuple[str, int], ...]) -> tuple[Cell, ...]:
    """Kept, as the same selections come up again and again, and some have two thousand cells."""
    depths = dict(n_layers)
    found = [pair for term in selection.split(";") for pair in _term(term.strip(), depths)]
    return tuple(Cell(role, a, b) for role in roles for a, b in dict.fromkeys(found))


def models_of(selection: str) -> tuple[str, ...]:
    """The model keys that a selection names, in their order, each once."""
    names = re.sub(r"\b(within|pairs|cross)\(", "(", selection)
    return tuple(dict.fromkeys(re.findall(r"[a-z][a-z0-9_]*", re.sub(r"@[-0-9,*=!]*", " ", names))))


Pair = tuple[Vector, Vector | None]


def _term(term: str, n_layers: Mapping[str, int]) -> Iterator[Pair]:
    if group := _GROUP.fullmatch(term):
        yield from _group(group[1], group[2], group[3], n_layers)
    elif len(sides := [_side(side, term) for side in term.split(":")]) == 1:
        (model, layers), *_ = sides
        yield from ((Vector(model, layer), None) for layer in _layers(layers, [model], n_layers))
    elif len(sides) == 2:
        yield from _pairs(sides[0], sides[1], n_layers)
    else:
        raise _unreadable(term)


def _group(kind: str, names: str, layers: str, n_layers: Mapping[str, int]) -> Iterator[Pair]:
    if kind == "within":
        numbers = _layers(layers, [names], n_layers)
        yield from ((Vector(names, i), Vector(names, j)) for i, j in combinations(numbers, 2))
        return
    first, _, second = names.partition("|")
    if kind == "cross" and second:
        models = list(product(first.split(","), second.split(",")))
    else:
        models = list(combinations(first.split(","), 2))
    for a, b in models:
        yield from ((Vector(a, layer), Vector(b, layer)) for layer in _layers(layers, [a, b], n_layers))


def _pairs(a: tuple[str, str], b: tuple[str, str], n_layers: Mapping[str, int]) -> Iterator[Pair]:
    (model_a, layers_a), (model_b, layers_b) = a, b
    both = [model_a, model_b]
    if layers_b == "=":
        yield from ((Vector(model_a, i), Vector(model_b, i)) for i in _layers(layers_a, both, n_layers))
        return
    first = _layers(layers_a, both, n_layers)
    second = first if layers_b == "!=" else _layers(layers_b, both, n_layers)
    for i, j in product(first, second):
        if i != j or (layers_b != "!=" and model_a != model_b):
            yield Vector(model_a, i), Vector(model_b, j)


def _layers(text: str, models: Sequence[str], n_layers: Mapping[str, int]) -> list[int]:
    if text == "*":
        if unknown := [model for model in models if model not in n_layers]:
            raise StudyError(f"Reading published numbers: '*' needs the number of layers of '{unknown[0]}', not known.")
        return list(range(min(n_layers[model] for model in models)))
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise _unreadable(text)
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _side(text: str, term: str) -> tuple[str, str]:
    found = _SIDE.fullmatch(text)
    if not found:
        raise _unreadable(term)
    return found[1], found[2]


def _unreadable(text: str) -> StudyError:
    return StudyError(
        f"Reading published numbers: expected vectors written like a@10, a@0-46:b@= or pairs(a,b)@10, found '{text}'."
    )


MEANINGS: tuple[str, ...] = ("equals", "about", "at least", "at most", "range", "ordering", "words")
"""How a printed number is meant: as a value, as a bound, as a range; or there is no number."""

_COLUMNS = (
    *("claim", "document", "line", "section", "statement", "metric", "statistic", "role", "members", "meaning"),
    *("value", "low", "high", "half", "note"),
)
_FACT_COLUMNS = ("source", "metric", "statistic", "role", "members", "value", "half")


@dataclass(frozen=True, slots=True)
class Claim:
    """One published number, or statement.

    Args:
        name: document and running number, ``004-087``.
        document: ``000`` to ``004``.
        line: line of the document, or empty.
        section: part of the document, in short.
        statement: what is claimed, in this project's words.
        metric: what was measured, ``words`` where no number is given.
        statistic: what is taken over the members: empty for one of them, ``mean``, ``std``, ``each``, ``most``, ...
        roles: norms that it is about.
        members: the vectors, in the language above; names of other things where the metric is not of vectors.
        meaning: one of MEANINGS.
        value: as printed, or empty.
        allowed: every number that the printed one can stand for, the whole line where there is none.
        half: half a unit of the last printed digit, or what stands for it.
        note: how words were read as numbers, or why there is nothing to test; may be empty.
    """

    name: str
    document: str
    line: str
    section: str
    statement: str
    metric: str
    statistic: str
    roles: tuple[str, ...]
    members: str
    meaning: str
    value: str
    allowed: Interval
    half: float
    note: str

    def __post_init__(self) -> None:
        if self.meaning not in MEANINGS:
            known = ", ".join(MEANINGS)
            raise StudyError(f"Claim {self.name}: expected a meaning among {known}, found '{self.meaning}'.")
        if not self.statement or not self.name.startswith(f"{self.document}-"):
            raise StudyError(f"Claim {self.name}: expected a statement, and a name that begins with its document.")
        if self.meaning == "words" and not self.note:
            raise StudyError(f"Claim {self.name}: words without a number need a note that says why; found none.")

    @property
    def printed(self) -> str:
        """The number as readers see it: every digit that was printed, and the sense it was printed in."""
        if self.meaning in ("words", "ordering"):
            return "in words"
        return {"about": "about ", "at least": "≥ ", "at most": "≤ "}.get(self.meaning, "") + self.value


@dataclass(frozen=True, slots=True)
class Fact:
    """One number that was published beside the five documents: a stored output, a figure, a config.

    Args:
        source: repo and file, or what else it is from.
        metric, statistic, roles, members: as of a Claim.
        known: every number that it can stand for.
    """

    source: str
    metric: str
    statistic: str
    roles: tuple[str, ...]
    members: str
    known: Interval


def read_claims(path: Path) -> tuple[Claim, ...]:
    """Every published number of the file, in its order.

    Raises:
        StudyError: for a file that is not there, other columns than these, a repeated name, or a row that cannot be.
    """
    claims = tuple(_claim(row) for row in _rows(path, _COLUMNS))
    names = [claim.name for claim in claims]
    if repeated := {name for name in names if names.count(name) > 1}:
        raise StudyError(f"Reading {path.name}: expected each claim once, found {min(repeated)} again.")
    return claims


def read_facts(path: Path) -> tuple[Fact, ...]:
    """Every number of the file of other published numbers; errors as of ``read_claims``."""
    return tuple(
        Fact(
            row["source"], row["metric"], row["statistic"], _roles(row["role"]), row["members"],
            _around(_number(row, "value"), _number(row, "half")),
        )
        for row in _rows(path, _FACT_COLUMNS)
    )  # fmt: skip


def _rows(path: Path, columns: tuple[str, ...]) -> list[Mapping[str, str]]:
    if not path.is_file():
        raise StudyError(f"Reading published numbers: there is no data/claims/{path.name}. Take it from the repo.")
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise StudyError(f"Reading {path.name}: expected the columns {', '.join(columns)}; found others.")
        return [dict(row) for row in reader]


def _claim(row: Mapping[str, str]) -> Claim:
    printed = row["value"] or (f"{row['low']} to {row['high']}" if row["low"] else "")
    half = _number(row, "half") if row["half"] else 0.0
    return Claim(
        row["claim"], row["document"], row["line"], row["section"], row["statement"], row["metric"], row["statistic"],
        _roles(row["role"]), row["members"], row["meaning"], printed, _allowed(row, half), half, row["note"],
    )  # fmt: skip


def _allowed(row: Mapping[str, str], half: float) -> Interval:
    meaning, size = row["meaning"], row["statistic"] == "matrix"
    if meaning in ("words", "ordering") or size:
        return Interval(-math.inf, math.inf)
    if meaning == "range":
        return Interval(_number(row, "low") - half, _number(row, "high") + half)
    value = _number(row, "value")
    if meaning == "at least":
        return Interval(value - half, math.inf)
    return Interval(-math.inf, value + half) if meaning == "at most" else _around(value, half)


def _around(value: float, half: float) -> Interval:
    return Interval(value - half, value + half)


def _number(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row[column])
    except ValueError:
        name = row.get("claim") or row.get("members")
        raise StudyError(f"Reading {name}: expected a number as '{column}', found '{row[column]}'.") from None


def _roles(text: str) -> tuple[str, ...]:
    return tuple(text.split(";")) if text else ("",)


_SECTION = "gpt2 toy"


def cosines_of_003() -> pd.DataFrame:
    """``printed_cosines`` of every list of published numbers that the project has."""
    lists = sorted((project_root() / "data" / "claims").glob("*/published.csv"))
    return printed_cosines([claim for path in lists for claim in read_claims(path)])


def printed_cosines(claims: Sequence[Claim]) -> pd.DataFrame:
    """The printed cosines, one row each.

    Args:
        claims: all published numbers, as ``rows.read_claims`` gives them.

    Returns:
        Columns ``gamma`` (how γ began: ``ones`` or ``normal``), ``role``, ``layer`` and ``cosine``, as printed.

    Raises:
        StudyError: when there are none.
    """
    found = [
        claim for claim in claims if claim.section == _SECTION and claim.metric == "cosine" and not claim.statistic
    ]
    if not found:
        raise StudyError(f"Looking for the cosines of small GPT-2s: none of {len(claims)} claims is of '{_SECTION}'.")
    rows = []
    for claim in found:
        pair, layer = claim.members.split(":")[0].split("@")
        gamma = pair.rpartition("_")[0]
        rows.append({"gamma": gamma, "role": claim.roles[0], "layer": int(layer), "cosine": float(claim.value)})
    return pd.DataFrame(rows)

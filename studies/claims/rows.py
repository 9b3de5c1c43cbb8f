"""This module reads the published numbers from ``data/claims`` and checks every row.

A row says where a number was printed, of what it is said, and to which precision. It carries no verdict.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lnsim.errors import StudyError
from studies.claims.intervals import Interval

__all__ = ["MEANINGS", "Claim", "Fact", "read_claims", "read_facts"]

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
        members: the vectors, in the language of ``cells``; names of other things where the metric is not of vectors.
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

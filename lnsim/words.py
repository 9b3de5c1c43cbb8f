"""This module puts numbers into words the same way everywhere: spans, lists, counts."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lnsim.errors import NotebookError

if TYPE_CHECKING:
    import pandas as pd

TEXTS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
ROLE_LABELS: Mapping[str, str] = TEXTS["roles"]
COLUMN_LABELS: Mapping[str, str] = TEXTS["columns"]
GROUP_LABELS: Mapping[str, str] = TEXTS["groups"]


def group_name(group: object) -> str:
    """A group of pairs as readers see it: one that is no control need not be in dispute.

    >>> group_name("disputed")
    'in question'
    """
    return "in question" if group == "disputed" else str(group)


def rounded(value: float, spec: str = ".3f") -> str:
    """A number as text with a real minus sign; what rounds to zero has no sign."""
    text = format(float(value), spec)
    if not any(digit in "123456789" for digit in text):
        return text.lstrip("-")
    return text.replace("-", "−")


def at_most(value: float, digits: int = 3) -> str:
    """A number rounded upwards, so that what is printed is a bound.

    >>> at_most(0.0648, 2), at_least(0.0648, 2)
    ('0.07', '0.06')
    """
    return rounded(float(Decimal(str(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING)), f".{digits}f")


def at_least(value: float, digits: int = 3) -> str:
    """A number rounded downwards, so that what is printed is a bound."""
    return rounded(float(Decimal(str(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_FLOOR)), f".{digits}f")


def p_value(p: float) -> str:
    """A p-value in two digits that count, never as zero.

    >>> p_value(0.4321), p_value(0.00414), p_value(1e-5)
    ('0.43', '0.0041', 'under 0.0001')
    """
    if p < 1e-4:
        return "under 0.0001"
    digits = 1 - math.floor(math.log10(p))
    return format(p, f".{max(digits, 2)}f")


def span(values: npt.ArrayLike, spec: str = ".2f") -> str:
    """Smallest to largest, for example ``0.90 to 0.98``; one number where both round to the same."""
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size or np.isnan(numbers).any():
        raise NotebookError(f"Writing a span of {numbers.size} values: it needs at least one, and no undefined one.")
    low, high = rounded(numbers.min(), spec), rounded(numbers.max(), spec)
    return low if low == high else f"{low} to {high}"


def listed(texts: Iterable[object]) -> str:
    """``a``, ``a and b`` or ``a, b and c``; NotebookError for nothing."""
    parts: Sequence[str] = [str(text) for text in texts]
    if not parts:
        raise NotebookError("Writing a list in words: it is empty.")
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def count(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 layer``, ``30 layers``, ``9,999 permutations``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def role_names(roles: Iterable[str]) -> str:
    """Roles in words: ``pre-attention and pre-MLP``."""
    return listed(header_text(role) for role in roles)


def by_role(frame: pd.DataFrame, column: str, spec: str = ".2f") -> str:
    """The span of a column in each role: ``0.01 to 0.03 for the pre-attention norm and 0.90 for the pre-MLP norm``."""
    groups = frame.groupby("role", sort=False)[column]
    return listed(f"{span(values, spec)} for the {header_text(str(role))} norm" for role, values in groups)


def by_group(frame: pd.DataFrame, column: str, spec: str = ".2f") -> str:
    """The span of a column in each group that is there: ``0.90 to 0.98 within a model and 0.94 between strangers``."""
    spans = {str(group): span(values, spec) for group, values in frame.groupby("group")[column]}
    return listed(f"{spans[group]} {words}" for group, words in GROUP_LABELS.items() if group in spans)


def header_text(name: Hashable) -> str:
    """A column's or row's name as a reader sees it: roles as in prose, underscores as spaces."""
    text = str(name)
    if text in COLUMN_LABELS:
        return COLUMN_LABELS[text]
    tower, slash, role = text.rpartition("/")
    return tower + slash + ROLE_LABELS.get(role, role.replace("_", " "))

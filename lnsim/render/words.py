"""This module puts numbers into words the same way everywhere: spans, lists, counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lnsim.errors import NotebookError

__all__ = ["count", "listed", "rounded", "span"]


def rounded(value: float, spec: str = ".3f") -> str:
    """A number as text with a real minus sign; what rounds to zero has no sign."""
    text = format(float(value), spec)
    if not any(digit in "123456789" for digit in text):
        return text.lstrip("-")
    return text.replace("-", "−")


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

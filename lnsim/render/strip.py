"""This module draws the null strip: r as a mark on a scale from -0.2 to 1, over the grey range of its null.

It repeats the numbers that stand beside it for the eye, so a reader without sight loses nothing: it is hidden there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from lnsim.errors import NotebookError

__all__ = ["GROUP_CLASSES", "SCALE", "Strip"]

SCALE = (-0.2, 1.0)
"""Ends of the scale; what lies beyond is drawn at its end."""

GROUP_CLASSES = {"related": "rel", "independent": "ind", "disputed": "dis"}
"""Class in the style sheet by the group of a pair."""

_LEFT, _LENGTH = 8, 120


@dataclass(frozen=True, slots=True)
class Strip:
    """One strip.

    Args:
        r: the value, -1 to 1.
        low: lower end of the range that its null gives.
        high: upper end.
        group: what the pair is, a key of GROUP_CLASSES.
    """

    r: float
    low: float
    high: float
    group: str

    def __post_init__(self) -> None:
        if not all(map(isfinite, (self.r, self.low, self.high))) or self.low > self.high:
            raise NotebookError(
                f"Drawing a strip: expected r and an ascending range, found {self.r}, {self.low} and {self.high}."
            )
        if self.group not in GROUP_CLASSES:
            raise NotebookError(f"Drawing a strip: '{self.group}' is none of {', '.join(GROUP_CLASSES)}.")

    @property
    def html(self) -> str:
        """The strip as an inline SVG, whose colours are those of the page."""
        left, zero, right = _place(self.low), _place(0.0), _place(self.high)
        ends = f'x1="{_LEFT}" x2="{_LEFT + _LENGTH}"'
        return (
            '<svg class="strip" viewBox="0 0 136 16" aria-hidden="true" focusable="false">'
            f'<line class="axis" {ends} y1="8" y2="8"></line>'
            f'<rect class="null" x="{left:.1f}" y="2" width="{right - left:.1f}" height="12"></rect>'
            f'<line class="axis" x1="{zero:.1f}" x2="{zero:.1f}" y1="2" y2="14"></line>'
            f'<circle class="{GROUP_CLASSES[self.group]}" cx="{_place(self.r):.1f}" cy="8" r="4.2"></circle></svg>'
        )


def _place(value: float) -> float:
    low, high = SCALE
    return _LEFT + _LENGTH * (min(max(value, low), high) - low) / (high - low)

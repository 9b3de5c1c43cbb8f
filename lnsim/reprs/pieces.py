"""This module writes what a notebook shows of a value: a heading, a line of facts, small tables, curves, notes.

Everything is inline and takes the colour of the text around it, so it suits JupyterLab's light and dark themes. Names
come from strangers, so every text is made printable, cut where it is long, and escaped; only a ``Picture`` is taken as
it is, and it holds numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from lnsim.text import printable

__all__ = ["Picture", "bars", "card", "count", "layer_list", "plain", "rounded", "sparkline", "table"]

_LONGEST = 200
_LONGEST_NOTE = 2_000
"""Characters that are shown of a name, and of a sentence."""

_MOST_LISTED = 12

_WIDTH, _HEIGHT, _MARGIN = 132, 22, 3
_CELL = "padding:2px 10px 2px 0;vertical-align:top;background:transparent;"
_QUIET = "opacity:.75;"


@dataclass(frozen=True, slots=True)
class Picture:
    """An inline SVG, made in this module of numbers alone."""

    svg: str


def plain(text: object, longest: int = _LONGEST) -> str:
    """Any text, fit to stand in HTML.

    >>> plain("<b>")
    '&lt;b&gt;'
    """
    shown = printable(str(text)[: longest + 1])
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


def rounded(value: float, spec: str = ".3g") -> str:
    """A number as text with a real minus sign, or ``undefined``."""
    return format(value, spec).replace("-", "−") if math.isfinite(value) else "undefined"


def count(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count(1, "file"), count(2_000, "file")
    ('1 file', '2,000 files')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def layer_list(layers: Sequence[int]) -> str:
    """Layer numbers, the first of many.

    >>> layer_list([3, 4])
    '3, 4'
    """
    said = ", ".join(str(layer) for layer in layers[:_MOST_LISTED])
    return said if len(layers) <= _MOST_LISTED else f"{said}, … ({len(layers):,} in all)"


def card(kind: str, name: str, facts: Iterable[str], parts: Iterable[str], notes: Iterable[str] = ()) -> str:
    """What is shown of one value.

    Args:
        kind: the name of its class.
        name: what it is called; may be empty.
        facts: short statements, set in a line.
        parts: tables, as ``table`` gives them.
        notes: sentences that a reader must know, one a line.
    """
    heading = f'<span style="{_QUIET}">{plain(kind)}</span>' + (f" <b>{plain(name)}</b>" if name else "")
    said = " · ".join(plain(fact) for fact in facts if fact)
    lines = [f"<div>{heading}</div>", f'<div style="{_QUIET}">{said}</div>', *parts]
    lines += [f"<div>{plain(note, _LONGEST_NOTE)}</div>" for note in notes]
    return f'<div style="color:inherit;line-height:1.45;overflow-x:auto">{"".join(lines)}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table: the first column heads its row; numbers, and texts that begin with a digit or sign, to the right.

    A header of empty texts is left out.
    """
    body = [list(row) for row in rows]
    right = [_to_the_right([row[i] for row in body]) for i in range(len(header))]
    cells = "".join(_cell("th", 'scope="col" ', cell, side) for cell, side in zip(header, right, strict=True))
    head = f"<thead><tr>{cells}</tr></thead>" if any(header) else ""
    said = f'<caption style="text-align:left;{_QUIET}">{plain(caption)}</caption>' if caption else ""
    lines = "".join(f"<tr>{''.join(_row(row, right))}</tr>" for row in body)
    return (
        f'<table style="margin:4px 0;border-collapse:collapse;color:inherit">{said}{head}<tbody>{lines}</tbody></table>'
    )


def sparkline(
    values: Sequence[float], layers: Sequence[int], what: str, limits: tuple[float, float] | None = None
) -> Picture:
    """A curve by layer: a line where layers follow each other, a dot for one by itself; undefined values are left out.

    Args:
        values: one a layer.
        layers: their numbers, ascending.
        what: what the values are, for a reader who does not see the curve.
        limits: ends of the scale; by default the smallest value and the largest.
    """
    points = [(layer, value) for layer, value in zip(layers, values, strict=True) if math.isfinite(value)]
    if not points:
        return Picture(_svg(f"{what}: undefined", ""))
    low, high = min(value for _, value in points), max(value for _, value in points)
    first, last = points[0][0], points[-1][0]
    places = [(layer, _across(layer, first, last), _up(value, *(limits or (low, high)))) for layer, value in points]
    step = min((b - a for (a, _), (b, _) in pairwise(points)), default=1)
    drawn = "".join(_run(run) for run in _runs(places, step))
    return Picture(_svg(f"{what}, layers {first} to {last}: {rounded(low)} to {rounded(high)}", drawn))


def bars(counts: Sequence[int], mark: float, what: str) -> Picture:
    """Bars side by side and one vertical line.

    Args:
        counts: heights.
        mark: where the line stands, 0 at the left end of the bars and 1 at the right.
        what: what is drawn, in words.
    """
    width, most = (_WIDTH - 2 * _MARGIN) / max(1, len(counts)), max((*counts, 1))
    drawn = "".join(
        f'<rect x="{_MARGIN + place * width:.1f}" y="{_up(count, 0, most):.1f}" width="{width:.1f}" '
        f'height="{_HEIGHT - _MARGIN - _up(count, 0, most):.1f}" fill="currentColor" fill-opacity=".35"/>'
        for place, count in enumerate(counts)
    )
    x = _across(mark, 0, 1)
    line = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_HEIGHT}" stroke="currentColor" stroke-width="2"/>'
    return Picture(_svg(what, drawn + line))


def _to_the_right(cells: Sequence[object]) -> bool:
    words = [cell for cell in cells if not isinstance(cell, Picture)]
    return bool(words) and all(map(_numeric, words))


def _numeric(cell: object) -> bool:
    return isinstance(cell, (int, float)) or (isinstance(cell, str) and cell[:1] in ("", *"0123456789−+-"))


def _row(row: Sequence[object], right: Sequence[bool]) -> Iterator[str]:
    for place, (cell, side) in enumerate(zip(row, right, strict=True)):
        name, more = ("th", 'scope="row" ') if place == 0 else ("td", "")
        yield _cell(name, more, cell, side and place > 0)


def _cell(name: str, more: str, cell: object, right: bool) -> str:
    if isinstance(cell, Picture):
        text = cell.svg
    else:
        text = f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else plain(cell)
    weight = "" if more.startswith('scope="col"') else "font-weight:normal;"
    return f'<{name} {more}style="{_CELL}{weight}text-align:{"right" if right else "left"}">{text}</{name}>'


def _across(value: float, low: float, high: float) -> float:
    share = 0.5 if high == low else (value - low) / (high - low)
    return _MARGIN + (_WIDTH - 2 * _MARGIN) * min(max(share, 0.0), 1.0)


def _up(value: float, low: float, high: float) -> float:
    share = 0.5 if high == low else (value - low) / (high - low)
    return _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * min(max(share, 0.0), 1.0)


def _runs(places: Sequence[tuple[int, float, float]], step: int) -> Iterator[list[tuple[float, float]]]:
    """Points of layers that follow each other."""
    run: list[tuple[float, float]] = []
    before: int | None = None
    for layer, x, y in places:
        if before is not None and layer - before > step:
            yield run
            run = []
        run.append((x, y))
        before = layer
    yield run


def _run(points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:
        x, y = points[0]
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="currentColor"/>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>'


def _svg(what: str, drawn: str) -> str:
    return (
        f'<svg role="img" aria-label="{plain(what)}" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" style="vertical-align:middle">{drawn}</svg>'
    )

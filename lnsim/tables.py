"""This module writes small tables: aligned text for a terminal, inline HTML for a value in a notebook.

The HTML takes the colour of the text around it, so it suits light and dark themes. Names come from strangers, so every
text is made printable, cut where it is long, and escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from lnsim.text import printable

_LONGEST = 200
_LONGEST_NOTE = 2_000  # characters that are shown of a name, and of a sentence
_MOST_ROWS = 40
_MOST_LISTED = 12
_CELL = "padding:2px 10px 2px 0;vertical-align:top;background:transparent;"
_QUIET = "opacity:.75;"


def aligned(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A plain table: text to the left, numbers to the right.

    >>> print(aligned(("role", "layers"), [("final", 1), ("pre_mlp", 30)]))
    role     layers
    final         1
    pre_mlp      30
    """
    whole = [list(header), *(list(row) for row in rows)]
    numeric = [all(isinstance(row[i], int) for row in whole[1:]) and len(whole) > 1 for i in range(len(header))]
    widths = [max(len(str(row[i])) for row in whole) for i in range(len(header))]
    forms = [f"{{!s:{'>' if right else '<'}{width}}}" for width, right in zip(widths, numeric, strict=True)]
    return "\n".join("  ".join(map(str.format, forms, row)).rstrip() for row in whole)


def card(kind: str, name: str, facts: Iterable[str], tables: Iterable[str], notes: Iterable[str] = ()) -> str:
    """A value as a notebook shows it, as HTML: its class and name, facts in a line, tables, and notes, one a line.

    The name may be empty, and empty facts are left out.
    """
    heading = f'<span style="{_QUIET}">{_plain(kind)}</span>' + (f" <b>{_plain(name)}</b>" if name else "")
    said = " · ".join(_plain(fact) for fact in facts if fact)
    lines = [f"<div>{heading}</div>", f'<div style="{_QUIET}">{said}</div>', *tables]
    lines += [f"<div>{_plain(note, _LONGEST_NOTE)}</div>" for note in notes]
    return f'<div style="color:inherit;line-height:1.45;overflow-x:auto">{"".join(lines)}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as HTML: the first column heads its row, numbers stand to the right; many rows are counted, not shown."""
    body = [list(row) for row in rows]
    hidden = len(body) - _MOST_ROWS
    if hidden > 0:
        body = [*body[:_MOST_ROWS], [f"and {hidden:,} further", *[""] * (len(header) - 1)]]
    right = [all(map(_numeric, (row[place] for row in body))) for place in range(len(header))]
    head = "".join(_cell("th", cell, side) for cell, side in zip(header, right, strict=True))
    lines = ("".join(_cell("td", cell, side) for cell, side in zip(row, right, strict=True)) for row in body)
    return (
        f'<table style="margin:4px 0;border-collapse:collapse;color:inherit"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(f'<tr>{line}</tr>' for line in lines)}</tbody></table>"
    )


def some(numbers: Sequence[int]) -> str:
    """Numbers, the first of many.

    >>> some([3, 4])
    '3, 4'
    """
    said = ", ".join(str(number) for number in numbers[:_MOST_LISTED])
    return said if len(numbers) <= _MOST_LISTED else f"{said}, … ({len(numbers):,} in all)"


def gap_notes(missing: Iterable[tuple[str, Sequence[int]]], notes: Iterable[str]) -> list[str]:
    """What is missing of each role, and notes, a sentence each."""
    return [f"missing: {role} in layers {some(layers)}" for role, layers in missing] + [f"note: {one}" for one in notes]


def _plain(text: object, longest: int = _LONGEST) -> str:
    shown = printable(str(text)[: longest + 1])
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


def _numeric(cell: object) -> bool:
    return isinstance(cell, (int, float)) or (isinstance(cell, str) and cell[:1] in ("", *"0123456789−+-"))


def _cell(name: str, cell: object, right: bool) -> str:
    text = f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else _plain(cell)
    return f'<{name} style="{_CELL}text-align:{"right" if right else "left"}">{text}</{name}>'

"""This module turns a labelled DataFrame into the table that a reader sees.

Numbers stand right-aligned with a real minus sign, text stands left; each header has its scope; the caption names the
box in which a wide or long table scrolls. The numbers themselves are never changed: the CSV beside it holds them in
full. A table is complete without script; ``templates/tables.js`` lets its readers sort and filter it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lnsim.errors import NotebookError
from lnsim.report.markup import filled, inline
from lnsim.words import GROUP_LABELS, ROLE_LABELS, group_name, header_text, rounded

if TYPE_CHECKING:
    import pandas as pd

_LONG = 14  # a table of more rows scrolls in a box of limited height, and can be filtered
_SORTED_FROM = 5  # a table of fewer rows is read at a glance, so nothing needs to be sorted
_P = "p"  # format of a p-value: four digits, and never as zero
# Class in the style sheet by the group of a pair.
GROUP_CLASSES = {"related": "rel", "independent": "ind", "disputed": "dis"}

# Characters of a cell that no longer fits on one line beside others, and of one that needs several.
_PROSE, _LONG_PROSE = 60, 120


@dataclass(frozen=True, slots=True)
class _Cell:
    """One cell: its HTML, its text (empty where it is a picture), its number, if it is one, and its class."""

    html: str
    text: str
    number: float | None = None
    group: str = ""


def cell_text(value: Any, spec: str = ".3f") -> str:
    """One value as text: floats by `spec`, whole numbers with thousands separators, a missing value as ``none``."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return header_text(value) if value.rpartition("/")[2] in ROLE_LABELS else value
    if isinstance(value, bool) or type(value).__name__ == "bool":
        return "yes" if value else "no"
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, int):
        return f"{number:,}".replace("-", "−")
    if isinstance(number, float) and spec == _P and not math.isnan(number):
        return "<0.0001" if 0 < number < 1e-4 else rounded(number, ".4f")
    if isinstance(number, float):
        return "undefined" if math.isnan(number) else rounded(number, spec).replace("%", " %")
    return str(value)


def table(
    frame: pd.DataFrame,
    caption_id: str,
    label: str,
    claim: str,
    caption: str,
    formats: Mapping[str, str],
    labels: Mapping[str, str],
    parted: bool = False,
    transpose: bool = False,
    whole: bool = False,
    kinds: str = "group",
    cards: bool = False,
    csv: str = "",
) -> str:
    """A DataFrame as a table in its scroll box, its caption the label, the claim in bold, more words, and a CSV's link.

    Index and columns are labelled; columns have one or two levels, and are known by the last. A value may draw itself:
    it has ``html``, and the ``number`` that sorts it. `formats` are those of floats, by column, where the usual one
    (three decimals, four for p) does not do, `labels` what readers see in place of a column's name. A column ``group``
    says what a row's pair is; where a column ``relation`` says it closer, that one is shown in its place. Readers may
    filter by the column `kinds`; that of pairs counts only where it holds groups. `parted` draws a stronger line where
    another group begins, `transpose` sets attributes downwards, `whole` shows all rows of a long table at once, `cards`
    each row as a card in a narrow window. The id of the caption is unique on the page.
    """
    import pandas as pd

    if frame.empty:
        raise NotebookError(f"Writing the table '{caption_id}': it has no rows or no columns.")
    numbered = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None  # evenly spaced layers have a name
    if numbered and frame.shape[1] > 1 and not transpose:  # row numbers say nothing: the first column names the rows
        frame = frame.set_index(frame.columns[0])
    groups = [] if transpose else _groups(frame, kinds)
    shown = _cells(frame, formats, groups).rename(columns=dict(labels))
    shown = shown.T if transpose else shown
    sorts = len(shown) >= _SORTED_FROM and not transpose
    caption += f" {len(shown)} rows; the box scrolls." * (len(shown) > _LONG and not whole)
    link = f'In full: <a href="{escape(csv)}">{escape(csv.rpartition("/")[2])}</a>' if csv else ""
    names = [name if isinstance(name, tuple) else (name,) for name in shown.columns]
    tops = [(header_text(top), len(list(part))) for top, part in groupby(name[0] for name in names)]
    return filled(
        "table.html.j2",
        box="scroll long" if len(shown) > _LONG and not whole else "scroll",
        kind="dataframe" + " sorts" * sorts + " cards" * cards,
        id=caption_id,
        words=" ".join(filter(None, [f"<b>{inline(f'{label} {claim}')}</b>", inline(caption), link])),
        tops=tops if len(names[0]) > 1 else [],
        corner=header_text(shown.index.name or ""),
        columns=[(header_text(name[-1]), _is_text(shown.iloc[:, at].tolist())) for at, name in enumerate(names)],
        rows=_rows(shown, groups, sorts, cards, parted),
    )


def _groups(frame: pd.DataFrame, kinds: str) -> list[str]:
    """What the pair of each row is, or of which kind the row is, where a column says so."""
    if kinds not in frame.columns or frame.columns.nlevels > 1:
        return []
    values = [str(value) for value in frame[kinds]]
    return values if kinds != "group" or set(values) <= set(GROUP_LABELS) else []


def _cells(frame: pd.DataFrame, formats: Mapping[str, str], groups: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    if groups and {"group", "relation"} <= set(frame.columns):
        frame = frame.drop(columns="group")
    columns = []
    for place, name in enumerate(frame.columns):
        last = str(name[-1] if isinstance(name, tuple) else name)
        coloured = groups if last in ("group", "relation") else []
        values = frame.iloc[:, place].tolist()
        values = [group_name(value) for value in values] if coloured and last == "group" else values
        spec = formats.get(last, _spec(last))
        columns.append([_cell(*one, spec) for one in zip(values, coloured or [""] * len(values), strict=True)])
    cells = pd.DataFrame(dict(enumerate(columns)), index=frame.index, dtype=object)
    return cells.set_axis(frame.columns, axis=1)


def _cell(value: Any, group: str, spec: str) -> _Cell:
    if hasattr(value, "html"):
        return _Cell(value.html, "", value.number)
    text = cell_text(value, spec)
    return _Cell(escape(text), text, _number(value), GROUP_CLASSES.get(group, ""))


def _number(value: Any) -> float | None:
    number = value.item() if hasattr(value, "item") else value
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return float(number) if is_number and math.isfinite(number) else None


def _spec(name: str) -> str:
    """The usual format of a column's floats: p-values need a fourth digit, shares read best in per cent."""
    if name.startswith("p_") or name == "pvalue":
        return _P
    return ".1%" if "share" in name.split("_") else ".3f"


def _is_text(cells: Sequence[_Cell]) -> bool:
    """A column is text where no cell starts like a number."""
    return not any(cell.text.lstrip("<")[:1].isdigit() or cell.text[:2].strip("−")[:1].isdigit() for cell in cells)


def _text_class(cells: Sequence[_Cell]) -> str:
    """A column of sentences is broken into lines, and one of long ones is given more room."""
    longest = max((len(cell.text) for cell in cells), default=0)
    return "prose wide" if longest > _LONG_PROSE else "prose" if longest > _PROSE else "text"


# Attributes of the row and of its name, the name, and the cells: attributes and HTML.
_Row = tuple[dict[str, str | None], dict[str, str | None], str, list[tuple[dict[str, str | None], str]]]


def _rows(shown: pd.DataFrame, groups: Sequence[str], sorts: bool, cards: bool, parted: bool) -> Iterator[_Row]:
    columns = [shown.iloc[:, place].tolist() for place in range(shown.shape[1])]
    texts = [_text_class(cells) if _is_text(cells) else "" for cells in columns]
    heads = [header_text(name[-1] if isinstance(name, tuple) else name) if cards else None for name in shown.columns]

    def sort_key(number: float | None) -> str | None:
        """The number by which a row is sorted, with more digits than readers see."""
        return f"{number:.10g}" if sorts and number is not None else None

    for place, (name, *cells) in enumerate(zip(shown.index, *columns, strict=True)):
        begins = parted and bool(groups) and place > 0 and groups[place] != groups[place - 1]
        of_kind = header_text(group_name(groups[place])) if groups else None
        of_row = {"class": "gap" if begins else None, "data-kind": of_kind}
        row = []
        for cell, text, head in zip(cells, texts, heads, strict=True):
            kind = " ".join(filter(None, [text, cell.group])) or None
            row.append(({"class": kind, "data-label": head, "data-v": sort_key(cell.number)}, cell.html))
        yield of_row, {"data-v": sort_key(_number(name))}, header_text(name), row

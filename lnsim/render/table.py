"""This module turns a labelled DataFrame into the table that a reader sees.

Numbers stand right-aligned with a real minus sign, text stands left; each header has its scope; the caption names the
box in which a wide table scrolls. The numbers themselves are never changed: the CSV beside it holds them in full.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

from lnsim.errors import NotebookError
from lnsim.render.markup import inline
from lnsim.render.words import ROLE_LABELS, header_text, rounded

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cell_text", "table"]


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
    gap_before: Sequence[Hashable] = (),
    transpose: bool = False,
) -> str:
    """A DataFrame as a table in its scroll box.

    Args:
        frame: index and columns labelled; columns of one or two levels.
        caption_id: id of the caption, unique on the page.
        label: for example ``Table 1.``; `claim` follows it in bold, then `caption`.
        formats: by column name (the last level), the format of its floats, where it is not the usual one.
        labels: by column name, what readers see in its place.
        gap_before: index values before which a stronger line parts the rows.
        transpose: True to set attributes downwards, for few rows with many columns.
    """
    import pandas as pd

    if frame.empty:
        raise NotebookError(f"Writing the table '{caption_id}': it has no rows or no columns.")
    numbered = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
    if numbered and frame.shape[1] > 1 and not transpose:
        # Row numbers say nothing; the first column names the rows. Evenly spaced layers, which pandas keeps as a range
        # too, have a name.
        frame = frame.set_index(frame.columns[0])
    texts = _texts(frame, formats)
    texts = texts.rename(columns=dict(labels))
    shown = texts.T if transpose else texts
    words = f"<b>{inline(f'{label} {claim}')}</b> {inline(caption)}"
    return (
        f'<div class="scroll" role="region" aria-labelledby="{escape(caption_id)}" tabindex="0">'
        f'<table class="dataframe"><caption id="{escape(caption_id)}">{words}</caption>\n'
        f"<thead>{_head(shown)}</thead>\n<tbody>\n{_body(shown, gap_before)}</tbody></table></div>"
    )


def _texts(frame: pd.DataFrame, formats: Mapping[str, str]) -> pd.DataFrame:
    import pandas as pd

    columns = {}
    for place, name in enumerate(frame.columns):
        last = str(name[-1] if isinstance(name, tuple) else name)
        spec = formats.get(last, _spec(last))
        columns[place] = [cell_text(value, spec) for value in frame.iloc[:, place].tolist()]
    texts = pd.DataFrame(columns, index=frame.index, dtype=object)
    texts.columns = frame.columns
    return texts


def _spec(name: str) -> str:
    """The usual format of a column's floats: p-values need a fourth digit, shares read best in per cent."""
    if name.startswith("p_") or name == "pvalue":
        return ".4f"
    return ".1%" if "share" in name.split("_") else ".3f"


def _is_text(values: Sequence[str]) -> bool:
    """A column is text where no cell starts like a number."""
    return not any(value[:1].isdigit() or value[:2].strip("−")[:1].isdigit() for value in values)


def _kind(shown: pd.DataFrame, place: int) -> str:
    return ' class="text"' if _is_text(shown.iloc[:, place].tolist()) else ""


def _corner(shown: pd.DataFrame) -> str:
    name = shown.index.name
    return f'<th scope="col">{escape(header_text(name))}</th>' if name else "<td></td>"


def _head(shown: pd.DataFrame) -> str:
    names = [name if isinstance(name, tuple) else (name,) for name in shown.columns]
    rows = ""
    if len(names[0]) > 1:
        groups = ((top, len(list(group))) for top, group in groupby(name[0] for name in names))
        spans = "".join(f'<th scope="colgroup" colspan="{n}">{escape(header_text(top))}</th>' for top, n in groups)
        rows = f"<tr><td></td>{spans}</tr>"
    cells = "".join(
        f'<th scope="col"{_kind(shown, place)}>{escape(header_text(name[-1]))}</th>' for place, name in enumerate(names)
    )
    return f"{rows}<tr>{_corner(shown)}{cells}</tr>"


def _body(shown: pd.DataFrame, gap_before: Sequence[Hashable]) -> str:
    kinds = [_kind(shown, place) for place in range(shown.shape[1])]
    rows = ""
    for label, values in zip(shown.index, shown.to_numpy().tolist(), strict=True):
        kind = ' class="gap"' if label in gap_before else ""
        cells = "".join(f"<td{kinds[place]}>{escape(value)}</td>" for place, value in enumerate(values))
        rows += f'<tr{kind}><th scope="row">{escape(header_text(label))}</th>{cells}</tr>\n'
    return rows

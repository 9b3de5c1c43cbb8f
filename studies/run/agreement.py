"""This module holds the tables of a run against the recorded ones, and records those of a run.

Recorded are ``data/tables`` and ``figures``, which git tracks and no other run touches. Numbers are recorded with 12
significant digits: the last ones of a float64 differ from processor to processor.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from lnsim.paths import working_root
from lnsim.report.saving import save_csv, saved_by, write_whole

if TYPE_CHECKING:
    import pandas as pd

_DIGITS = 12
_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
_MOST_LINES = 20


class Agreement(Struct, frozen=True):
    """How far the tables of one notebook agree with the recorded ones."""

    n_values: int = 0  # cells of its tables, numbers and texts, those included that only one side has
    n_agree: int = 0  # how many of them agree
    largest: float = 0.0  # the largest difference of two numbers that agree, relative to those above one
    differ: tuple[str, ...] = ()  # what does not agree, each table or column by name
    not_compared: str = ""  # why nothing was compared

    def __add__(self, other: Agreement) -> Agreement:
        n_values, n_agree = self.n_values + other.n_values, self.n_agree + other.n_agree
        return Agreement(n_values, n_agree, max(self.largest, other.largest), self.differ + other.differ)


def compare(study: str, number: str, folder: Path) -> Agreement:
    """Hold the tables that a notebook left in the folder of its study's reports against the recorded ones."""
    kept = working_root() / "data" / "tables" / study
    if not kept.is_dir():
        return Agreement(not_compared=f"{study} has no recorded tables")
    names = sorted({path.name for path in saved_by(number, kept, folder / "tables")})
    return sum((_table(f"{study}/{name}", folder / "tables" / name, kept / name) for name in names), Agreement())


def record(study: str, number: str, folder: Path) -> None:
    """Put the tables and figures that a notebook left in this folder in place of the recorded ones."""
    tables, figures = (working_root() / kind / study for kind in ("data/tables", "figures"))
    for old in saved_by(number, tables, figures):
        old.unlink()
    for path in saved_by(number, folder / "tables"):
        save_csv(_read(path).map(_shortened), tables / path.name)
    for path in saved_by(number, folder / "figures"):
        write_whole(figures / path.name, path.read_bytes())


def statement(found: Iterable[Agreement]) -> list[str]:
    """What terminal and index say of the notebooks of a run, a line each; the first one counts the values."""
    found = list(found)
    whole, lines = sum(found, Agreement()), []
    if whole.n_values:
        lines.append(
            f"{whole.n_agree:,} of {whole.n_values:,} values of the tables agree with the recorded ones (largest "
            f"difference {whole.largest:.0g}; allowed are {_RELATIVE:.0g}, relative, and {_ABSOLUTE:.0g})."
        )
    lines += [f"Differs from the record: {one}." for one in whole.differ[:_MOST_LINES]]
    if len(whole.differ) > _MOST_LINES:
        lines.append(f"{len(whole.differ) - _MOST_LINES} more differ; run.json of each study names them all.")
    reasons = dict.fromkeys(one.not_compared for one in found if one.not_compared)
    return lines + [f"Not compared with the record: {reason}." for reason in reasons]


def _table(name: str, new: Path, kept: Path) -> Agreement:
    """Compare two tables, of which one may not be there; an empty one counts as one value."""
    sides = [_read(path) for path in (new, kept) if path.is_file()]
    size = max(1, *(frame.size for frame in sides))
    if len(sides) < 2:
        return Agreement(size, differ=(f"{name} {'was not recorded' if new.is_file() else 'is no longer written'}",))
    shapes = [f"{len(frame)} rows of {', '.join(frame.columns)}" for frame in sides]
    if shapes[0] != shapes[1]:
        return Agreement(size, differ=(f"{name}: {shapes[0]}; recorded {shapes[1]}",))
    columns = (_column(f"{name}, column '{head}'", *(frame[head] for frame in sides)) for head in sides[0])
    return sum(columns, Agreement()) if sides[0].size else Agreement(size, size)


def _column(name: str, new: pd.Series, kept: pd.Series) -> Agreement:
    import numpy as np
    import pandas as pd

    a, b = (pd.to_numeric(side, errors="coerce").replace([np.inf, -np.inf], np.nan) for side in (new, kept))
    gap = (a - b).abs()
    agree = (new == kept) | (gap <= _ABSOLUTE + _RELATIVE * b.abs())
    largest = (gap / b.abs().clip(lower=1))[agree].max()
    differ: tuple[str, ...] = ()
    if not agree.all():
        row = int(agree.argmin())
        found = f"in row {row + 1} '{new[row]:.60}', recorded '{kept[row]:.60}'"
        differ = (f"{name}: {(~agree).sum()} of {len(agree)} values, {found}",)
    return Agreement(len(agree), int(agree.sum()), 0.0 if np.isnan(largest) else float(largest), differ)


def _shortened(cell: str) -> str:
    """A float in as many digits as are recorded; whatever is not written as pandas writes a float stays as it is."""
    try:
        return repr(float(f"{float(cell):.{_DIGITS}g}")) if repr(float(cell)) == cell else cell
    except ValueError:
        return cell


def _read(path: Path) -> pd.DataFrame:
    """A CSV as it is written, every cell a text; a column of row names has no heading."""
    import pandas as pd

    return pd.read_csv(path, dtype=str, keep_default_na=False).rename(columns={"Unnamed: 0": ""})

"""This module saves figures and tables beside the page that shows them, the same bytes at every run.

Names are number and subject: ``reports/<study>/figures/01_terms.svg``, ``reports/<study>/tables/01_terms.csv``. The
page links its tables there, so that the folder can be sent as it is. A file is written under a temporary name and
renamed, so that nobody finds half of one.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lnsim.errors import NotebookError
from lnsim.paths import from_here, working_root
from lnsim.text import printable
from lnsim.words import TEXTS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure

NOT_WRITTEN: Mapping[str, str] = TEXTS["not_written"]  # why a page, figure or table is not
PAGE_VARIABLE = "LNSIM_PAGE_FOLDER"  # environment variable of a run's kernels: the folder of the page that they make
_MARK = ".lnsim-reports"  # file that says of a folder that it is one of reports
_NAME = re.compile(r"(\d\d|compare|matrix)_[a-z0-9_]+")
_TICK = "$\\mathdefault{"  # what matplotlib itself writes beside a logarithmic axis
_DPI = 200
_GIF_DPI = 90
_FRAMES_PER_SECOND = 4


def write_whole(path: Path, data: bytes) -> Path:
    """Write a file under a temporary name beside it, then rename it: it is whole or it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(data)
    temporary.replace(path)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write a page or a CSV, whole, in which no sign steers what shows it."""
    return write_whole(path, printable(text, keep="\n\t").encode("utf-8"))


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Where the system refuses what is written inside, NotebookError says what it was, and the system's reason."""
    try:
        yield
    except OSError as error:
        raise NotebookError(f"Writing {what}: {error.strerror or error}.") from error


def claim_folder(folder: Path, parts: Iterable[str] = ()) -> None:
    """Mark a folder as one of reports, and make its parts, before anything runs.

    What others keep there is not replaced: NotebookError where it holds other files and no mark, or cannot be written.
    """
    mark = folder / _MARK
    with writing(f"reports into '{folder}'"):
        # A folder inside that is marked itself is one of trials, and may come before the first whole run.
        inside = folder.iterdir() if folder.exists() else ()
        held = sorted(path.name for path in inside if not (path / _MARK).is_file())
        if held and not mark.is_file() and not any(folder.glob("*/run.json")):
            raise NotebookError(NOT_WRITTEN["other_files"].format(folder=folder, held=held[0]))
        write_whole(mark, b"Reports of lnsim: its next run may replace what lies in this folder.\n")
        for part in parts:
            (folder / part).mkdir(exist_ok=True)


def figure_bytes(figure: Figure, kind: str, description: str = "") -> bytes:
    """A figure as ``svg`` or ``png`` bytes, without date; `description` says what it was made from."""
    metadata: dict[str, str | None] = {"Description": printable(description)} if description else {}
    _make_plain(figure)
    metadata |= {"Date": None} if kind == "svg" else {"Software": None}
    buffer = io.BytesIO()
    with _laid_out(figure):
        figure.savefig(buffer, format=kind, dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def save_figure(figure: Figure, folder: Path, name: str, description: str) -> bytes:
    """Write a figure as PNG and SVG, the description in the metadata of both; returns the SVG's bytes."""
    _check(name)
    svg = figure_bytes(figure, "svg", description)
    write_whole(folder / f"{name}.svg", svg)
    write_whole(folder / f"{name}.png", figure_bytes(figure, "png", description))
    return svg


def save_animation(moving: FuncAnimation, figure: Figure, folder: Path, name: str) -> bytes:
    """Write an animation as GIF and return its bytes; the same frames give the same bytes.

    Equal frames that follow each other are stored once and shown longer.
    """
    from matplotlib.animation import PillowWriter

    _check(name)
    with tempfile.TemporaryDirectory() as scratch, _laid_out(figure):
        part = Path(scratch) / f"{name}.gif"
        moving.save(part, PillowWriter(fps=_FRAMES_PER_SECOND), dpi=_GIF_DPI)
        gif = part.read_bytes()
    write_whole(folder / f"{name}.gif", gif)
    return gif


def save_table(frame: pd.DataFrame, folder: Path, name: str) -> Path:
    """Write a DataFrame as the CSV of a page."""
    _check(name)
    return save_csv(frame, folder / f"{name}.csv")


def save_csv(frame: pd.DataFrame, path: Path) -> Path:
    """Write a DataFrame as CSV with every digit of its numbers; row numbers without a name are left out."""
    import pandas as pd

    # The shortest text that reads back as the same float64, and line ends that do not depend on the system.
    numbered = isinstance(frame.index, pd.RangeIndex) and frame.index.name is None
    return write_text(path, frame.to_csv(lineterminator="\n", index=not numbered))


def _make_plain(figure: Figure) -> None:
    """Names are drawn as they are: no formula is looked for between two dollar signs, and no control is left."""
    from matplotlib.text import Text

    for axes in figure.axes:
        for axis in filter(None, (axes.xaxis, axes.yaxis, getattr(axes, "zaxis", None))):
            axis.get_ticklabels(which="both")  # gives ticks their words, which are formulas on a logarithmic axis
    for drawn in figure.findobj(Text):
        words = drawn.get_text() if isinstance(drawn, Text) else ""
        if isinstance(drawn, Text) and not words.startswith(_TICK):
            drawn.set_parse_math(False)
            if not words.isprintable():
                drawn.set_text(printable(words, keep="\n"))


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """In our style, since fonts are chosen when a figure is drawn; everything has its place, once for all formats.

    Laying out costs as much as drawing. With an engine that is set but idle, matplotlib would draw everything twice.
    """
    import matplotlib as mpl

    from lnsim.plots.style import style

    with mpl.rc_context({**style, "figure.constrained_layout.use": False}):
        if (engine := figure.get_layout_engine()) is not None:
            # A map keeps its cells square and shrinks by that; only a second pass finds room for its title.
            for _ in range(2 if any(ax.get_aspect() != "auto" for ax in figure.axes) else 1):
                engine.execute(figure)
            figure.set_layout_engine(None)
        yield


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise NotebookError(NOT_WRITTEN["name"].format(name=name))


def page_folder(study: str) -> Path:
    """The folder below which a page's ``tables`` and ``figures`` go: the page's own in a run.

    A notebook that somebody runs alone, in JupyterLab or with papermill, is a trial: its files go to
    ``reports/by_hand/<study>`` and replace none of a run's. NotebookError where others keep their files there.
    """
    if folder := os.environ.get(PAGE_VARIABLE):
        return Path(folder)
    trials = working_root() / "reports" / "by_hand"
    claim_folder(trials)
    return trials / study


def csv_place(path: Path) -> str:
    """Where a table's CSV lies, seen from the page; from the working folder, where a notebook was run by hand."""
    return f"tables/{path.name}" if PAGE_VARIABLE in os.environ else Path(from_here(path)).as_posix()


def saved_by(number: str, *folders: Path) -> Sequence[Path]:
    """The tables and figures of a notebook in these folders, in the order of their names."""
    return sorted(path for folder in folders for path in folder.glob(f"{number}_*.*"))

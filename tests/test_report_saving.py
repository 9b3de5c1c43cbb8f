"""Tests of saved figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.animation import FuncAnimation
from matplotlib.figure import Figure
from PIL import Image

from lnsim.errors import NotebookError
from lnsim.report.saving import claim_folder, figure_bytes, save_animation, save_figure, save_table, write_whole


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_figure_drawn_twice_gives_the_same_bytes(kind: str) -> None:
    def once() -> bytes:
        figure, ax = plt.subplots()
        ax.fill_between([0, 1, 2], [0, 1, 2], [1, 2, 3])
        made = figure_bytes(figure, kind, "a model@commit")
        plt.close(figure)
        return made

    assert once() == once()


def test_an_animation_is_the_same_bytes_twice_and_has_a_picture_for_each_step(tmp_path: Path) -> None:
    def once(folder: Path) -> bytes:
        figure, ax = plt.subplots()
        (point,) = ax.plot([0], [0], "o")
        made = save_animation(FuncAnimation(figure, lambda n: point.set_ydata([n / 60]), 2), figure, folder, "07_toy")
        plt.close(figure)
        return made

    assert once(tmp_path / "1") == once(tmp_path / "2") == (tmp_path / "1" / "07_toy.gif").read_bytes()
    with Image.open(tmp_path / "1" / "07_toy.gif") as picture:
        assert (picture.format, picture.n_frames) == ("GIF", 2)


def test_both_files_say_what_they_were_made_from_and_not_when(tmp_path: Path) -> None:
    svg = save_figure(Figure(figsize=(1, 1)), tmp_path, "01_line", "owner/repo@0123abc")
    assert svg == (tmp_path / "01_line.svg").read_bytes()
    assert b"owner/repo@0123abc" in svg
    assert b"<dc:date>" not in svg
    assert b"owner/repo@0123abc" in (tmp_path / "01_line.png").read_bytes()


def test_a_table_reads_back_with_every_digit(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=20)
    path = save_table(pd.DataFrame({"r": values}), tmp_path, "03_r")
    assert [float(line) for line in path.read_text().splitlines()[1:]] == values.tolist()
    assert b"\r" not in path.read_bytes()


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (None, "a\n1\n2\n"),
        (pd.Index(["x", "y"], name="role"), "role,a\nx,1\ny,2\n"),
        (pd.RangeIndex(0, 20, 10, name="layer"), "layer,a\n0,1\n10,2\n"),
    ],
    ids=["plain numbers", "names", "a named index, even where it counts"],
)
def test_plain_row_numbers_are_not_written_and_named_rows_are(tmp_path: Path, index: Any, text: str) -> None:
    assert save_table(pd.DataFrame({"a": [1, 2]}, index=index), tmp_path, "00_a").read_text() == text


@pytest.mark.parametrize("name", ["terms", "1_terms", "01_Terms", "01_../x", "01_a b"])
def test_a_name_without_number_or_with_other_letters_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotebookError, match="for example '01_terms'"):
        save_table(pd.DataFrame({"a": [1]}), tmp_path, name)


def test_a_file_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "page.html", b"half")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("mine", ["index.html", "notes.txt", "small_models/00_vectors.html"])
def test_a_folder_with_other_files_takes_no_reports(tmp_path: Path, mine: str) -> None:
    path = tmp_path / mine
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    with pytest.raises(NotebookError, match=r"it holds other files, such as .*Name a new or an empty folder"):
        claim_folder(tmp_path)
    assert [one.read_text() for one in tmp_path.rglob("*") if one.is_file()] == ["mine"]


def test_a_folder_of_reports_takes_the_next_ones(tmp_path: Path) -> None:
    claim_folder(tmp_path / "reports")
    write_whole(tmp_path / "reports" / "index.html", b"page")
    claim_folder(tmp_path / "reports")
    trials = tmp_path / "trials first"
    claim_folder(trials / "by_hand")
    claim_folder(trials)
    older = tmp_path / "older"
    write_whole(older / "small_models" / "run.json", b"{}")
    claim_folder(older)
    with pytest.raises(NotebookError, match=r"Writing reports into '.*': (Not a directory|File exists)"):
        claim_folder(older / "small_models" / "run.json")


def test_powers_of_ten_on_a_logarithmic_axis_are_drawn_as_powers(tmp_path: Path) -> None:
    figure, ax = plt.subplots(layout="constrained")
    ax.plot([1, 2, 3], [1e-7, 1e-3, 1e-1], label="$a$")
    ax.set_yscale("log")
    ax.set_title("$x_1$ of a hostile name")
    save_figure(figure, tmp_path, "01_log", "synthetic")
    plt.close(figure)
    words = "".join(line for line in (tmp_path / "01_log.svg").read_text().splitlines() if "<!--" in line)
    assert "mathdefault{10^{-6}}" in words  # matplotlib names a formula that it has drawn so
    assert not [t for t in ax.get_yticklabels() if t.get_text().startswith("$") and not t.get_parse_math()]
    assert "$x_1$ of a hostile name" in words

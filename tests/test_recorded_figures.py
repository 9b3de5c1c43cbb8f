"""The recorded figures, as SVG: drawn in matplotlib's own font, with every word inside its figure."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.font_manager import FontProperties, findfont

from lnsim.plots.style import style

FIGURES = Path(__file__).resolve().parents[1] / "figures"
SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
SLACK = 0.3
"""Points by which a glyph may stand over: less than a dot of a screen."""


@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_the_font_of_figures_is_a_file_of_matplotlib(weight: str) -> None:
    with mpl.rc_context(style):
        assert Path(findfont(FontProperties(weight=weight))).is_relative_to(mpl.get_data_path())


def moved(element: ElementTree.Element, place: np.ndarray) -> np.ndarray:
    """The matrix of an element inside one that has this matrix."""
    for name, words in re.findall(r"(\w+)\(([^)]*)\)", element.get("transform", "")):
        given = [float(word) for word in re.split(r"[ ,]+", words.strip())]
        step = np.eye(3)
        if name == "translate":
            step[:2, 2] = given if len(given) == 2 else (given[0], 0)
        elif name == "scale":
            step[0, 0], step[1, 1] = given[0], given[-1]
        else:
            assert name == "rotate"
            sine, cosine = np.sin(np.deg2rad(given[0])), np.cos(np.deg2rad(given[0]))
            step[:2, :2] = [[cosine, -sine], [sine, cosine]]
        place = place @ step
    return place


def corners(element: ElementTree.Element, place: np.ndarray, glyphs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The corners of all glyphs that are drawn inside an element, in points of the figure."""
    if element.tag == f"{SVG}defs":
        return []
    place = moved(element, place)
    own = [place @ glyphs[element.get(LINK, "")[1:]]] if element.tag == f"{SVG}use" else []
    return own + [found for child in element for found in corners(child, place, glyphs)]


def words(path: Path) -> list[tuple[str, np.ndarray]]:
    """Each text of a figure, and its corners; the fonts are those of the glyphs."""
    root = ElementTree.parse(
        path, ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    ).getroot()
    glyphs = {}
    for glyph in (one for part in root.iter(f"{SVG}defs") for one in part.iter(f"{SVG}path")):
        points = np.array([float(word) for word in re.findall(r"-?[\d.]+", glyph.get("d", ""))] or [0, 0]).reshape(
            -1, 2
        )
        low, high = points.min(axis=0), points.max(axis=0)
        box = np.array([[low[0], high[0], low[0], high[0]], [low[1], low[1], high[1], high[1]], [1, 1, 1, 1]])
        glyphs[glyph.get("id", "")] = moved(glyph, np.eye(3)) @ box
    found = []
    for group in root.iter(f"{SVG}g"):
        if group.get("id", "").startswith("text_"):
            said = " ".join(str(one.text).strip() for one in group.iter(ElementTree.Comment))
            if drawn := corners(group, np.eye(3), glyphs):
                found.append((said, np.hstack(drawn)[:2]))
    return found


@pytest.mark.parametrize("study", ["small_models", "zoo"])  # git leaves out those of a replica
def test_no_word_leaves_its_figure_and_all_are_drawn_in_the_same_font(study: str) -> None:
    out, fonts, n_words = [], set(), 0
    for path in sorted((FIGURES / study).glob("*.svg")):
        text = path.read_text("utf-8")
        fonts |= set(re.findall(r'<path id="([A-Za-z-]+)-[0-9a-f]+"', text))
        width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())
        for said, at in words(path):
            n_words += 1
            if at.min() < -SLACK or at[0].max() > width + SLACK or at[1].max() > height + SLACK:
                out.append(f"{path.name}: {said!r} in x {at[0].min():.0f} to {at[0].max():.0f} of {width:.0f}, "
                           f"y {at[1].min():.0f} to {at[1].max():.0f} of {height:.0f}")  # fmt: skip
    assert out == []
    assert n_words > 100
    assert fonts <= {"DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique"}

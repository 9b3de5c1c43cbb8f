"""Where the words of a figure stand, from the glyphs of its SVG: those that leave it, and those that meet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
SLACK, MEET = 0.3, 1.0
"""Points by which a glyph may stand over, less than a dot of a screen; and by which the boxes of two texts may meet."""


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
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(path, parser).getroot()
    glyphs = {}
    for glyph in (one for part in root.iter(f"{SVG}defs") for one in part.iter(f"{SVG}path")):
        ends = [float(word) for word in re.findall(r"-?[\d.]+", glyph.get("d", ""))] or [0, 0]
        points = np.array(ends).reshape(-1, 2)
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


def faults(path: Path) -> Iterator[str]:
    """Every text of a figure that is cut by its edge, and every two whose glyphs' boxes overlap."""
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', path.read_text("utf-8")).groups())
    placed = [(said, at.min(axis=1), at.max(axis=1)) for said, at in words(path)]
    for said, low, high in placed:
        if low.min() < -SLACK or high[0] > width + SLACK or high[1] > height + SLACK:
            yield f"{path.name}: {said!r} leaves the figure ({low.round()} to {high.round()} of {width, height})"
    for (one, low, high), (other, low_too, high_too) in combinations(placed, 2):
        if (np.minimum(high, high_too) - np.maximum(low, low_too)).min() > MEET:
            yield f"{path.name}: {one!r} and {other!r} overlap"

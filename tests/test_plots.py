"""Tests of the kinds of picture: what is drawn and named, that nothing is cut off, saved or left behind."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from lnsim import plots
from lnsim.errors import NotebookError
from lnsim.plots.panels import _moved_apart
from lnsim.plots.style import INDEPENDENT, RELATED, readable
from lnsim.report.saving import figure_bytes
from lnsim.study.catalog import list_studies, load_study
from studies.pictures import heaps

ROLES = ("pre_attention", "pre_mlp")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def layers(n: int = 8) -> pd.DataFrame:
    """Two roles of three pairs by layer, with a band and a reference."""
    found = []
    for pair, group, height in (("A × B", "related", 0.9), ("A × C", "related", 0.0), ("B × C", "independent", 0.1)):
        for role in ROLES:
            r = height * (1 + 0.1 * np.cos(np.arange(n)))
            columns = {"pair": pair, "group": group, "role": role, "layer": np.arange(n), "r": r}
            found.append(pd.DataFrame({**columns, "low": -0.1, "high": 0.1, "expected": 0.5}))
    return pd.concat(found, ignore_index=True)


def matrix(value: float, labels: str = "ABC") -> pd.DataFrame:
    found = pd.DataFrame(value, index=list(labels), columns=list(labels))
    found.iloc[0, -1] = found.iloc[-1, 0] = np.nan
    return found


def heights() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return pd.DataFrame({f"layer {layer}": generator.normal(size=50) for layer in (0, 3)})


DRAWN: dict[str, Callable[[], Axes | Figure]] = {
    "curves": lambda: plots.curves(layers()[:16], "layer", "r", hue="role", reference="expected"),
    "curves, many": lambda: plots.facets(
        plots.curves, layers(), "pair", x="layer", y="r", hue="role", group="group", title="Share", log=True
    ),
    "marks over a band": lambda: plots.facets(
        plots.curves, layers(), "role", x="layer", y="r", hue="group", lines=False, band=("low", "high")
    ),
    "scatter": lambda: plots.scatter(layers(), "r", "high", diagonal=True),
    "strips": lambda: plots.strips(layers(), "r", "pair", band=("low", "high"), zero=True, mean=True),
    "strips, two kinds": lambda: plots.strips(
        layers(), "r", "pair", style="role", markers={"pre_attention": "D", "pre_mlp": "o"}, dodge=True
    ),
    "strips, one kind": lambda: plots.strips(
        layers()[layers().role == "pre_mlp"], "r", "pair", style="role", markers={"pre_mlp": "o"}, dodge=True
    ),
    "heaps": lambda: heaps(heights(), notes={"layer 0": "mean 0.1\nmean/rms 0.2"}),
    "maps": lambda: plots.maps({"pre_mlp": matrix(0.5), "a-long-name × another-long-name": matrix(0.2)}, numbers=True),
    "maps, cosine": lambda: plots.maps({"a": matrix(0.97)}, "cosine"),
}


def whole(drawn: Axes | Figure) -> Figure:
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def words(drawn: Axes | Figure) -> list[str]:
    """Every text in a figure."""
    texts = whole(drawn).findobj(mpl.text.Text)
    return [text.get_text() for text in texts if isinstance(text, mpl.text.Text) and text.get_text().strip()]


@functools.cache
def saved(name: str) -> bytes:
    """A kind as a page saves it, drawn once for all questions to it."""
    before = dict(mpl.rcParams)
    figure = whole(DRAWN[name]())
    svg = figure_bytes(figure, "svg")
    assert {key for key, value in mpl.rcParams.items() if before[key] != value} == set()
    assert not figure.legends
    assert not any(ax.get_legend() for ax in figure.axes)
    with mpl.rc_context(plots.style):
        box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert width == pytest.approx(6.8)
    assert -0.02 <= box.x0 <= box.x1 <= width + 0.02
    assert -0.02 <= box.y0 <= box.y1 <= height + 0.02
    return svg


@pytest.mark.parametrize("name", DRAWN)
def test_every_kind_keeps_to_its_size_has_no_legend_and_leaves_the_settings_alone(name: str) -> None:
    assert saved(name).endswith(b"</svg>\n")


def test_lines_are_named_at_their_ends_only_once_in_a_figure_or_only_the_strong_ones() -> None:
    figure = plots.facets(plots.curves, layers(), "pair", x="layer", y="r", hue="role", sharey=True)
    assert words(figure).count("pre-attention") == 1
    assert words(figure).count("pre-MLP") == 1
    assert len({ax.get_ylim() for ax in figure.axes[:3]}) == 1
    figure = plots.facets(plots.curves, layers(), "pair", x="layer", y="r", hue="role", log=True)
    assert words(figure).count("no change at all") == 1  # a pair of which a logarithmic axis can show nothing
    ax = plots.curves(layers(), "layer", "r", hue="pair", group="group", units="role", strong=["A × B", "not there"])
    assert [text.get_text() for text in ax.texts] == ["A × B"]
    assert max(line.get_linewidth() for line in ax.lines) == 2.2
    given = plt.subplots()[1]
    assert plots.curves(layers(), "layer", "r", ax=given) is given
    assert plots.strips(layers(), "r", "pair", ax=plt.subplots()[1]).get_ylabel() == ""


def test_a_group_keeps_one_colour_in_every_kind_and_roles_theirs_in_every_tower() -> None:
    found = plots.palette(["related", "independent", "pre_mlp", "encoder/pre_mlp", "pre_attention", "MiniLM"])
    assert (found["related"], found["independent"]) == (RELATED, INDEPENDENT)
    assert found["pre_mlp"] == found["encoder/pre_mlp"] != found["pre_attention"]
    assert plots.palette(["MiniLM"], {"MiniLM": "#112233"}) == {"MiniLM": "#112233"}
    assert plots.palette(["faint"], {"faint": "#88ccee"})["faint"] < "#88ccee"  # darkened, so that its line is seen
    ax = plots.strips(layers(), "r", "pair")
    marks = {to_hex(colour) for drawn in ax.collections for colour in drawn.get_edgecolors()}
    assert marks == {RELATED, INDEPENDENT}


@pytest.mark.parametrize("study", list_studies())
def test_every_models_name_can_be_read_in_its_colour(study: str) -> None:
    for colour in load_study(study).colours.values():
        linear = [((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(readable(colour))]
        assert 1.05 / (np.dot((0.2126, 0.7152, 0.0722), linear) + 0.05) >= 4.45


def test_the_band_of_a_row_is_its_widest_and_the_bar_its_mean() -> None:
    frame = layers().assign(low=lambda rows: np.where(rows.role == "pre_mlp", -0.3, -0.1))
    ax = plots.strips(frame, "r", "pair", band=("low", "high"), mean=True)
    assert ax.patches[0].get_width() == pytest.approx(0.4)
    bars = [line.get_segments()[0][0][0] for line in ax.collections if hasattr(line, "get_segments")]
    assert bars == pytest.approx([rows.r.mean() for _, rows in frame.groupby("pair", sort=False)])


def test_a_map_is_symmetric_about_zero_and_prints_its_limits() -> None:
    figure = plots.maps({"pre_mlp": matrix(-0.5)}, numbers=True)
    assert {mesh.get_clim() for mesh in figure.axes[0].collections} == {(-1.0, 1.0)}
    assert {"−1", "0", "1", "−.50", "pre-MLP"} <= set(words(figure))


def test_values_outside_a_maps_limits_are_refused() -> None:
    with pytest.raises(NotebookError, match=r"a map of r: 0\.800 to 0\.800 leave its limits, -0\.5 to 0\.5"):
        plots.maps({"a": matrix(0.8)}, limit=0.5)


def test_labels_are_moved_apart_as_little_as_possible() -> None:
    assert _moved_apart(np.array([0.0, 5.0]), 1.0).tolist() == [0.0, 5.0]
    moved = _moved_apart(np.array([1.0, 1.0, 1.1, 9.0]), 1.0)
    assert np.diff(moved).min() >= 1.0 - 1e-12
    assert moved[:3].mean() == pytest.approx(np.mean([1.0, 1.0, 1.1]))
    assert moved[3] == 9.0


def test_long_titles_break_at_the_sign_of_a_pair_or_between_words() -> None:
    assert plots.broken("a" * 31 + " × b") == "a" * 31 + " ×\nb"
    assert plots.broken("one two three", 8) == "one two\nthree"

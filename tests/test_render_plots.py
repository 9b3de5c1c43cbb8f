"""Tests of the figures: what is drawn, what is labelled, and that nothing is saved or left behind."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lnsim.errors import NotebookError
from lnsim.render import plots
from lnsim.render.plots.style import _moved_apart, broken, role_colour, title_of
from lnsim.render.saving import figure_bytes

ROLES = ("pre_attention", "pre_mlp")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def terms() -> pd.DataFrame:
    layers = np.arange(1, 13)
    frames = []
    for role, height in zip(ROLES, (0.02, 0.9), strict=True):
        pattern = 0.01 * np.cos(layers)
        columns = {"layer": layers, "mean_term": height, "pattern_term": pattern, "cosine": height + pattern}
        frames.append(pd.DataFrame({"model": "m", "role": role, "cosine_elsewhere": 0.95, **columns}))
    frame = pd.concat(frames, ignore_index=True)
    return frame.assign(null_low=frame["cosine"] - 0.01, null_high=frame["cosine"] + 0.01)


def each() -> pd.DataFrame:
    frame = pd.DataFrame({"model": "m", "layer": range(6), "cosine_mean": np.linspace(0.1, 0.9, 6)})
    return pd.concat([frame.assign(role=role) for role in ROLES], ignore_index=True)


def change() -> pd.DataFrame:
    rows = []
    for pair, related, size in (("a × b", True, 0.001), ("a × c", True, 0.0), ("a × d", False, 0.2)):
        for role in ("post_attention", "post_mlp"):
            rows += [(pair, related, role, layer, float(size > 0), size, 1e-8) for layer in range(6)]
    return pd.DataFrame(rows, columns=["pair", "related", "role", "layer", "changed_ratio", "mean_abs_diff", "ulp"])


def norms() -> pd.DataFrame:
    rows = [(model, role, layer, layer + 1.0) for model in "xyz" for role in ROLES for layer in range(-1, 5)]
    return pd.DataFrame(rows, columns=["model", "role", "layer", "norm"])


def maps(value: float = 0.5) -> dict[str, pd.DataFrame]:
    frame = pd.DataFrame(np.full((3, 4), value)).rename_axis(index="a", columns="b")
    return {"pre_mlp": frame, "final": frame}


def histogram_values() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    return pd.DataFrame({(role, layer): generator.normal(size=50) for role in ROLES for layer in (0, 3)})


EVERY = {
    "curves": lambda: plots.baseline_curves(terms(), 0),
    "curves, small": lambda: plots.baseline_thumbnail(terms()),
    "terms": lambda: plots.cosine_terms(terms(), 0),
    "each": lambda: plots.each_layer_as_baseline(each(), 0),
    "null": lambda: plots.null_band(terms(), 0),
    "histograms": lambda: plots.layer_histograms(histogram_values(), 0),
    "norms": lambda: plots.norm_by_layer(norms()),
    "norms, small": lambda: plots.norm_thumbnail(norms()),
    "change": lambda: plots.change_by_layer(change(), "changed_ratio", "Share"),
    "change, log": lambda: plots.change_by_layer(change(), "mean_abs_diff", "Mean", log=True, reference="ulp"),
    "change, small": lambda: plots.change_thumbnail(change().head(12), "mean_abs_diff", "change"),
    "maps": lambda: plots.correlation_maps(maps()),
    "maps, long titles": lambda: plots.correlation_maps({f"a-model-{n} × another-model": m for n, m in maps().items()}),
}


def words(drawn: Axes | Figure) -> list[str]:
    """Every text in a figure."""
    figure = drawn if isinstance(drawn, Figure) else drawn.get_figure(root=True)
    return [text.get_text() for text in figure.findobj(mpl.text.Text) if text.get_text().strip()]


@dataclass(frozen=True)
class Drawn:
    """What is left of a figure that was drawn as a page saves it: inches, and which settings it changed."""

    size: tuple[float, float]
    box: tuple[float, float, float, float]
    changed: dict[str, object]


@functools.cache
def drawn(name: str) -> Drawn:
    """Draw a figure once for all questions to it."""
    before = dict(mpl.rcParams)
    made = EVERY[name]()
    figure = made if isinstance(made, Figure) else made.get_figure(root=True)
    figure_bytes(figure, "svg")
    changed = {key: value for key, value in mpl.rcParams.items() if before[key] != value}
    with mpl.rc_context(plots.style):
        box = figure.get_tightbbox()
    return Drawn(tuple(figure.get_size_inches()), (box.x0, box.y0, box.x1, box.y1), changed)


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_draws_keeps_to_its_size_and_leaves_the_settings_alone(name: str) -> None:
    assert drawn(name).changed == {}
    assert drawn(name).size[0] == pytest.approx(2.5 if "small" in name else 6.8)


@pytest.mark.parametrize("name", [name for name in EVERY if "small" not in name])
def test_no_label_is_cut_off_at_the_edge(name: str) -> None:
    (left, low, right, high), (width, height) = drawn(name).box, drawn(name).size
    assert -0.02 <= left <= right <= width + 0.02
    assert -0.02 <= low <= high <= height + 0.02


def test_a_given_axes_is_drawn_into() -> None:
    ax = plt.subplots()[1]
    assert plots.baseline_curves(terms(), 0, ax=ax) is ax
    assert plots.each_layer_as_baseline(each(), 0, ax=ax) is ax


def test_lines_are_labelled_with_their_range_and_there_is_no_legend() -> None:
    ax = plots.baseline_curves(terms(), 0)
    assert "pre-attention, layer 0 as the baseline: 0.01 to 0.03" in words(ax)
    assert "pre-MLP, layer 0 as the baseline: 0.89 to 0.91" in words(ax)
    assert ax.get_legend() is None


def test_small_terms_get_an_enlarged_view_that_says_so() -> None:
    assert sum("enlarged" in text for text in words(plots.cosine_terms(terms(), 0))) == 1


def test_terms_panels_share_one_scale() -> None:
    axes = plots.cosine_terms(terms(), 0).axes[:2]
    assert axes[0].get_ylim() == axes[1].get_ylim()


def test_the_null_counts_the_dots_inside() -> None:
    frame = terms()
    frame.loc[0, "cosine"] = 0.9
    assert "pre-attention: 11 of 12 inside" in words(plots.null_band(frame, 0))


def test_a_pair_without_any_change_says_so_on_a_logarithmic_axis() -> None:
    figure = plots.change_by_layer(change(), "mean_abs_diff", "Mean", log=True)
    assert words(figure).count("no change at all") == 1


def test_all_pairs_share_one_scale() -> None:
    limits = {ax.get_ylim() for ax in plots.change_by_layer(change(), "changed_ratio", "Share").axes[:3]}
    assert len(limits) == 1


def test_norms_outside_the_blocks_are_left_out() -> None:
    figure = plots.norm_by_layer(norms())
    assert min(line.get_xdata()[0] for ax in figure.axes for line in ax.lines) == 0


def test_a_map_is_symmetric_about_zero_and_prints_its_limits() -> None:
    figure = plots.correlation_maps(maps(-0.5))
    assert {image.get_clim() for ax in figure.axes for image in ax.images} == {(-1.0, 1.0)}
    assert {"−1", "0", "1", "−.50", "pre-MLP"} <= set(words(figure))


def test_a_value_outside_a_maps_limits_is_refused() -> None:
    with pytest.raises(NotebookError, match=r"the largest value is 0\.800, outside its limits of ±0\.5"):
        plots.correlation_maps(maps(0.8), limit=0.5)


def test_labels_are_moved_apart_as_little_as_possible() -> None:
    assert _moved_apart(np.array([0.0, 5.0]), 1.0).tolist() == [0.0, 5.0]
    moved = _moved_apart(np.array([1.0, 1.0, 1.1, 9.0]), 1.0)
    assert np.diff(moved).min() >= 1.0 - 1e-12
    assert moved[:3].mean() == pytest.approx(np.mean([1.0, 1.0, 1.1]))
    assert moved[3] == 9.0


def test_roles_keep_their_colours_in_every_tower_and_panels_name_models_where_there_are_several() -> None:
    assert role_colour("encoder/pre_mlp") == role_colour("pre_mlp") != role_colour("pre_attention")
    assert title_of("m", "pre_mlp", ["m", "m"]) == "pre-MLP"
    assert title_of("m", "pre_mlp", ["m", "n"]) == "m, pre-MLP"
    assert broken("a" * 30 + " × b") == "a" * 30 + " ×\nb"

"""Figures of notebooks 07 and 08, and an animation: what is drawn is what was measured, the same bytes each time."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

import lnsim
from lnsim.errors import NotebookError
from lnsim.measure import block_norms, components, depth, geometry, rounding
from lnsim.measure.overview import statistics_by_layer
from lnsim.paths import project_root
from lnsim.render import markup, plots
from lnsim.render import page as page_module
from lnsim.render.plots.style import readable
from lnsim.render.prose import clean_html
from lnsim.render.saving import figure_bytes, save_animation
from lnsim.study.catalog import list_studies, load_study

ROLES = ["post_attention", "post_mlp"]
LABELS = {"a": "MiniLM", "b": "e5"}
COLOURS = {"MiniLM": "#332288", "e5": "#88ccee"}
PAIRS = [["a", "b"]]


@pytest.fixture(scope="module")
def models() -> dict[str, lnsim.NormVectors]:
    return {"a": lnsim.load("all-minilm-l6-v2"), "b": lnsim.load("multilingual-e5-small")}


@pytest.fixture(scope="module")
def named(models: dict[str, lnsim.NormVectors]) -> dict[str, lnsim.NormVectors]:
    return {LABELS[key]: vectors for key, vectors in models.items()}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def lines(ax: plt.Axes) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()]


def test_the_panels_in_space_print_cosine_r_and_both_angles() -> None:
    figure = plots.mean_removal_panels(geometry.mean_removal(geometry.TOY))
    texts = [text.get_text() for text in figure.texts]
    assert texts[0] == "as they are: cosine 0.955, 17.2°"
    assert texts[1] == "less their means: r −0.602, 127.0°"
    assert len(figure.axes) == 2


def test_an_animation_is_the_same_bytes_twice_and_has_a_picture_for_each_step(tmp_path: Path) -> None:
    frame = geometry.mean_removal(geometry.TOY, [0, 0.5, 1])
    one, two = (save_animation(plots.mean_removal_moving(frame), tmp_path / str(n), "07_toy") for n in (1, 2))
    assert one == two == (tmp_path / "1" / "07_toy.gif").read_bytes()
    with Image.open(io.BytesIO(one)) as picture:
        assert picture.format == "GIF"
        assert picture.n_frames == 3
    assert [path.name for path in (tmp_path / "1").iterdir()] == ["07_toy.gif"]


def test_an_animation_waits_behind_a_button_with_its_alt_text_and_passes_the_allow_list() -> None:
    html = clean_html(markup.animation(b"GIF89a", "two vectors <move>", "Figure 2.", "They part.", "Slowly."))
    assert '<details class="motion"><summary>' in html
    assert "open" not in html.split("<summary>")[0]
    assert 'src="data:image/gif;base64,' in html
    assert 'alt="two vectors &lt;move&gt;"' in html
    with pytest.raises(NotebookError, match="it has no alt text"):
        markup.animation(b"GIF89a", " ", "Figure 2.", "They part.", "Slowly.")


@pytest.mark.parametrize(("kind", "mark"), [("stored", ""), ("replica", "REPLICA. ")])
def test_a_page_numbers_an_animation_marks_a_replica_and_frees_its_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mark: str
) -> None:
    shutil.copytree(project_root() / "data" / "studies", tmp_path / "data" / "studies")
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(page_module, "_show", lambda data, metadata=None: shown.append(data))
    page = page_module.Page.open("07", "solar_glm", seed=None)
    page.kind = kind
    moving = plots.mean_removal_moving(geometry.mean_removal(geometry.TOY))
    page.animation(moving, "mean_removal", "They part.", "Slowly.", alt="two vectors")
    assert f"<b>{mark}Figure 1. They part.</b>" in shown[0]["text/html"]
    assert any(text.get_text() == "REPLICA" for text in moving.figure.texts) is bool(mark)
    assert (tmp_path / "figures" / "solar_glm" / "07_mean_removal.gif").is_file()
    assert not plt.get_fignums()


def test_curves_are_the_measured_ones(models: dict[str, lnsim.NormVectors]) -> None:
    curves = geometry.pair_curves(PAIRS, models, ROLES[:1], LABELS)
    figure = plots.cosine_and_r(curves, geometry.best_layers(curves))
    drawn = lines(figure.axes[0])
    assert any(np.array_equal(line, curves["cosine"]) for line in drawn)
    assert any(np.array_equal(line, curves["r"]) for line in drawn)
    assert [text.get_text() for text in figure.axes[0].texts] == ["r", "cosine"]


def test_bars_show_gamma_at_the_left_and_gamma_less_the_mean_at_the_right(models: dict[str, lnsim.NormVectors]) -> None:
    best = geometry.best_layers(geometry.pair_curves(PAIRS, models, ROLES[:1], LABELS))
    bars = geometry.channel_bars(PAIRS, models, best, ROLES[0], LABELS, 0)
    figure = plots.channel_bars(bars, COLOURS, {"MiniLM × e5": "a title"})
    tops = [[path.vertices[:, 1].sum() for path in one.get_paths()] for one in figure.axes[1].collections]
    assert np.allclose(tops[0], bars[bars.model == "MiniLM"].centred)
    assert figure.axes[0].get_title(loc="left") == "a title"


def test_a_map_prints_its_limits_and_counts_layers_in_whole_numbers(named: dict[str, lnsim.NormVectors]) -> None:
    maps = depth.sorted_map(named, ROLES[0])
    figure = plots.gamma_maps(maps)
    values = maps["MiniLM"].to_numpy()
    assert figure.axes[0].get_title(loc="left") == f"MiniLM: {values.min():.2f} to {values.max():.2f}"
    bar = figure.axes[1].child_axes[0]
    assert [label.get_text() for label in bar.get_yticklabels()] == ["least", "largest"]
    assert all(float(tick).is_integer() for tick in figure.axes[0].get_yticks())


def test_every_other_figure_draws_a_line_or_heap_for_each_model(named: dict[str, lnsim.NormVectors]) -> None:
    statistics = statistics_by_layer(named)
    statistics = statistics[statistics["role"].isin(ROLES)]
    drawn = plots.statistics_panels(statistics, COLOURS)
    assert [len(ax.get_lines()) for ax in drawn.axes] == [2, 2, 2, 2, 2, 2, 4, 4]
    heaps = plots.ridges(depth.histograms(named, ROLES), COLOURS)
    assert [len(ax.patches) for ax in heaps.axes] == [2 * 6, 2 * 6]
    norms = plots.block_norms_by_layer(block_norms.two_norms(named, ROLES), COLOURS)
    assert len(norms.axes[0].get_lines()) == 2
    kept = plots.rounding_by_layer(rounding.rounding_by_layer(named, ROLES, 0), COLOURS)
    assert kept.axes[0].get_yscale() == "log"
    assert kept.axes[0].get_ylim()[0] < 1
    found = {"raw": components.principal_components(named, ROLES[0])}
    assert "% of the variance" in plots.component_panels(found, COLOURS).axes[0].get_xlabel()


def test_placed_panels_keep_their_places_when_they_are_saved(named: dict[str, lnsim.NormVectors]) -> None:
    statistics = statistics_by_layer(named)
    figure = plots.statistics_panels(statistics[statistics["role"].isin(ROLES)], COLOURS)
    before = [ax.get_position().bounds for ax in figure.axes]
    assert figure_bytes(figure, "svg") == figure_bytes(figure, "svg")
    assert [ax.get_position().bounds for ax in figure.axes] == before


def test_points_lie_where_distance_and_ratio_say() -> None:
    frame = pd.DataFrame({"kind": ["k_proj", "v_proj"], "norm_ratio": [0.5, 1.0], "rel_l2": [1.1, 1.4]})
    ax = plots.difference_against_ratio(frame)
    points = [line for line in ax.get_lines() if line.get_marker() in ("o", "s")]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in points] == [(0.5, 1.1), (1.0, 1.4)]
    assert plots.projection_thumbnail(frame).figure.get_size_inches().tolist() == [2.5, 1.6]


def test_scores_have_a_mark_a_pair() -> None:
    frame = pd.DataFrame({"kind": ["k_proj"] * 3, "group": ["x", "x", "y"], "z": [-1.0, 4.0, 0.5]})
    ax = plots.scores_by_group(frame).axes[0]
    assert sorted(float(x) for line in ax.get_lines() for x in line.get_xdata()) == [-1.0, 0.5, 4.0]
    assert ax.get_xlim()[1] > 4


@pytest.mark.parametrize("study", list_studies())
def test_every_models_name_can_be_read_in_its_colour(study: str) -> None:
    for colour in load_study(study).colours.values():
        red, green, blue = (
            ((c + 0.055) / 1.055) ** 2.4 if c > 0.04045 else c / 12.92 for c in to_rgb(readable(colour))
        )
        assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.45

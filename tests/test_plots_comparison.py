"""Tests of the figures of metrics side by side."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from lnsim.render import plots
from lnsim.render.plots.style import GROUP_COLOURS

KINDS = [("within", "within", "within one model"), ("related", "fine_tune", "same layer"),
         ("independent", "independent", "same layer"), ("independent", "independent", "mixed layers")]  # fmt: skip


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def frame() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    rows = [
        {"group": group, "relation": relation, "kind": kind, "pair": f"{group} × b", "layer_a": layer}
        for group, relation, kind in KINDS
        for layer in range(3)
    ]
    found = pd.DataFrame(rows).assign(mean_term=0.95)
    r = np.where(found["group"] == "independent", 0.01, 0.9) * generator.uniform(0.9, 1, len(found))
    lengths = {"rel_l2": 0.4, "rel_l2_b": 0.6, "rel_l2_symmetric": 0.48, "l2": 2.0}
    return found.assign(pearson=r, cosine=found["mean_term"] + 0.04 * r, **lengths)


def test_strips_turn_so_that_more_alike_is_to_the_right() -> None:
    figure = plots.metric_strips(frame(), pd.Series({"cosine": 0.917, "l2": np.nan}), ["cosine"])
    cosine, length = figure.axes
    assert cosine.get_title(loc="left") == "cosine: 92 %"
    assert length.get_title(loc="left") == "L2"
    assert not cosine.xaxis_inverted()
    assert length.xaxis_inverted()


def test_every_kind_of_relation_has_its_line_in_its_colour() -> None:
    figure = plots.metric_strips(frame(), pd.Series({"cosine": 1.0, "l2": 1.0}), ["cosine"])
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == ["within", "fine tune", "independent"]
    assert [to_hex(label.get_color()) for label in labels] == [
        GROUP_COLOURS[group] for group in ("within", "related", "independent")
    ]
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [3, 3, 6]


def test_an_undefined_value_has_no_stroke() -> None:
    data = frame()
    data.loc[3, "l2"] = np.nan
    figure = plots.metric_strips(data, pd.Series({"l2": 1.0}), [])
    assert [len(line.get_xdata()) for line in figure.axes[0].lines] == [3, 2, 6]


def test_the_distance_from_what_the_means_give_is_written_for_each_group() -> None:
    ax = plots.cosine_against_means(frame())
    words = [text.get_text() for text in ax.texts]
    assert sorted(word.split(":")[0] for word in words) == ["independent", "related", "within"]
    assert any(word.startswith("independent: at most 0.0004") for word in words)
    assert ax.get_xlim() == ax.get_ylim()


def test_kinds_of_comparison_are_rows_of_two_panels() -> None:
    figure = plots.kinds_of_comparison(frame())
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["Cosine", "Pearson r"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "within one model", "related, same layer", "independent, same layer", "independent, mixed layers",
    ]  # fmt: skip


def test_both_denominators_and_the_symmetric_form_are_marked() -> None:
    ax = plots.length_directions(frame().head(4))
    values = [float(line.get_xdata()[0]) for line in ax.lines if len(line.get_xdata()) == 1]
    assert values == [0.4, 0.6, 0.48] * 4
    assert ax.get_xlim()[0] <= 0


def test_the_thumbnail_draws_related_and_independent_pairs_only() -> None:
    ax = plots.comparison_thumbnail(frame())
    assert sorted({to_hex(line.get_color()) for line in ax.lines}) == sorted(
        GROUP_COLOURS[group] for group in ("related", "independent")
    )
    assert len(ax.texts) == 2

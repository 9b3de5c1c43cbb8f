"""Tests of the figures of rejection rates, of the sigma and of the power."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from lnsim.render import plots

TESTS = ("permutation, mean r", "permutation, ranks", "permutation, largest r")
NAIVE = ("1/sqrt(n), all layers", "1/sqrt(n), one layer", "sigma of four layers")


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def strangers() -> pd.DataFrame:
    even = (np.arange(400) + 1) / 400
    frame = pd.DataFrame({name: even for name in (*TESTS, *NAIVE)})
    return frame.assign(role=["pre_mlp", "pre_attention"] * 200, sigma=np.linspace(-1, 12, 400))


def curves() -> pd.DataFrame:
    rows = [
        {"change": change, "amount": amount, "search": search, "found": 1 - amount / 200, "low": 0.0, "high": 1.0}
        for change in ("share of update", "added noise", "share of layers")
        for amount in (1.0, 4.0, 16.0)
        for search in ("mean r", "largest r")
    ]
    return pd.DataFrame(rows)


def test_a_test_that_keeps_its_word_lies_on_the_dotted_line_inside_the_band() -> None:
    figure = plots.rejection_curves(strangers(), {"tests": list(TESTS), "others": list(NAIVE)})
    left, right = figure.axes
    dotted, drawn = left.lines[0], left.lines[1]
    assert drawn.get_ydata() == pytest.approx(dotted.get_ydata(), abs=1 / 400)
    assert [text.get_text() for text in right.get_legend().get_texts()] == list(NAIVE)
    assert left.get_xscale() == left.get_yscale() == "log"


def test_a_share_of_zero_is_left_out_of_a_logarithmic_axis() -> None:
    frame = strangers()
    frame[NAIVE[0]] = 0.5
    figure = plots.rejection_curves(frame, {"others": [NAIVE[0]]})
    drawn = np.asarray(figure.axes[0].lines[1].get_ydata(), dtype=float)
    assert np.isnan(drawn[0])
    assert drawn[-1] == 1


def test_every_role_has_its_row_of_sigmas() -> None:
    ax = plots.sigma_strokes(strangers())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["pre-attention", "pre-MLP"]
    assert sum(len(line.get_xdata()) for line in ax.lines[2:]) == 400


def test_each_change_has_a_panel_with_a_line_a_search_and_noise_is_logarithmic() -> None:
    figure = plots.power_panels(curves(), 0.01)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["share of update", "added noise", "share of layers"]
    assert [ax.get_xscale() for ax in figure.axes] == ["linear", "log", "linear"]
    assert all(len(ax.lines) == 3 for ax in figure.axes)


def test_the_thumbnail_holds_two_curves_with_their_words() -> None:
    ax = plots.calibration_thumbnail(strangers(), TESTS[0], NAIVE[0])
    assert [text.get_text() for text in ax.texts] == ["permutation", "1/√n"]

"""`lnsim.compare` in a notebook: the numbers of `lnsim compare`, a figure by layer, a frame, errors in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from command_line import run
from made_vectors import drawn, made
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim
from lnsim.errors import ComparisonError, RoleError, SourceError
from lnsim.measure.cells import layer_bands
from lnsim.measure.metrics import pairwise
from lnsim.measure.permutation import permutation_test
from lnsim.report.pair_view import Comparison, compare


@pytest.fixture(scope="module")
def found() -> Comparison:
    return lnsim.compare("all-minilm-l6-v2", "multilingual-e5-small", n_permutations=199, seed=3)


def test_the_frame_holds_what_the_command_prints_as_json(found: Comparison) -> None:
    words = ("all-minilm-l6-v2", "multilingual-e5-small", "--permutations", "199", "--seed", "3", "--json")
    told = json.loads(run("compare", *words)[1])
    frame = found.to_frame()
    assert list(frame.index) == list(told["roles"])
    for role, one in told["roles"].items():
        for name in ("n_layers_compared", "cosine_mean", "pearson_mean", "pvalue", "null_std", "seed"):
            assert frame.loc[role, name] == one[name]
    assert np.isnan(frame.loc["embedding", "margin"])
    assert found.sentence == told["verdict"]["sentence"]


def test_the_table_shows_what_the_command_prints(found: Comparison) -> None:
    html = found._repr_html_()
    text = " ".join(ElementTree.fromstring(html).itertext())
    one = found.summary.roles["post_mlp"]
    assert f"{one.pearson_mean:.4f}" in text
    assert f"Verdict: {found.sentence}" in text
    assert "the share of 199 permutations of b's channels (one for all norms; seed 3)" in text
    assert "Not compared: post_attention, post_mlp: only b has layers 6 to 11." in text
    assert found.sentence in repr(found)


def test_r_by_layer_is_that_of_matched_rows_beside_their_own_permutations(found: Comparison) -> None:
    frame = found.by_layer()
    rows = frame[frame["role"] == "post_mlp"]
    a, b = found.a["post_mlp"], found.b["post_mlp"]
    np.testing.assert_allclose(rows["r"], np.diag(pairwise(a.scale, b.scale[:6], "pearson")))
    assert rows["layer"].tolist() == [0, 1, 2, 3, 4, 5]
    null = permutation_test(a.scale[2:3], b.scale[2:3], 199, 3).null_distribution
    ends = np.quantile(null, (0.025, 0.975))
    np.testing.assert_allclose(rows.loc[rows["layer"] == 2, ["null_low", "null_high"]].to_numpy()[0], ends)


def test_the_figure_has_a_panel_a_role_is_not_left_open_and_is_drawn_by_a_notebook(found: Comparison) -> None:
    import matplotlib.pyplot as plt
    from IPython.core.formatters import DisplayFormatter

    figure = found.plot()
    assert not plt.get_fignums()
    shown, _ = DisplayFormatter().format(figure)
    assert shown["image/png"].startswith(b"\x89PNG")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert [title.partition(":")[0] for title in titles] == ["post-attention", "post-MLP"]
    assert all("of 6 outside" in title.replace("\n", " ") for title in titles)
    frame = found.by_layer()
    drawn_r = next(line.get_ydata() for line in figure.axes[1].lines if len(line.get_ydata()) == 6)
    np.testing.assert_allclose(drawn_r, frame.loc[frame["role"] == "post_mlp", "r"])
    outside = lnsim.compare(found.a, found.b, "embedding", 9)  # a norm outside the blocks, where there are no others
    assert list(outside.summary.roles) == ["embedding"]
    (ax,) = outside.plot().axes
    assert ax.get_title(loc="left").startswith("embedding: ")


def test_vectors_sources_and_folders_can_be_mixed(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    found = compare(folder, lnsim.load(folder), "input_layernorm", n_permutations=9)
    assert list(found.summary.roles) == ["pre_attention"]
    assert found.summary.judgement.key in ("identical", "too_few")
    assert found.names == (str(folder), lnsim.load(folder).source)
    both = compare(lnsim.load(folder), lnsim.load(folder), ["pre_mlp", "final"], n_permutations=9)
    assert list(both.summary.roles) == ["pre_mlp", "final"]
    assert "post_attention_layernorm" in both._repr_html_()


def test_a_wrong_name_suggests_the_near_ones_and_a_second_error_is_a_note() -> None:
    with pytest.raises(SourceError, match="all-minilm-l6-v2") as caught:
        compare("all-minilm-l6-v", "sre-minilm-l")
    assert "sre-minilm-l6" in caught.value.__notes__[0]


def test_roles_that_vectors_lack_are_errors_and_models_that_do_not_meet_a_verdict() -> None:
    with pytest.raises(RoleError, match="has no norms of role 'final'; it has pre_mlp"):
        compare(drawn(0), drawn(1), "final")
    apart = compare(drawn(0), drawn(1, size=32))
    assert "Not comparable: " in apart.text()
    assert "their hidden sizes are 64 and 32" in apart._repr_html_()


def test_a_layer_without_a_defined_r_is_left_out_of_the_figure() -> None:
    scale = drawn(0)["pre_mlp"].scale.copy()
    scale[1] = 1.0
    rows = layer_bands(made(scale), drawn(1), ["pre_mlp"], 99, 0)
    assert rows["layer"].tolist() == [0, 2, 3, 4]
    with pytest.raises(ComparisonError, match="no common layer has a defined r"):
        layer_bands(made(scale[1:2]), drawn(1), ["pre_mlp"], 99, 0)
    found = compare(made(scale), drawn(1), n_permutations=9)
    assert np.isnan(found.to_frame().loc["pre_mlp", "pearson_mean"])
    assert "γ has no pattern in layer 1" in found._repr_html_()


def test_names_made_to_hurt_are_shown_as_text() -> None:
    vectors = drawn(0)
    object.__setattr__(vectors, "source", "\"><script>alert('1')</script>\x1b[31m\u202e")
    found = compare(vectors, drawn(1), n_permutations=9)
    html = found._repr_html_()
    ElementTree.fromstring(html)
    assert "<script" not in html
    assert not {"\x1b", "\u202e"} & set(html + repr(found) + found.plot().get_suptitle())

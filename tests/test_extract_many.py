"""Many checkpoints at once, and what need not be read twice: counted in requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hub_stand_in import COMMIT, LATER_COMMIT, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, norm_bits

import lnsim
from lnsim.checkpoint.extract import extract_and_keep, extract_many
from lnsim.checkpoint.reading import Question
from lnsim.errors import LnsimError, RepoNotFoundError, StoreError


def bits(found: lnsim.NormVectors | LnsimError) -> dict[str, bytes]:
    assert isinstance(found, lnsim.NormVectors)
    return norm_bits(found.stored)


def fill(hub: HubStandIn, count: int) -> list[Question]:
    for seed in range(count):
        hub.add(f"a/m{seed}", checkpoint_files(llama_tensors(seed=seed), LLAMA_CONFIG, 4))
    return [Question(f"a/m{seed}") for seed in range(count)]


def test_each_of_many_sources_is_answered_in_turn(make_hub: Callable[..., HubStandIn], tmp_path: Path) -> None:
    hub, told = make_hub(latency=0.01), []
    questions = fill(hub, 12)
    questions.insert(5, Question("no/such"))
    found = list(extract_many(questions, out=tmp_path, progress=lambda done, planned: told.append((done, planned))))
    assert isinstance(found.pop(5), RepoNotFoundError)
    assert [bits(vectors) for vectors in found] == [norm_bits(llama_tensors(seed=seed)) for seed in range(12)]
    assert {path.name for path in tmp_path.iterdir()} == {f"a--m{n}@{COMMIT[:12]}.safetensors" for n in range(12)}
    assert sum(vectors.requests for vectors in found if isinstance(vectors, lnsim.NormVectors)) + 1 == len(hub.requests)
    assert max(hub.connections("hub"), hub.connections("cdn")) <= 16
    assert told[-1][0] == told[-1][1] > 12


@pytest.mark.parametrize(("source", "requests"), [("a/m0", 1), (f"a/m0@{COMMIT}", 0)])
def test_a_second_run_asks_for_the_commit_at_most(hub: HubStandIn, tmp_path: Path, source: str, requests: int) -> None:
    fill(hub, 1)
    first = extract_and_keep(source, out=tmp_path)
    hub.forget()
    second = extract_and_keep(source, out=tmp_path)
    assert (second.requests, len(hub.requests)) == (requests, requests)
    assert (bits(second), second.path, second.commit) == (bits(first), first.path, COMMIT)
    assert (second.source, second.missing_layers, second.notes) == (first.source, first.missing_layers, first.notes)


def test_a_narrower_question_is_answered_by_the_fuller_extract_which_stays(hub: HubStandIn, tmp_path: Path) -> None:
    fill(hub, 1)
    before = extract_and_keep("a/m0", out=tmp_path).path
    assert before is not None
    content = before.read_bytes()
    found = extract_and_keep("a/m0", "input_layernorm", out=tmp_path)
    assert (list(found), found.requests, found.path) == (["pre_attention"], 1, before)
    assert before.read_bytes() == content


@pytest.mark.parametrize("again", [False, True])
def test_a_question_about_other_roles_adds_to_the_extract(hub: HubStandIn, tmp_path: Path, again: bool) -> None:
    fill(hub, 1)
    extract_and_keep("a/m0", "pre_mlp", out=tmp_path)
    found = extract_and_keep("a/m0", "pre_attention", out=tmp_path, again=again)
    assert list(found) == ["pre_attention"]
    assert list(lnsim.load(str(found.path))) == ["pre_attention", "pre_mlp"]
    hub.forget()
    assert list(extract_and_keep("a/m0", "pre_mlp", out=tmp_path)) == ["pre_mlp"]
    assert len(hub.requests) == 1
    assert bits(extract_and_keep("a/m0", out=tmp_path)) == norm_bits(llama_tensors())


@pytest.mark.parametrize("options", [{"everything": True}, {"model_type": "mistral"}, {"again": True}])
def test_another_question_is_read_anew(hub: HubStandIn, tmp_path: Path, options: dict[str, object]) -> None:
    fill(hub, 1)
    extract_and_keep("a/m0", out=tmp_path)
    found = extract_and_keep("a/m0", out=tmp_path, **options)  # type: ignore[arg-type]
    assert found.requests > 1


def test_a_damaged_extract_is_read_anew_and_replaced_and_a_new_commit_is_read(hub: HubStandIn, tmp_path: Path) -> None:
    fill(hub, 1)
    path = extract_and_keep("a/m0", out=tmp_path).path
    assert path is not None
    path.write_bytes(path.read_bytes()[:-7])
    assert bits(extract_and_keep("a/m0", out=tmp_path)) == norm_bits(llama_tensors())
    assert bits(lnsim.load(path)) == norm_bits(llama_tensors())
    hub.add("a/m0", checkpoint_files(llama_tensors(seed=5), LLAMA_CONFIG, 4), commit=LATER_COMMIT)
    assert bits(extract_and_keep("a/m0", out=tmp_path)) == norm_bits(llama_tensors(seed=5))


def test_an_extract_of_another_repo_under_the_same_name_is_no_answer_and_stays(hub: HubStandIn, tmp_path: Path) -> None:
    fill(hub, 2)
    path = extract_and_keep("a/m0", out=tmp_path, name="same.safetensors").path
    hub.forget()
    with pytest.raises(StoreError, match=r"'a/m1': '.*same\.safetensors' is the name of another file or source"):
        extract_and_keep("a/m1", out=tmp_path, name="same.safetensors")
    assert [request.path for request in hub.requests if "resolve" in request.path] == []
    assert bits(lnsim.load(str(path))) == norm_bits(llama_tensors())

"""Names of extracts: each source has its own, in any script, and no file but an extract of it is ever replaced."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run
from hub_stand_in import HubStandIn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors, write_files

import lnsim
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.opening import choose_paths, find_source, origin_of
from lnsim.checkpoint.store import Provenance, StoredTensor, provenance_at, write_extract
from lnsim.errors import StoreError

ONE = checkpoint_files(llama_tensors(), LLAMA_CONFIG)


def model(folder: Path, seed: int = 0) -> Path:
    return write_files(folder, checkpoint_files(llama_tensors(seed=seed), LLAMA_CONFIG))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def planned(out: Path, *sources: Path) -> list[str]:
    found = choose_paths([origin_of(find_source(str(source))) for source in sources], out)
    return [path.name if isinstance(path, Path) else str(path) for path in found]


def test_as_many_parts_of_a_path_as_tell_it_from_the_others_whatever_its_capitals_and_script(tmp_path: Path) -> None:
    folders = [model(tmp_path / run / "checkpoint-500") for run in ("run1", "run2")]
    folders += [model(tmp_path / "a" / "Model"), model(tmp_path / "b" / "model")]
    folders += [model(tmp_path / name) for name in ("Модель 7Б", "नमूना", "e\u0301té")]
    assert planned(tmp_path / "out", *folders) == [
        f"{name}.safetensors"
        for name in ("run1--checkpoint-500", "run2--checkpoint-500", "a--Model", "b--model", "Модель-7Б", "नमूना", "été")
    ]
    assert planned(tmp_path / "out", folders[0]) == ["checkpoint-500.safetensors"]


def test_a_very_long_path_keeps_its_end_and_stays_apart(tmp_path: Path) -> None:
    long = "语" * 60
    folders = [model(tmp_path / start / long / "checkpoint") for start in ("a", "b")]
    found = planned(tmp_path / "out", *folders)
    assert len(set(found)) == 2
    assert all(name.endswith("语--checkpoint.safetensors") and len(name.encode()) < 230 for name in found)
    run("extract", *map(str, folders), "--out", str(tmp_path / "out"))
    assert names(tmp_path / "out") == sorted(found)


def test_the_same_source_twice_is_one_extract_however_it_is_written(tmp_path: Path) -> None:
    folder = model(tmp_path / "m")
    (tmp_path / "link").symlink_to(folder)
    sources = (str(folder), f"{folder}/", str(folder / ".." / "m"), str(tmp_path / "link"))
    code, _, err = run("extract", *sources, "--out", str(tmp_path / "out"))
    assert (code, err, names(tmp_path / "out")) == (0, "", ["m.safetensors"])


def test_a_second_call_finds_the_name_of_the_first(tmp_path: Path) -> None:
    folders = [str(model(tmp_path / run / "m")) for run in ("run1", "run2")]
    out = str(tmp_path / "out")
    run("extract", *folders, "--out", out)
    run("extract", folders[1], "--out", out)
    assert names(tmp_path / "out") == ["run1--m.safetensors", "run2--m.safetensors"]
    other = str(model(tmp_path / "run3" / "run1" / "m"))
    run("extract", other, "--out", out)
    assert names(tmp_path / "out") == ["m.safetensors", "run1--m.safetensors", "run2--m.safetensors"]
    assert extract_and_keep(other, out=tmp_path / "out").path == tmp_path / "out" / "m.safetensors"


def test_a_checkpoint_is_never_replaced_by_its_extract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = model(tmp_path / "m")
    before = contents(folder)
    monkeypatch.chdir(folder)
    code, _, err = run("extract", ".", "--out", ".")
    assert (code, contents(folder)) == (1, before)
    assert "holds the checkpoint itself, where an extract could be taken for its weights" in err
    run("extract", "model.safetensors", "--out", ".")
    assert contents(folder).items() >= before.items()


def test_all_names_are_checked_before_the_first_byte_is_read(hub: HubStandIn, tmp_path: Path) -> None:
    for number in range(2):
        hub.add(f"a/m{number}", ONE)
    run("extract", "a/m0", "--out", str(tmp_path))
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b"my own notes")
    hub.forget()
    code, _, err = run("extract", "a/m0", "a/m1", "--out", str(tmp_path))
    assert code == 1
    assert "is the name of another file or source, and is not replaced, since it is no extract of this source" in err
    assert kept.read_bytes() == b"my own notes"
    assert not [one for one in hub.requests if "a/m0" in one.path and "resolve" in one.path]
    assert len(names(tmp_path)) == 2  # the other was read and kept


def write(path: Path, source: str, config: dict[str, str] | None = None) -> Path:
    tensor = StoredTensor("a", "F32", (1,), bytes(4), "s.safetensors", 0, 4)
    return write_extract(path, [tensor], Provenance(source, None, None, None, "llama", config or {}))


@pytest.mark.parametrize("put", [
    lambda path: path.write_bytes(b""),
    lambda path: path.mkdir(),
    lambda path: path.symlink_to("nowhere"),
    lambda path: path.symlink_to(write(path.with_name("other"), "made")),
    lambda path: path.write_bytes(file_bytes(llama_tensors())),
    lambda path: os.mkfifo(path),
], ids=["empty", "folder", "dangling link", "a link", "a checkpoint", "a pipe"])  # fmt: skip
def test_whatever_writes_an_extract_replaces_nothing_else(tmp_path: Path, put: Callable[[Path], object]) -> None:
    path = tmp_path / "x.safetensors"
    put(path)
    before = os.lstat(path)
    said = r"x\.safetensors: a file of this name is there, and it is no extract of lnsim"
    with pytest.raises(StoreError, match=said):
        write(path, "made")
    assert os.lstat(path) == before
    assert not [name for name in names(tmp_path) if name.endswith(".part")]


def test_an_extract_of_another_source_is_not_replaced_and_one_of_the_same_is(tmp_path: Path) -> None:
    path = write(tmp_path / "x.safetensors", "zoo/a")
    with pytest.raises(StoreError, match="it is an extract of another source, 'zoo/a'"):
        write(path, "zoo/b")
    found = provenance_at(write(path, "zoo/a", {"seed": "1"}))
    assert found is not None
    assert found.config == {"seed": "1"}


def test_an_extract_remembers_its_source_by_a_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(tmp_path / "secret-place" / "m")
    monkeypatch.chdir(tmp_path / "secret-place")
    first = extract_and_keep("m", out=tmp_path / "out").path
    assert first is not None
    assert b"secret-place" not in first.read_bytes()
    second = extract_and_keep(first, out=tmp_path / "again").path
    assert second is not None
    one, other = provenance_at(first), provenance_at(second)
    assert one is not None
    assert other is not None
    assert (second.name, one.identity) == ("m.safetensors", other.identity)


def test_two_parts_of_one_repo_are_two_extracts(hub: HubStandIn, tmp_path: Path) -> None:
    for number, part in enumerate(("te", "te2")):
        files = checkpoint_files(llama_tensors(seed=number), LLAMA_CONFIG)
        hub.add("org/pipe", {f"te/{n}": c for n, c in ONE.items()} | {f"{part}/{n}": c for n, c in files.items()})
    code, _, err = run("extract", "org/pipe/te", "org/pipe/te2", "--out", str(tmp_path))
    assert (code, err) == (0, "")
    assert {name.partition("@")[0] for name in names(tmp_path)} == {"org--pipe--te", "org--pipe--te2"}
    one, other = (lnsim.load(path) for path in sorted(tmp_path.iterdir()))
    assert one["final"].stored.tobytes() != other["final"].stored.tobytes()


def test_a_checkpoint_that_lost_tensors_says_so_and_the_extract_stays(tmp_path: Path) -> None:
    folder = model(tmp_path / "m")
    path = extract_and_keep(folder, out=tmp_path / "out").path
    assert path is not None
    before = path.read_bytes()
    write_files(folder, checkpoint_files(llama_tensors(2), LLAMA_CONFIG | {"num_hidden_layers": 2}))
    with pytest.raises(StoreError, match=r"holds 'model\.layers\.2\..*' and 2 in all that the checkpoint has no more"):
        extract_and_keep(folder, out=tmp_path / "out")
    assert path.read_bytes() == before


# Sequences of commands over folders that hold other people's files

FOREIGN = {
    "model.safetensors": file_bytes(llama_tensors(seed=9)),
    "m.safetensors": b"not a checkpoint",
    "run1--m.safetensors": file_bytes(llama_tensors(seed=8)),
    "a--m0@0123456789ab.safetensors": b"",
    "notes.txt": b"mine",
}
SOURCES = ("run1/m", "run2/m", "run1/m/model.safetensors", "模型", ".", "a/m0", "a/m1", "gone")
WORDS = st.tuples(
    st.lists(st.sampled_from(SOURCES), min_size=1, max_size=4),
    st.sampled_from([(), ("--role", "pre_mlp"), ("--role", "final"), ("--all",), ("--again",)]),
    st.sampled_from(["out", ".", "run1/m", "full"]),
)


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def held(folder: Path) -> dict[tuple[str, str | None, str], str]:
    """Hash of each tensor by source and commit, of every extract below a folder."""
    found = {}
    for path in folder.rglob("*.safetensors"):
        if kept := provenance_at(path):
            for name, source in lnsim.load(path).tensors.items():
                found[kept.identity.name, kept.commit, name] = source.sha256
    return found


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(commands=st.lists(WORDS, min_size=1, max_size=5))
def test_no_sequence_of_commands_does_harm(
    commands: list[tuple[list[str], tuple[str, ...], str]], hub: HubStandIn
) -> None:
    for number in range(2):
        hub.add(f"a/m{number}", checkpoint_files(llama_tensors(seed=number), LLAMA_CONFIG))
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        here = Path(name).resolve()
        for number, place in enumerate(("run1/m", "run2/m", "模型")):
            model(here / place, number)
        write_files(here / "full", FOREIGN)
        write_files(here, {"notes.txt": b"mine"})
        patch.chdir(here)
        before, kept = contents(here), held(here)
        for sources, options, out in commands:
            run("extract", *sources, *options, "--out", out)
            assert contents(here).items() >= before.items()
            now = held(here)
            assert now.items() >= kept.items()
            kept = now

"""The atlas on disk: nothing lost and nothing read twice, whatever is killed; opened at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hub_stand_in import COMMIT, LATER_COMMIT, HubStandIn
from killed_adder import POINTS
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors

import lnsim
from lnsim.atlas import store
from lnsim.atlas.sketch import sketch
from lnsim.atlas.store import Atlas, Wanted, read_block, write_rows
from lnsim.errors import GatedError, RepoNotFoundError, StoreError

ADDER = Path(__file__).with_name("killed_adder.py")


def fill(hub: HubStandIn, count: int, hidden_size: int = 16) -> list[Wanted]:
    for seed in range(count):
        hub.add(f"a/m{seed}", checkpoint_files(llama_tensors(seed=seed, hidden_size=hidden_size), LLAMA_CONFIG))
    return [Wanted(f"a/m{seed}") for seed in range(count)]


def read_from(hub: HubStandIn) -> set[str]:
    """The repos of which bytes of weights were read."""
    return {"/".join(path.split("/")[1:3]) for path in hub.paths("cdn")}


def check_whole(folder: Path, wanted: list[Wanted]) -> None:
    """Every model is there once, and its row is the sketch of its extract."""
    atlas = Atlas(folder)
    assert sorted(entry.source for entry in atlas.entries.values()) == sorted(one.source for one in wanted)
    for entry in atlas.entries.values():
        expected = sketch(lnsim.load(store.extract_path(folder, entry)))
        rows = read_block(folder, entry.hidden_size, entry.row, entry.row + 1)
        assert {role for role, found in rows.items() if found.any()} == set(expected)
        assert all((rows[role][0] == values).all() for role, values in expected.items())


def test_what_was_added_is_there_and_a_second_run_asks_for_the_commits_alone(hub: HubStandIn, tmp_path: Path) -> None:
    wanted = fill(hub, 5)
    assert all(one.new for one in Atlas(tmp_path / "a").add(wanted))
    check_whole(tmp_path / "a", wanted)
    hub.forget()
    again = list(Atlas(tmp_path / "a").add(wanted))
    assert not any(one.new for one in again)
    assert [one.requests for one in again] == [1] * 5 == [len(hub.requests) // 5] * 5
    check_whole(tmp_path / "a", wanted)


def test_one_that_fails_is_told_in_its_place_and_the_others_go_on(hub: HubStandIn, tmp_path: Path) -> None:
    wanted = fill(hub, 3)
    hub.repos["a/m1"].gated = True
    found = list(Atlas(tmp_path).add([*wanted, Wanted("no/such")]))
    assert isinstance(found[1].result, GatedError)
    assert isinstance(found[3].result, RepoNotFoundError)
    check_whole(tmp_path, [wanted[0], wanted[2]])


def test_a_branch_that_moved_is_read_anew_and_takes_the_place_of_its_row(hub: HubStandIn, tmp_path: Path) -> None:
    wanted = fill(hub, 3)
    list(Atlas(tmp_path).add(wanted))
    hub.add("a/m1", checkpoint_files(llama_tensors(seed=7), LLAMA_CONFIG), commit=LATER_COMMIT)
    hub.forget()
    assert [one.new for one in Atlas(tmp_path).add(wanted)] == [False, True, False]
    assert read_from(hub) == {"a/m1"}
    check_whole(tmp_path, wanted)
    atlas = Atlas(tmp_path)
    assert [entry and entry.commit for entry in atlas.of_size(16)] == [COMMIT, None, COMMIT, LATER_COMMIT]


def test_sources_of_one_call_are_taken_once_and_roles_of_one_source_share_its_extract(tmp_path: Path) -> None:
    twice = [Wanted("gpt2-code-8"), Wanted("gpt2-code-8"), Wanted("gpt2-code-8", ("final",))]
    assert [one.new for one in Atlas(tmp_path).add(twice)] == [True, True]
    assert not any(one.new for one in Atlas(tmp_path).add(twice))
    rows = read_block(tmp_path, 192, 0, 2)
    assert [bool(rows["pre_mlp"][row].any()) for row in (0, 1)] == [True, False]
    assert len(list((tmp_path / "extracts").glob("*.safetensors"))) == 1


def test_models_of_several_hidden_sizes_lie_in_groups_of_their_own(tmp_path: Path) -> None:
    wanted = [Wanted(name) for name in ("gpt2-code-8", "sre-minilm-l6", "llama-code-4", "all-minilm-l6-v2")]
    list(Atlas(tmp_path).add(wanted))
    check_whole(tmp_path, wanted)
    atlas = Atlas(tmp_path)
    assert [len(atlas.of_size(size)) for size in (192, 384, 512)] == [2, 2, 0]


def test_a_role_that_comes_later_leaves_the_earlier_rows_empty(tmp_path: Path) -> None:
    unit = np.eye(1, 8, dtype=np.float32)[0]
    write_rows(tmp_path, 8, 0, [{"x": unit}])
    write_rows(tmp_path, 8, 1, [{"y": unit}, {"x": unit}])
    write_rows(tmp_path, 8, 1, [{"x": unit}])  # a killed process left a row of y there
    rows = read_block(tmp_path, 8, 0, 3)
    assert rows["x"][:, 0].tolist() == [1, 1, 1]
    assert rows["y"][:, 0].tolist() == [0, 0, 0]


def test_two_processes_do_not_write_at_once(tmp_path: Path) -> None:
    adding = Atlas(tmp_path).add([Wanted("gpt2-code-8")])
    next(adding)
    with pytest.raises(StoreError, match="another process"):
        list(Atlas(tmp_path).add([Wanted("sre-minilm-l6")]))
    adding.close()
    list(Atlas(tmp_path).add([Wanted("sre-minilm-l6")]))
    assert len(Atlas(tmp_path).entries) == 2


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"Writing into the atlas '.*a': Not a directory"):
        list(Atlas(tmp_path / "file" / "a").add([Wanted("gpt2-code-8")]))


def test_a_damaged_line_is_an_error_that_names_it(tmp_path: Path) -> None:
    list(Atlas(tmp_path).add([Wanted("gpt2-code-8")]))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"source": 1}\n')
    with pytest.raises(StoreError, match=r"line 2 of '.*journal\.jsonl' is no entry"):
        Atlas(tmp_path)


def adding(hub: HubStandIn, folder: Path, point: str, wanted: list[Wanted]) -> subprocess.Popen[bytes]:
    words = [sys.executable, str(ADDER), str(folder), point, *(one.source for one in wanted)]
    environment = {**os.environ, "HF_ENDPOINT": hub.endpoint, "PYTHONPATH": str(ADDER.parents[1])}
    environment["HF_HUB_CACHE"] = str(folder / "no-cache")
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "point", [pytest.param(one, marks=[] if one == "within a line" else pytest.mark.slow) for one in POINTS]
)
def test_killed_at_any_point_it_opens_goes_on_loses_nothing_and_reads_nothing_twice(
    hub: HubStandIn, tmp_path: Path, point: str
) -> None:
    wanted, folder = fill(hub, 6), tmp_path / "atlas"
    assert adding(hub, folder, point, wanted).wait(60) == -signal.SIGKILL
    before = [entry.source for entry in Atlas(folder).entries.values()]
    check_whole(folder, [Wanted(source) for source in before])
    assert len(before) == (4 if point == "after journal" else 2)
    kept = {path.name.split("@")[0].replace("--", "/") for path in (folder / "extracts").glob("*.safetensors")}
    assert kept >= set(before)
    hub.forget()
    found = list(Atlas(folder).add(wanted))
    assert not read_from(hub) & kept
    assert [one.wanted.source for one in found if not one.new] == before
    check_whole(folder, wanted)


@pytest.mark.slow
def test_killed_at_random_moments_again_and_again_it_comes_to_an_end(hub: HubStandIn, tmp_path: Path) -> None:
    wanted, folder, rng = fill(hub, 40), tmp_path / "atlas", random.Random(0)
    hub.latency = 0.01
    there: set[str] = set()
    for _ in range(12):
        process = adding(hub, folder, "never", wanted)
        time.sleep(rng.uniform(0.6, 1.6))
        process.kill()
        process.wait()
        entries = {entry.source for entry in Atlas(folder).entries.values()}
        assert there <= entries
        there = entries
        check_whole(folder, [Wanted(source) for source in entries])
    list(Atlas(folder).add(wanted))
    check_whole(folder, wanted)
    assert len(lnsim.load(next((folder / "extracts").glob("*.safetensors"))).roles) == 3

"""Faults of the disk and of other processes: the store holds the old extract or the whole new one, never a part."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fault_table import shows
from hub_stand_in import COMMIT, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, norm_bits, write_files

import lnsim
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.errors import StoreError
from lnsim.paths import stored_models

ROOT = Path(__file__).resolve().parents[1]
TENSORS = llama_tensors(hidden_size=2048, rows=16)  # 7 norms of 4 kB: larger than what a small disk takes
CONFIG = LLAMA_CONFIG | {"hidden_size": 2048}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}

LIMITED = """
import resource, sys
sys.dont_write_bytecode = True  # cut off, it would break whatever reads it later
resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
from lnsim.cli import main
main()
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_files(tmp_path / "m", checkpoint_files(TENSORS, CONFIG))


def files_under(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@shows("no file may grow beyond 16 KiB (`RLIMIT_FSIZE`)", "while an extract is written",
       "exit code 1, one line that ends in Nothing was changed; the old extract stays, no temporary file")  # fmt: skip
def test_a_file_that_may_not_grow_is_one_line_and_the_old_extract_stays(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    extract_and_keep(model, ["final"], out=out)
    before = files_under(out)
    command = [sys.executable, "-c", LIMITED, "extract", str(model), "--out", str(out)]
    found = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.startswith(f"lnsim: Writing {out}")
    assert found.stderr.endswith(f"{os.strerror(errno.EFBIG)}. Nothing was changed.\n")
    assert found.stderr.count("\n") == 1
    assert files_under(out) == before


@shows("a file stands where the folder should be", "always",
       "StoreError that ends in Nothing was changed; nothing is written")  # fmt: skip
def test_a_folder_that_cannot_be_made_is_one_sentence(model: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"a file")
    before = files_under(tmp_path)
    with pytest.raises(StoreError, match=r"Writing .*taken/.*: (Not a directory|File exists)\. Nothing was changed"):
        extract_and_keep(model, out=tmp_path / "taken")
    assert files_under(tmp_path) == before


@shows("kill -9 of a process that rewrites an extract", "150 times, at random moments",
       "the old or the new extract is there, whole; what is left of a temporary file is no stored model")  # fmt: skip
def test_a_kill_leaves_the_old_or_the_new_extract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "data" / "studies").mkdir(parents=True)
    folder = home / "data" / "vectors"
    command = [sys.executable, str(ROOT / "tests" / "killed_writer.py"), str(folder), "150", "20261128"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    found = json.loads(done.stdout)
    assert found["other"] == 0
    assert found["old"] > 10
    assert found["new"] > 10
    assert found["rounds_with_a_part_left"] > 10  # else no kill struck while something was being written
    monkeypatch.setenv("LNSIM_HOME", str(home))
    assert list(stored_models()) == ["model"]
    assert len(stored_models()["model"].read_bytes()) > 200_000


@shows("two processes extract the same model", "at the same time", "both exit with 0 and leave one good file")
def test_two_processes_that_extract_the_same_model_leave_one_good_file(hub: HubStandIn, tmp_path: Path) -> None:
    hub.latency = 0.05
    hub.add("a/b", checkpoint_files(TENSORS, CONFIG, 3))
    environment = ENVIRONMENT | {"HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "lnsim", "extract", "a/b", "--out", str(tmp_path / "out"), "--json"]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=30) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert [stderr for _, stderr in answers] == ["", ""]
    (kept,) = (tmp_path / "out").iterdir()
    assert kept.name == f"a--b@{COMMIT[:12]}.safetensors"
    assert norm_bits(lnsim.load(kept).stored) == norm_bits(TENSORS)

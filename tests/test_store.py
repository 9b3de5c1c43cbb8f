"""Extracts: a pure function of what was read, checked before they get their name, read back as any checkpoint."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors
from fault_table import shows
from hub_stand_in import COMMIT, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, norm_bits, write_files

import lnsim
from lnsim.checkpoint import store
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.store import Provenance, StoredTensor, provenance_at, read_provenance, read_sources, write_extract
from lnsim.errors import StoreError
from lnsim.paths import stored_models

TENSORS = [
    StoredTensor("b", "F32", (2,), np.float32([1, -0.0]).tobytes(), "s.safetensors", 100, 108),
    StoredTensor("a", "BF16", (1,), b"\x80\x3f", "s.safetensors", 50, 52),
]
ORIGIN = Provenance("o/r", "o/r", "c" * 40, "main", "llama", {"model_type": "llama", "n": 1}, {"licence": "MIT"})


def test_the_official_parser_reads_it_and_its_provenance_comes_back(tmp_path: Path) -> None:
    path = write_extract(tmp_path / "x.safetensors", TENSORS, ORIGIN)
    found = {name: (t["dtype"], t["shape"], bytes(t["data"])) for name, t in safetensors.deserialize(path.read_bytes())}
    assert found == {t.name: (t.dtype, list(t.shape), t.data) for t in TENSORS}
    assert write_extract(tmp_path / "y.safetensors", TENSORS, ORIGIN).read_bytes() == path.read_bytes()
    header = lnsim.parse_header(path.read_bytes(), path.stat().st_size)
    assert read_provenance(header) == ORIGIN
    assert read_sources(header) == {t.name: t.source for t in TENSORS}


def test_long_lists_of_the_config_are_left_out(tmp_path: Path) -> None:
    config = {"layer_types": ["full"] * 60, "suppress_tokens": list(range(1000)), "id2label": {"0": "x"}, "t": {"a": 1}}
    origin = Provenance("o/r", None, None, None, "llama", config)
    found = provenance_at(write_extract(tmp_path / "x.safetensors", TENSORS, origin))
    assert found is not None
    assert found.config == {"layer_types": ["full"] * 60, "t": {"a": 1}}


def test_no_tensors_and_a_name_given_twice_are_errors(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Writing x\.safetensors: there are no tensors to write"):
        write_extract(tmp_path / "x.safetensors", [], ORIGIN)
    with pytest.raises(StoreError, match="tensor 'a' was given twice"):
        write_extract(tmp_path / "x.safetensors", [TENSORS[1], TENSORS[1]], ORIGIN)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_read_back_the_same_never_gets_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = write_extract(tmp_path / "x.safetensors", TENSORS, ORIGIN).read_bytes()
    real = store._write_synced
    monkeypatch.setattr(store, "_write_synced", lambda file, content: real(file, content[:-1] + b"\xff"))
    with pytest.raises(StoreError, match="tensor 'a' did not read back the same"):
        write_extract(tmp_path / "x.safetensors", TENSORS, ORIGIN)
    assert (tmp_path / "x.safetensors").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_reading_an_extract_is_reading_a_checkpoint_and_an_extract_of_it_keeps_the_first_origin(tmp_path: Path) -> None:
    write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 2))
    kept = extract_and_keep(tmp_path / "m", out=tmp_path / "out")
    assert kept.path is not None
    again = lnsim.load(kept.path)
    assert norm_bits(again.stored) == norm_bits(kept.stored)
    assert dict(again.tensors) == dict(kept.tensors)
    assert (again.model_type, again.hidden_size, dict(again.missing_layers)) == ("llama", 16, {})
    second = extract_and_keep(str(kept.path), out=tmp_path / "two")
    assert dict(second.tensors) == dict(kept.tensors)


def test_a_narrowed_extract_does_not_look_as_if_layers_were_lost(tmp_path: Path) -> None:
    write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    kept = extract_and_keep(tmp_path / "m", ["pre_attention"], out=tmp_path / "out")
    again = lnsim.load(str(kept.path))
    assert list(again.roles) == ["pre_attention"]
    assert dict(again.missing_layers) == {}


# Faults of the disk and of other processes: the old extract or the whole new one is there, never a part


LARGE = llama_tensors(hidden_size=2048, rows=16)  # 7 norms of 4 kB: larger than what a small disk takes
CONFIG = LLAMA_CONFIG | {"hidden_size": 2048}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}

LIMITED = """
import resource, sys
sys.dont_write_bytecode = True  # cut off, it would break whatever reads it later
resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))
from lnsim.cli import main
main()
"""


@shows("no file may grow beyond 16 KiB (`RLIMIT_FSIZE`)", "while an extract is written",
       "exit code 1, one line that ends in Nothing was changed; the old extract stays, no temporary file")  # fmt: skip
def test_a_file_that_may_not_grow_is_one_line_and_the_old_extract_stays(tmp_path: Path) -> None:
    model, out = write_files(tmp_path / "m", checkpoint_files(LARGE, CONFIG)), tmp_path / "out"
    extract_and_keep(model, ["final"], out=out)
    before = (out / "m.safetensors").read_bytes()
    command = [sys.executable, "-c", LIMITED, "extract", str(model), "--out", str(out)]
    found = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (found.returncode, found.stdout) == (1, "")
    said = f"lnsim: Writing {out / 'm.safetensors'}: {os.strerror(errno.EFBIG)}. Nothing was changed.\n"
    assert found.stderr == said
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {"m.safetensors": before}


@shows("a file stands where the folder should be", "always",
       "StoreError that ends in Nothing was changed; nothing is written")  # fmt: skip
def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"a file")
    with pytest.raises(StoreError, match=r"Writing .*taken/.*: (Not a directory|File exists)\. Nothing was changed"):
        write_extract(tmp_path / "taken" / "x.safetensors", TENSORS, ORIGIN)
    assert (tmp_path / "taken").read_bytes() == b"a file"


@shows("kill -9 of a process that rewrites an extract", "150 times, at random moments",
       "the old or the new extract is there, whole; what is left of a temporary file is no stored model")  # fmt: skip
def test_a_kill_leaves_the_old_or_the_new_extract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "data" / "studies").mkdir(parents=True)
    folder = home / "data" / "vectors"
    command = [sys.executable, str(Path(__file__).with_name("killed_writer.py")), str(folder), "150", "20261128"]
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
    hub.add("a/b", checkpoint_files(LARGE, CONFIG, 3))
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
    assert norm_bits(lnsim.load(kept).stored) == norm_bits(LARGE)

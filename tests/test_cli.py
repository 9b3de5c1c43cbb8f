"""The command line, run as a user runs it: data on stdout, one line on stderr, the exit codes of the contract."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import run
from hub_stand_in import COMMIT, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_files(tmp_path / "m", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 2))


def test_extract_json_has_the_fields_of_the_contract(hub: HubStandIn, model: Path, tmp_path: Path) -> None:
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 2))
    code, out, _ = run("extract", "a/b", "--json", str(model), "--out", str(tmp_path / "out"))
    found, other = map(json.loads, out.splitlines())
    assert (code, other["source"]) == (0, str(model))
    assert (found["repo_id"], found["commit"], found["n_vectors"]) == ("a/b", COMMIT, 7)
    assert found["roles"] == {"pre_attention": [3, 16], "pre_mlp": [3, 16], "final": [1, 16]}
    assert (found["missing_layers"], found["requests"]) == ({}, len(hub.requests))
    assert min(found["bytes_received"], found["seconds"]) > 0
    assert found["path"].endswith(f"a--b@{COMMIT[:12]}.safetensors")
    assert lnsim.load(found["path"]).commit == COMMIT


def test_a_source_that_fails_is_named_the_others_are_read_and_the_exit_code_tells(model: Path, tmp_path: Path) -> None:
    words = ("./gone", str(model), "--out", str(tmp_path / "out"), "--role", "input_layernorm")
    code, out, err = run("extract", *words)
    assert code == 1
    assert err == "lnsim: Opening './gone': there is no such file or folder.\n"
    assert "pre_attention  input_layernorm       3        16  rmsnorm" in out  # the role's name both ways
    assert str(tmp_path / "out") in out


def test_missing_layers_are_shown(tmp_path: Path) -> None:
    tensors = llama_tensors()
    del tensors["model.layers.1.post_attention_layernorm.weight"]
    path = write_files(tmp_path / "m", checkpoint_files(tensors, LLAMA_CONFIG))
    assert "missing: pre_mlp in layers 1" in run("extract", str(path), "--out", str(tmp_path))[1]
    found = json.loads(run("extract", str(path), "--out", str(tmp_path), "--json")[1])
    assert found["missing_layers"] == {"pre_mlp": [1]}
    assert "missing: pre_mlp in layers 1" in run("inspect", str(path))[1]


def test_inspect_shows_family_layers_roles_dtypes_and_shards(model: Path) -> None:
    code, out, _ = run("inspect", str(model), "--json")
    found = json.loads(out)
    assert (code, found["commit"], len(found["shards"])) == (0, None, 2)
    assert (found["family"], found["model_type"], found["n_layers"]) == ("llama", "llama", {"text": 3})
    assert (found["roles"]["pre_mlp"]["n_layers"], found["roles"]["pre_mlp"]["dtype"]) == (3, "BF16")


def test_inspect_describes_an_unknown_family_and_says_why_it_has_no_roles(tmp_path: Path) -> None:
    path = write_files(tmp_path / "m", checkpoint_files(llama_tensors(), {"model_type": "never_seen"}))
    code, out, _ = run("inspect", str(path))
    assert code == 0
    assert "family         unknown (model type never_seen)" in out
    assert "no roles: " in out


def test_list_shows_studies_and_stored_models() -> None:
    code, out, _ = run("list", "--json")
    found = json.loads(out)
    assert code == 0
    assert {"small_models", "solar_glm"} <= {study["name"] for study in found["studies"]}
    (model,) = (model for model in found["models"] if model["name"] == "smollm2-135m-instruct")
    assert (model["roles"]["pre_attention"], model["commit"]) == ([30, 576], None)


def test_many_models_of_one_folder_are_one_line_and_a_pattern_shows_those_it_fits() -> None:
    whole, zoo, named = (run("list", *words)[1] for words in ((), ("zoo",), ("*WHISPER*",)))
    assert "smollm2-135m-instruct" in whole
    assert "zoo: 88 more models; lnsim list zoo shows them" in whole
    assert ("gpt2-code-8-heavy" in whole, "gpt2-code-8-heavy" in zoo) == (False, True)
    assert ("whisper-tiny.en" in named, "smollm2" in named) == (True, False)
    assert run("list", "nothing-like-it")[2] == "lnsim: no stored model fits 'nothing-like-it'.\n"
    assert [one["name"] for one in json.loads(run("list", "whisper", "--json")[1])["models"]] == ["whisper-tiny.en"]


def test_a_mistyped_command_gets_a_near_one() -> None:
    code, _, err = run("inspct", "a")
    assert code == 2
    assert err.rstrip().endswith("Did you mean 'inspect'?")


def test_a_new_study_runs_from_stored_models_and_folders_and_all_that_is_wrong_is_said_at_once(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("studies", "vectors"):
        shutil.copytree(ROOT / "data" / kind, tmp_path / "home" / "data" / kind, ignore=lambda *_: ["roots", "zoo"])
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path / "home"))
    code, out, err = run("study", "new", "mine", "all-minilm-l6-v2", "sre-minilm-l6", str(model))
    assert (code, err) == (0, "")
    assert "then python run_all.py --study mine" in out
    study = lnsim.load_study("mine")
    assert [one.stored for one in study.models][:2] == ["all-minilm-l6-v2", "sre-minilm-l6"]
    assert lnsim.load(study.models[2].stored).n_vectors == lnsim.load(str(model)).n_vectors  # read, and kept
    assert study.experiments["13"]["comparisons"]["post_mlp"]["pairs"] == [["m1", "m2"]]
    assert list(study.experiments) == ["00", "13"]
    code, _, err = run("study", "new", "mine", "nothing-like-it", "all-minilm-l6-v2")
    assert code == 1
    assert "Making the study 'mine': 'mine' is a study already; There is no stored model 'nothing-like-it'" in err


def test_whoever_stops_reading_our_output_gets_no_traceback() -> None:
    command = f"{sys.executable} -m lnsim list --json | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, check=True)
    assert (len(done.stdout), done.stderr) == (10, "")


WRONG = [
    [], ["extract"], ["inspect"], ["nope"], ["inspect", "x", "--nope"], ["inspect", "x", "y"],
    ["extract", "x", "--in-flight", "0"], ["compare", "one"], ["compare", "one", "two", "three"],
    ["relatives"], ["relatives", "one", "two"], ["matrix", "one", "--permutations", "0"],
    *(["compare", "one", "two", *more] for more in (["--permutations", "0"], ["--permutations", "9.5"],
                                                    ["--seed", "-1"], ["--role"], ["--nope"])),
]  # fmt: skip


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage_exits_with_2(words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert err.startswith("usage: lnsim")


@pytest.mark.parametrize("command", ["inspect", "extract", "list", "compare", "relatives", "matrix"])
def test_help_shows_an_example(command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"examples:\n  lnsim {command}" in out


def test_a_stored_model_is_read_by_its_name_however_it_was_pasted() -> None:
    for typed in ("zoo/gpt2-code-8", " All-MiniLM-L6-v2/ "):
        assert run("inspect", typed)[0] == 0


def test_what_the_command_line_sets_is_set_before_numpy_and_the_families_are_read(tmp_path: Path) -> None:
    code = "import sys, lnsim.cli; print({'numpy', 'lnsim.checkpoint.families.table'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
    (tmp_path / "own.toml").write_text("[families.mine", "utf-8")
    words = ["-m", "lnsim", "inspect", "sre-minilm-l6", "--families", str(tmp_path / "own.toml")]
    assert "Reading families of" in subprocess.run([sys.executable, *words], capture_output=True, text=True).stderr

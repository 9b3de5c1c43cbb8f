"""The command line, run as a user runs it: data on stdout, one line on stderr, the exit codes of the contract."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
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


# lnsim compare: a table or JSON on stdout, errors in a line, near names, nothing written


FEW = ("--permutations", "1999")
CONTRACT = [
    "n_layers_compared", "cosine_mean", "pearson_mean", "spearman_mean", "rel_l2_mean", "changed_ratio", "best_offset",
    "alignment_rate", "margin", "pvalue", "null_mean", "null_std", "n_permutations", "seed",
]  # fmt: skip


def compared(*words: str) -> dict[str, Any]:
    code, out, err = run("compare", *words, *FEW, "--json")
    assert (code, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_json_has_the_fields_of_the_contract_and_no_undefined_number() -> None:
    found = compared("all-minilm-l6-v2", "sre-minilm-l6", "--seed", "5")
    assert (found["a"], found["b"]) == ("all-minilm-l6-v2", "sre-minilm-l6")
    assert list(found["roles"]) == ["post_attention", "post_mlp", "embedding"]
    for one in found["roles"].values():
        assert list(one)[: len(CONTRACT)] == CONTRACT
        assert (one["n_permutations"], one["seed"]) == (1999, 5)
        assert list(one["by_layer"][0]) == ["layer_a", "layer_b", "cosine", "r"]
    assert found["roles"]["post_mlp"]["n_layers_compared"] == 6
    assert found["roles"]["embedding"]["margin"] is None
    assert (found["report"], found["requests"]) == (None, 0)
    verdict = found["verdict"]
    fields = ["key", "strength", "sentence", "r", "r_low", "r_high", "pvalue", "pvalue_se", "p_ranks", "n_permutations"]
    assert list(verdict) == [*fields, "pattern_kept"]
    assert (verdict["key"], verdict["strength"]) == ("one_by_one", "strong")
    assert verdict["sentence"].startswith("Strong shared-origin signal, layer by layer")
    assert verdict["r_low"] < verdict["r"] < verdict["r_high"]
    assert 0.98 < verdict["pattern_kept"] < 1
    assert found["models"]["a"]["repo_id"] == "sentence-transformers/all-MiniLM-L6-v2"


def test_rows_of_every_layer_go_into_a_csv_and_the_table_is_printed_in_markdown(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    code, out, _ = run("compare", "all-minilm-l6-v2", "sre-minilm-l6", *FEW, "--csv", str(path), "--markdown")
    head, *rows = [line.split(",") for line in path.read_text("utf-8").splitlines()]
    assert (code, head, len(rows)) == (0, ["role", "layer_a", "layer_b", "cosine", "r"], 13)
    assert all(0.999 < float(row[4]) <= 1 for row in rows)
    assert out.startswith("|  | post_attention | post_mlp | embedding |\n| --- | ---: | ---: | ---: |\n")
    assert "\n**Strong shared-origin signal, layer by layer." in out
    code, _, err = run("compare", "all-minilm-l6-v2", "sre-minilm-l6", *FEW, "--csv", str(tmp_path))
    assert code == 1
    assert "Writing the rows of every layer into" in err


def test_the_text_is_a_table_of_100_columns_with_verdict_and_how_to_read_it() -> None:
    code, out, err = run("compare", "all-minilm-l6-v2", "multilingual-e5-small", *FEW)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[1].split() == ["a", "all-minilm-l6-v2", "bert", "13", "384", "none", "recorded"]
    header = next(line for line in lines if "post_attention" in line)
    row = next(line for line in lines if line.startswith("best offset"))
    assert row.endswith("-")
    assert len(row) == len(header)
    assert "Verdict: No shared-origin signal in the norm vectors; this does not show independence." in lines
    told = " ".join(out.split())
    assert "Mean r over 13 norms of the residual stream: 0.0135 (95 %: " in told
    assert "p: the share of 200 permutations of b's channels (one for all norms; seed 0) that give as much." in told
    assert "Not compared: post_attention, post_mlp: only b has layers 6 to 11." in lines


def test_the_readme_shows_what_is_printed() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Compare two models")[2].partition("\n## ")[0]
    command, shown = section.split("```")[1].split(), section.split("```")[3]
    code, out, _ = run(*command[1:])
    assert (command[0], code) == ("lnsim", 0)
    assert not [line for line in shown.strip("\n").splitlines() if line not in [*out.splitlines(), "[...]"]]


def test_repos_are_compared_with_a_stored_model_and_another_repo_and_nothing_is_kept(hub: HubStandIn) -> None:
    stored = lnsim.load("sre-minilm-l6")  # here as its maker would have published it, not as an extract
    tensors = {name: np.array(array, dtype=np.float32) for name, array in stored.stored.items()}
    hub.add("a/b", checkpoint_files(tensors, dict(stored.config)))
    found = compared(f"a/b@{COMMIT}", "--seed", "1", "sre-minilm-l6")  # an option may stand between the two
    assert (found["verdict"]["key"], found["models"]["a"]["commit"]) == ("identical", COMMIT)
    assert {one["changed_ratio"] for one in found["roles"].values()} == {0.0}
    assert found["requests"] == len(hub.requests) > 0
    assert not list((ROOT / "data" / "vectors").rglob("a--b*"))
    assert COMMIT[:12] in run("compare", "a/b", "sre-minilm-l6", *FEW)[1]
    for seed in (0, 1):
        hub.add(f"a/m{seed}", checkpoint_files(llama_tensors(seed=seed), LLAMA_CONFIG, 2))
    assert list(compared("a/m0", "a/m1")["roles"]) == ["pre_attention", "pre_mlp", "final"]


def test_a_role_narrows_by_either_name(model: Path) -> None:
    assert list(compared(str(model), str(model), "--role", "post_attention_layernorm")["roles"]) == ["pre_mlp"]
    out = run("compare", str(model), str(model), "--role", "pre_mlp", *FEW)[1]
    assert "post_attention_layernorm" in out


def test_nothing_to_compare_is_a_verdict_and_of_two_that_fail_both_are_named(model: Path) -> None:
    err = run("compare", "./gone", "./gone-too")[2]
    expected = [f"lnsim: Opening './{name}': there is no such file or folder." for name in ("gone", "gone-too")]
    assert err.splitlines() == expected
    found = compared("whisper-tiny.en", "smollm2-135m-instruct")
    assert (found["roles"], found["verdict"]["strength"], found["verdict"]["pvalue"]) == ({}, "not_comparable", None)
    why = "their hidden sizes are 384 and 576, and no channel of one is a channel of the other"
    assert why in found["verdict"]["sentence"]
    out = " ".join(run("compare", "whisper-tiny.en", "sre-minilm-l6")[1].split())
    assert "Only roles of the same name are compared; 'whisper-tiny.en' has pre_attention" in out
    code, out, err = run("compare", str(model), "sre-minilm-l6", "--role", "pre_mlp")
    assert (code, out) == (1, "")
    assert "it has no such norms. It has: embedding, post_attention, post_mlp." in err
    assert "Did you mean 'post_mlp'?" in run("compare", "all-minilm-l6-v2", "sre-minilm-l6", "--role", "post_mpl")[2]


def test_a_revision_is_for_those_of_the_two_that_lie_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, _, err = run("compare", "sre-minilm-l6", "owner/name", "--revision", "v1")
    assert (code, "owner/name@v1" in err, "sre-minilm-l6" in err) == (1, True, False)
    err = run("compare", "sre-minilm-l6", "all-minilm-l6-v2", "--revision", "v1")[2]
    assert err.count("it lies on disk, where there is no revision 'v1' to choose") == 2


def test_a_slip_in_a_stored_name_is_told_without_the_network(hub: HubStandIn) -> None:
    code, out, err = run("compare", "sre-minilm-l6", "all-minilm-16-v2")
    assert (code, out) == (1, "")
    assert "no stored model of this name. Did you mean 'all-minilm-l6-v2'? A repo on the Hub is written" in err
    assert hub.requests == []


SLIP = "intfloat/multilingual-e5-smal"


@pytest.mark.parametrize("words", [["compare", "a/b", SLIP], ["inspect", f"hf://{SLIP}"], ["extract", SLIP]])
def test_a_slip_in_a_repo_id_is_told_with_the_near_ones_in_one_line(hub: HubStandIn, words: list[str]) -> None:
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    code, out, err = run(*words)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"lnsim: Reading {SLIP}@main: the Hub has no such repo")
    assert "Near names known here: 'multilingual-e5-small'" in err


def test_a_repo_that_the_hub_does_not_give_is_told_by_its_stored_name(hub: HubStandIn) -> None:
    err = run("compare", "Intfloat/multilingual-e5-small@main", "sre-minilm-l6")[2]
    assert err.endswith("Its vectors are stored here as 'multilingual-e5-small'.\n")
    assert "stored here" not in run("compare", "a/b", "sre-minilm-l6")[2]
    assert "There is no folder, file or stored model 'e5' here either." in run("compare", "e5", "sre-minilm-l6")[2]

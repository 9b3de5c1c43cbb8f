"""`lnsim compare` as a user runs it: a table or JSON on stdout, errors in a line, near names, nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from hub_stand_in import COMMIT, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim

ROOT = Path(__file__).resolve().parents[1]
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


def plain_files(stored: str) -> dict[str, bytes]:
    """A stored model as its maker would have published it, without a word on where it was read."""
    found = lnsim.load(stored)
    tensors = {name: np.array(array, dtype=np.float32) for name, array in found.stored.items()}
    return checkpoint_files(tensors, dict(found.config))


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    return write_files(tmp_path / "llama", checkpoint_files(llama_tensors(), LLAMA_CONFIG))


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


def test_a_model_is_identical_to_itself_also_as_a_folder_and_options_may_stand_between_the_two(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "mine", plain_files("sre-minilm-l6"))
    for other in ("sre-minilm-l6", str(folder)):
        found = compared(other, "--seed", "1", "sre-minilm-l6")
        assert found["verdict"]["key"] == "identical"
        assert {one["changed_ratio"] for one in found["roles"].values()} == {0.0}


def test_repos_are_compared_with_a_stored_model_and_another_repo_and_nothing_is_kept(hub: HubStandIn) -> None:
    hub.add("a/b", plain_files("sre-minilm-l6"))
    found = compared(f"a/b@{COMMIT}", "sre-minilm-l6")
    assert (found["verdict"]["key"], found["models"]["a"]["commit"]) == ("identical", COMMIT)
    assert found["requests"] == len(hub.requests) > 0
    assert not list((ROOT / "data" / "vectors").rglob("a--b*"))
    assert COMMIT[:12] in run("compare", "a/b", "sre-minilm-l6", *FEW)[1]
    for seed in (0, 1):
        hub.add(f"a/m{seed}", checkpoint_files(llama_tensors(seed=seed), LLAMA_CONFIG, 2))
    assert list(compared("a/m0", "a/m1")["roles"]) == ["pre_attention", "pre_mlp", "final"]


def test_a_role_narrows_by_either_name(llama: Path) -> None:
    assert list(compared(str(llama), str(llama), "--role", "post_attention_layernorm")["roles"]) == ["pre_mlp"]
    out = run("compare", str(llama), str(llama), "--role", "pre_mlp", *FEW)[1]
    assert "post_attention_layernorm" in out


def test_nothing_to_compare_is_a_verdict_and_of_two_that_fail_both_are_named(llama: Path) -> None:
    err = run("compare", "./gone", "./gone-too")[2]
    expected = [f"lnsim: Opening './{name}': there is no such file or folder." for name in ("gone", "gone-too")]
    assert err.splitlines() == expected
    found = compared("whisper-tiny.en", "smollm2-135m-instruct")
    assert (found["roles"], found["verdict"]["strength"], found["verdict"]["pvalue"]) == ({}, "not_comparable", None)
    why = "their hidden sizes are 384 and 576, and no channel of one is a channel of the other"
    assert why in found["verdict"]["sentence"]
    out = " ".join(run("compare", "whisper-tiny.en", "sre-minilm-l6")[1].split())
    assert "Only roles of the same name are compared; 'whisper-tiny.en' has pre_attention" in out
    code, out, err = run("compare", str(llama), "sre-minilm-l6", "--role", "pre_mlp")
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

